//! Servers as data (`servers.toml`, `lab/peers/*.toml`): what each serves, where its program is, and which version that has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;
use testkit::Head;
use toml::{Table, Value};

use crate::machine::{commit, commit_in};
use crate::programs::{GUIDED, OurPrograms, lookup, root};
use crate::scenario::{ResponseSource, Scenario};
use crate::version::{age, library, locked, printed};

/// The server whose response gives the null servers their length.
pub(crate) const REFERENCE: &str = "shearwater-epoll";
/// File of our servers and the null servers, in the checkout.
const OURS: &str = "lab/lab/servers.toml";
/// Folder of everyone else's, a file for each program.
const PEERS: &str = "lab/peers";

static SERVERS: LazyLock<Result<Vec<ServerSpec>, String>> = LazyLock::new(|| load(&root()));

/// One server for some kinds of scenarios; `servers.toml` describes the fields.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerSpec {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) drivers: Vec<String>,
    pub(crate) serves: Vec<ResponseSource>,
    pub(crate) program: String,
    pub(crate) arguments: String,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) config: Option<String>,
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) sites: Option<[u32; 2]>,
    pub(crate) scrape: Option<String>,
    pub(crate) pool: bool,
    pub(crate) warm_up_ms: u64,
    pub(crate) headers: String,
    pub(crate) requests_max: Option<u32>,
    pub(crate) version: Option<String>,
    pub(crate) library: Option<String>,
    pub(crate) crates: Vec<String>,
    pub(crate) released: BTreeMap<String, toml::value::Datetime>,
    pub(crate) install: Option<String>,
    pub(crate) build_command: Option<String>,
    pub(crate) extra_build: Option<String>,
    pub(crate) guided: Option<String>,
    /// Build of our program, if not the usual one.
    #[serde(skip)]
    pub(crate) build: Option<String>,
    /// Its file, as the checkout names it.
    #[serde(skip)]
    pub(crate) file: String,
}

/// Reads the servers of a checkout.
fn load(root: &Path) -> Result<Vec<ServerSpec>, String> {
    let entries = fs::read_dir(root.join(PEERS)).map_err(|error| format!("{PEERS}: {error}"))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let peers = names.filter(|name| name.ends_with(".toml")).map(|name| format!("{PEERS}/{name}"));
    let mut files: Vec<String> = peers.chain([OURS.to_owned()]).collect();
    files.sort();
    let mut servers: Vec<ServerSpec> = Vec::new();
    for file in files {
        let text = fs::read_to_string(root.join(&file)).map_err(|error| format!("{file}: {error}"))?;
        let parsed = parse(&text, &file, root).map_err(|error| format!("{file}: {}", error.trim_end()))?;
        servers.extend(parsed);
    }
    Ok(servers)
}

/// Parses a file of servers. Keys above the first server hold for all of them.
fn parse(text: &str, file: &str, root: &Path) -> Result<Vec<ServerSpec>, String> {
    let mut shared: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let Some(Value::Array(servers)) = shared.remove("server") else {
        return Err("no `[[server]]`\nhelp: lab/lab/servers.toml describes the keys".to_owned());
    };
    let mut specs = Vec::new();
    for own in servers {
        let mut whole = shared.clone();
        whole.extend(own.as_table().cloned().unwrap_or_default());
        let name = whole.get("name").and_then(Value::as_str).unwrap_or("(no name)").to_owned();
        let spec = whole.try_into().map_err(|error: toml::de::Error| error.to_string());
        let spec = spec.and_then(|spec: ServerSpec| spec.complete(file, root));
        specs.extend(spec.map_err(|error| format!("server `{name}`: {error}"))?.for_each_driver());
    }
    Ok(specs)
}

/// Returns all servers, or what is wrong in a file.
pub(crate) fn all() -> Result<&'static [ServerSpec], String> {
    SERVERS.as_deref().map_err(String::clone)
}

/// Finds the server of this name that serves a scenario. `NAME@BUILD` is one of ours in another build.
pub(crate) fn find(name: &str, scenario: &Scenario) -> Result<&'static ServerSpec, String> {
    if let Some((base, build)) = name.split_once('@') {
        return find(base, scenario)?.in_build(build);
    }
    let mut named = all()?.iter().filter(|spec| spec.name == name).peekable();
    if named.peek().is_none() {
        let names: BTreeSet<&str> = all()?.iter().map(|spec| &*spec.name).collect();
        let names = Vec::from_iter(names).join(", ");
        return Err(format!("no server `{name}`\nhelp: the servers are {names}"));
    }
    let found = named.find(|spec| spec.serves.contains(&scenario.source));
    found.ok_or_else(|| format!("{name} does not serve the scenario {}", scenario.name))
}

