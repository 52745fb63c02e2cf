//! Servers as data (`servers.toml`): what each serves, how it is started, and which version was measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::bench::Setup;
use crate::machine::{commit, printed_version};
use crate::process::Launch;
use crate::programs::{OurPrograms, locked, lookup, peer, root};
use crate::scenario::{ResponseSource, Scenario};

/// The server whose response gives the null servers their length.
pub(crate) const REFERENCE: &str = "shearwater-epoll";

static SERVERS: LazyLock<Vec<ServerSpec>> = LazyLock::new(|| {
    let table: Table = toml::from_str(include_str!("../servers.toml")).expect("a test parses it");
    table.server.into_iter().flat_map(ServerSpec::for_each_driver).collect()
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    server: Vec<ServerSpec>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProgramOrigin {
    #[default]
    Ours,
    Plain,
    Peers,
    System,
}

/// One server for some kinds of scenarios; `servers.toml` describes the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerSpec {
    pub(crate) name: String,
    pub(crate) about: String,
    drivers: Vec<String>,
    serves: Vec<ResponseSource>,
    origin: ProgramOrigin,
    pub(crate) program: String,
    arguments: String,
    environment: BTreeMap<String, String>,
    config: Option<String>,
    values: BTreeMap<String, String>,
    sites: Option<[u32; 2]>,
    pub(crate) pool: bool,
    version: Option<String>,
    pub(crate) install: Option<String>,
}

pub(crate) fn all() -> &'static [ServerSpec] {
    &SERVERS
}

/// Finds the server of this name that serves a scenario.
pub(crate) fn find(name: &str, scenario: &Scenario) -> Result<&'static ServerSpec, String> {
    let mut named = all().iter().filter(|spec| spec.name == name).peekable();
    if named.peek().is_none() {
        let mut names: Vec<&str> = all().iter().map(|spec| &*spec.name).collect();
        names.dedup();
        return Err(format!("no server `{name}`\nhelp: the servers are {}", names.join(", ")));
    }
    let found = named.find(|spec| spec.serves.contains(&scenario.source));
    found.ok_or_else(|| format!("{name} does not serve the scenario {}", scenario.name))
}

impl ServerSpec {
    fn for_each_driver(self) -> Vec<Self> {
        let drivers = if self.drivers.is_empty() { vec!["epoll".to_owned()] } else { self.drivers.clone() };
        let one = |driver: String| {
            let name = self.name.replace("{driver}", &driver);
            Self { name, drivers: vec![driver], ..self.clone() }
        };
        drivers.into_iter().map(one).collect()
    }

    pub(crate) fn is_null(&self) -> bool {
        self.program == "null-server"
    }

    /// Returns what starts it, after writing its configuration into the run's folder.
    pub(crate) fn launch(&self, setup: &Setup<'_>) -> Result<Launch, String> {
        let Setup { bench, scenario, address, .. } = setup;
        let [public, folder] =
            [&bench.folder.public(), bench.folder.path()].map(|path| path.display().to_string());
        let mut values: Vec<(&str, String)> =
            self.values.iter().map(|(name, value)| (&**name, value.clone())).collect();
        values.extend([
            ("address", address.to_string()),
            ("ip", address.ip().to_string()),
            ("port", address.port().to_string()),
            ("driver", self.drivers.concat()),
            ("workers", setup.workers.to_string()),
            ("sites", self.sites.map_or_else(String::new, |[sites, routes]| many_sites(sites, routes))),
            ("public", public),
            ("folder", folder),
            ("null_bytes", setup.null_bytes.to_string()),
            ("pipeline", if scenario.depth > 1 { "--pipeline" } else { "" }.to_owned()),
            ("body", String::from_utf8(scenario.body()).unwrap_or_default()),
        ]);
        let fill = |text: &str, values: &[(&str, String)]| {
            values
                .iter()
                .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
        };
        if let Some(config) = &self.config {
            let template = root().join("lab/lab/servers").join(config);
            let template =
                fs::read_to_string(&template).map_err(|error| format!("{}: {error}", template.display()))?;
            let written = bench.folder.write(config, &fill(&template, &values))?;
            values.push(("config", written.display().to_string()));
        }
        // Split first: a path may contain spaces.
        let arguments = self.arguments.split_whitespace().map(|word| fill(word, &values));
        let environment = self.environment.iter().map(|(name, value)| (name.clone(), fill(value, &values)));
        let launch = Launch::new(self.path(bench.programs), arguments.filter(|word| !word.is_empty()));
        Ok(Launch { environment: environment.collect(), ..launch })
    }

