//! Servers as data (`servers.toml`): what each serves, where its program is, and which version that has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::machine::{commit, printed_version};
use crate::programs::{OurPrograms, locked, lookup, peer};
use crate::scenario::{ResponseSource, Scenario};

/// The server whose response gives the null servers their length.
pub(crate) const REFERENCE: &str = "shearwater-epoll";

static SERVERS: LazyLock<Vec<ServerSpec>> = LazyLock::new(|| {
    let table: BTreeMap<String, Vec<ServerSpec>> =
        toml::from_str(include_str!("../servers.toml")).expect("a test parses it");
    table.into_values().flatten().flat_map(ServerSpec::for_each_driver).collect()
});

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProgramOrigin {
    #[default]
    Ours,
    Peers,
    System,
}

/// One server for some kinds of scenarios; `servers.toml` describes the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerSpec {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) drivers: Vec<String>,
    serves: Vec<ResponseSource>,
    origin: ProgramOrigin,
    pub(crate) program: String,
    pub(crate) arguments: String,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) config: Option<String>,
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) sites: Option<[u32; 2]>,
    pub(crate) pool: bool,
    /// Build of our program, if not the usual one.
    #[serde(skip)]
    pub(crate) build: Option<String>,
    pub(crate) extra_build: Option<String>,
    version: Option<String>,
    pub(crate) install: Option<String>,
}

pub(crate) fn all() -> &'static [ServerSpec] {
    &SERVERS
}

/// Finds the server of this name that serves a scenario. `NAME@BUILD` is one of ours in another build.
pub(crate) fn find(name: &str, scenario: &Scenario) -> Result<&'static ServerSpec, String> {
    if let Some((base, build)) = name.split_once('@') {
        return find(base, scenario)?.in_build(build);
    }
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

    /// Returns the same server in another build: a profile of cargo, or the guided one.
    fn in_build(&self, build: &str) -> Result<&'static Self, String> {
        if self.is_null() || self.is_foreign() || build.is_empty() {
            return Err(format!("{}@{build}: only our own programs have several builds", self.name));
        }
        let name = format!("{}@{build}", self.name);
        // Never freed: there are as many as names on the command line and in the rows.
        Ok(Box::leak(Box::new(Self { name, build: Some(build.to_owned()), ..self.clone() })))
    }

    pub(crate) fn is_null(&self) -> bool {
        self.program == "null-server"
    }

    /// Returns the program's file, or a name to look up.
    pub(crate) fn path(&self, programs: &OurPrograms) -> PathBuf {
        match self.origin {
            ProgramOrigin::Ours => programs.path(self.build.as_deref(), &self.program),
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

    /// Returns an error that says how to install its program, where that is missing. Ours are built.
    pub(crate) fn installed(&self) -> Result<(), String> {
        let is_there = !self.is_foreign() || lookup(&self.path_of_foreign()).is_some();
        let how = self.install.as_deref().unwrap_or("cargo lab setup --build-peers");
        if is_there { Ok(()) } else { Err(format!("{} is not installed: {how}", self.program)) }
    }

    /// Returns what the program prints, or for crates what their lock file has.
    pub(crate) fn foreign_version(&self) -> String {
        match self.version.as_deref() {
            Some(argument) => printed_version(&self.path_of_foreign(), argument),
            None => locked(),
        }
    }

    /// Returns the version that is measured; for ours the checkout's commit and the build.
    pub(crate) fn measured_version(&self, programs: &OurPrograms) -> String {
        if self.is_foreign() {
            return self.foreign_version();
        }
        format!("{}, {}", commit(), programs.describe(self.build.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::root;
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
        let find_1k = |name| find(name, scenario::find("1k").expect("a scenario"));
        let guided = find_1k("shearwater-uring@guided").expect("ours");
        assert_eq!((&*guided.name, guided.build.as_deref()), ("shearwater-uring@guided", Some("guided")));
        assert!(
            ["null-epoll@dist", "nginx@dist", "shearwater-epoll@"].map(find_1k).iter().all(Result::is_err)
        );
        let unknown = find("apache", scenario::find("1k").expect("a scenario"));
        assert!(unknown.is_err_and(|error| error.contains("static-web-server")));
    }
}