impl ServerSpec {
    /// Checks what serde can't, and makes the template's path absolute.
    fn complete(mut self, file: &str, root: &Path) -> Result<Self, String> {
        let missing = [
            ("name", self.name.is_empty()),
            ("program", self.program.is_empty()),
            ("serves", self.serves.is_empty()),
        ];
        if let Some((key, _)) = missing.iter().find(|(_, is_missing)| *is_missing) {
            return Err(format!("missing key `{key}`"));
        }
        if let Some(config) = &mut self.config {
            let path = root.join(file).with_file_name(&*config);
            if !path.is_file() {
                return Err(format!("key `config`: no file {}", path.display()));
            }
            *config = path.display().to_string();
        }
        file.clone_into(&mut self.file);
        Ok(self)
    }

    fn for_each_driver(self) -> Vec<Self> {
        let drivers = if self.drivers.is_empty() { vec!["epoll".to_owned()] } else { self.drivers.clone() };
        let one = |driver: String| {
            let name = self.name.replace("{driver}", &driver);
            Self { name, drivers: vec![driver], ..self.clone() }
        };
        drivers.into_iter().map(one).collect()
    }

    /// Returns the same server in another build: a profile of cargo, or the guided one.
    fn in_build(&self, build: &str) -> Result<&'static Self, String> {
        if self.is_null() || self.is_foreign() || build.is_empty() {
            return Err(format!("{}@{build}: only our own programs have several builds", self.name));
        }
        let name = format!("{}@{build}", self.name);
        let build = self.guided.as_deref().filter(|_| build == GUIDED).unwrap_or(build);
        // Never freed: there are as many as names on the command line and in the rows.
        Ok(Box::leak(Box::new(Self { name, build: Some(build.to_owned()), ..self.clone() })))
    }

    pub(crate) fn is_null(&self) -> bool {
        self.program == "null-server"
    }

    /// Returns the program's file, or a name to look up.
    pub(crate) fn path(&self, programs: &OurPrograms) -> PathBuf {
        match self.is_foreign() {
            true => self.path_of_foreign(),
            false => programs.path(self.build.as_deref(), &self.program),
        }
    }

    /// Returns true if its program is not built with ours.
    pub(crate) fn is_foreign(&self) -> bool {
        self.file != OURS
    }

    pub(crate) fn path_of_foreign(&self) -> PathBuf {
        let name = Path::new(&self.program);
        lookup(name).unwrap_or_else(|| name.to_owned())
    }

    /// Checks that a response has the headers that the file names, if it names any.
    pub(crate) fn check_headers(&self, head: &Head) -> Result<(), String> {
        let mut names: Vec<String> = head.headers().map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        let (sent, Self { headers, file, .. }) = (names.join(" "), self);
        match headers.is_empty() || sent == *headers {
            true => Ok(()),
            false => Err(format!("probe: headers `{sent}`, not `{headers}` as {file} says")),
        }
    }

    /// Returns an error that says how to install its program, where that is missing. Ours are built.
    pub(crate) fn installed(&self) -> Result<(), String> {
        let is_there = !self.is_foreign() || lookup(&self.path_of_foreign()).is_some();
        if is_there {
            Ok(())
        } else {
            Err(format!("{} is not installed: {}", self.program, self.installation()))
        }
    }

    /// Returns the version that the program prints, or that the lock file has.
    pub(crate) fn foreign_version(&self) -> String {
        let printed = |argument: &String| printed(&self.path_of_foreign(), argument);
        self.version.as_ref().map_or_else(|| locked(&self.crates), printed)
    }

    /// Returns release date and age of a version, or why they are unknown.
    pub(crate) fn age(&self, version: &str) -> String {
        age(version, &self.released, &self.file)
    }

    /// Returns how to install the program.
    pub(crate) fn installation(&self) -> &str {
        self.install.as_deref().unwrap_or("cargo lab setup --build-peers")
    }

    /// Returns the version that is measured; for ours the checkout's commit and the build.
    pub(crate) fn measured_version(&self, programs: &OurPrograms) -> String {
        if self.is_foreign() {
            let version = self.foreign_version();
            let library = self.library.iter().map(|argument| library(&self.path_of_foreign(), argument));
            return format!("{version} ({}){}", self.age(&version), library.collect::<String>());
        }
        match programs.sources.get(self.build.as_ref().unwrap_or(&programs.usual)) {
            Some((sources, _)) => commit_in(sources),
            None => format!("{}, build {}", commit(), self.build.as_ref().unwrap_or(&programs.usual)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    fn servers() -> &'static [ServerSpec] {
        all().expect("the files of the checkout")
    }

    #[test]
    fn every_server_is_found_by_its_name_and_says_how_to_get_it() {
        for scenario in scenario::all() {
            for spec in servers().iter().filter(|spec| spec.serves.contains(&scenario.source)) {
                assert_eq!(find(&spec.name, scenario), Ok(spec), "{}", scenario.name);
            }
        }
        for spec in servers() {
            assert!(!spec.name.contains('{'), "{spec:?}");
            let ways = usize::from(spec.install.is_some()) + usize::from(spec.build_command.is_some());
            let has_version = spec.version.is_some() == spec.crates.is_empty();
            assert!(
                !spec.is_foreign() || (ways == 1 && has_version && !spec.released.is_empty()),
                "{spec:?}"
            );
            // The date of what a lock file pins must be known.
            let age = spec.age(&spec.foreign_version());
            assert!(spec.crates.is_empty() || age.ends_with("old"), "{}: {age}", spec.name);
        }
        assert!(servers().iter().any(|spec| spec.name == REFERENCE));
    }

    #[test]
    fn errors_name_file_server_and_key() {
        let error = |text: &str| parse(text, "lab/peers/x.toml", &root()).expect_err(text);
        let server = "[[server]]\nname = \"x\"\nserves = [\"text\"]\n";
        for (text, said) in [
            ("program = 1", "no `[[server]]`"),
            ("program = \n", "line 1, column"),
            (server, "server `x`: missing key `program`"),
            ("program = \"x\"\n[[server]]\nserves = [\"file\"]", "server `(no name)`: missing key `name`"),
            (&*format!("prgram = \"x\"\n{server}"), "server `x`: unknown field `prgram`, expected one of"),
            (&*format!("program = 1\n{server}"), "invalid type: integer `1`, expected a string"),
            (&*format!("program = \"x\"\nconfig = \"no.conf\"\n{server}"), "key `config`: no file"),
            (&*format!("program = \"x\"\n{server}pool = 2"), "in `pool`"),
        ] {
            let error = error(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_response_with_other_headers_than_the_file_names_is_refused() {
        let head = Head::parse(b"HTTP/1.1 200 OK\r\nServer: x\r\ndate: x\r\nContent-Length: 0\r\n\r\n")
            .expect("a head");
        let check = |headers: &str| {
            let (headers, file) = (headers.to_owned(), "lab/peers/x.toml".to_owned());
            ServerSpec { headers, file, ..ServerSpec::default() }.check_headers(&head)
        };
        assert_eq!([check(""), check("content-length date server")], [Ok(()), Ok(())]);
        let refused =
            "probe: headers `content-length date server`, not `content-length date` as lab/peers/x.toml says";
        assert_eq!(check("content-length date"), Err(refused.to_owned()));
    }

    #[test]
    fn a_server_gets_only_requests_that_it_can_respond_to() {
        let find = |name, of| find(name, scenario::find(of).expect("a scenario"));
        for (name, serves, not) in [
            ("lighttpd", "1k-churn", "plaintext"),
            ("hyper", "plaintext-x16", "plaintext-varied"),
            ("haproxy", "plaintext-varied", "1k"),
            ("kinds", "order", "plaintext"),
        ] {
            assert!(find(name, serves).is_ok() && find(name, not).is_err(), "{name}");
        }
        let guided = find("shearwater-uring@guided", "1k").expect("ours");
        assert_eq!((&*guided.name, guided.build.as_deref()), ("shearwater-uring@guided", Some("guided")));
        assert!(
            ["null-epoll@dist", "nginx@dist", "shearwater-epoll@"].iter().all(|it| find(it, "1k").is_err())
        );
        assert!(find("apache", "1k").is_err_and(|error| error.contains("static-web-server")));
    }
}