    /// Returns the program's file, or a name to look up.
    fn path(&self, programs: &OurPrograms) -> PathBuf {
        match self.origin {
            ProgramOrigin::Ours => programs.ours(&self.program),
            ProgramOrigin::Plain => programs.plain(&self.program),
            ProgramOrigin::Peers | ProgramOrigin::System => self.path_of_foreign(),
        }
    }

    /// Returns true if its program is not built with ours.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.origin, ProgramOrigin::Peers | ProgramOrigin::System)
    }

    pub(crate) fn path_of_foreign(&self) -> PathBuf {
        let name = Path::new(&self.program);
        if self.origin == ProgramOrigin::Peers {
            peer(name)
        } else {
            lookup(name).unwrap_or_else(|| name.to_owned())
        }
    }

    /// Returns what the program prints, or for crates what their lock file has.
    pub(crate) fn foreign_version(&self) -> String {
        match self.version.as_deref() {
            Some(argument) => printed_version(&self.path_of_foreign(), argument),
            None => locked(),
        }
    }

    /// Returns the version that is measured; for ours the checkout's commit.
    pub(crate) fn measured_version(&self, programs: &OurPrograms) -> String {
        match self.origin {
            _ if self.is_foreign() => self.foreign_version(),
            ProgramOrigin::Ours if programs.guided.is_some() => {
                format!("{}, guided by {}", commit(), programs.guidance)
            }
            _ => commit(),
        }
    }
}

/// Returns the configuration of so many sites over the served folder, each with a host and so many routes.
fn many_sites(sites: u32, routes: u32) -> String {
    let routes: String =
        (0..routes).map(|route| format!("[[site.route]]\npath = \"/part-{route}/*\"\n")).collect();
    let site = |site| {
        format!("\n[[site]]\nhosts = [\"site-{site:04}.example.org\"]\nroot = \"{{public}}\"\n{routes}")
    };
    (0..sites).map(site).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    #[test]
    fn a_name_has_one_entry_for_a_source_with_a_template_that_is_there() {
        for scenario in scenario::all() {
            for spec in all().iter().filter(|spec| spec.serves.contains(&scenario.source)) {
                assert_eq!(find(&spec.name, scenario), Ok(spec), "{}", scenario.name);
            }
        }
        for spec in all() {
            let config = spec.config.iter().map(|name| root().join("lab/lab/servers").join(name));
            assert!(config.into_iter().all(|path| path.is_file()), "{}", spec.name);
            assert!(!spec.name.contains('{') && !spec.program.is_empty(), "{spec:?}");
        }
        assert!(all().iter().any(|spec| spec.name == REFERENCE));
    }

    #[test]
    fn a_server_gets_only_requests_that_it_can_respond_to() {
        for (name, serves, not) in [
            ("lighttpd", "1k-churn", "plaintext"),
            ("servedir", "1m", "json"),
            ("hyper", "plaintext-x16", "plaintext-varied"),
            ("shearwater-axum", "plaintext", "1k"),
            ("kinds", "order", "plaintext"),
            ("sites-1000x100", "1k", "plaintext"),
            ("nginx", "json", "kind-plain"),
        ] {
            let find = |scenario| find(name, scenario::find(scenario).expect("a scenario"));
            assert!(find(serves).is_ok() && find(not).is_err(), "{name}");
        }
        let unknown = find("apache", scenario::find("1k").expect("a scenario"));
        assert!(unknown.is_err_and(|error| error.contains("static-web-server")));
    }
}
