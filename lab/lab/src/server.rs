//! Servers as data, and how each is started for a scenario.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::folder::Folder;
use crate::process::Launch;
use crate::programs::Programs;
use crate::scenario::{Scenario, Source};
use crate::{peers, sites};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Constant bytes as long as our response.
    Null,
    /// The program for files, the example `plaintext` for handlers.
    Shearwater,
    /// The same, built without a profile.
    ShearwaterPlain,
    /// The example `kinds`, with this scheduling order of its handlers.
    Kinds(&'static str),
    /// The program with one configured site: two hosts and a star, 20 routes, redirects, headers.
    Site,
    /// The program with so many sites of so many routes each.
    Sites(u32, u32),
    Nginx,
    Lighttpd,
    H2o,
    StaticWebServer,
    /// hyper without a framework.
    Hyper,
    /// `axum::serve`.
    Axum,
    /// The router of `Axum` on our engine.
    ShearwaterAxum,
    /// tower-http's `ServeDir` under `axum::serve`, with so many threads for files; none: tokio's own number.
    ServeDir(Option<&'static str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerKind {
    /// Name for `--servers`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    driver: &'static str,
}

const fn server(name: &'static str, kind: Kind, driver: &'static str) -> ServerKind {
    ServerKind { name, kind, driver }
}

pub(crate) const SERVERS: &[ServerKind] = &[
    REFERENCE,
    server("shearwater-uring", Kind::Shearwater, "uring"),
    server("null-epoll", Kind::Null, "epoll"),
    server("null-uring", Kind::Null, "uring"),
    server("shearwater-epoll-plain", Kind::ShearwaterPlain, "epoll"),
    server("shearwater-uring-plain", Kind::ShearwaterPlain, "uring"),
    server("shearwater-site", Kind::Site, "epoll"),
    server("sites-1000x100", Kind::Sites(1_000, 100), "epoll"),
    server("kinds", Kind::Kinds("fifo"), "epoll"),
    server("kinds-lifo", Kind::Kinds("lifo"), "epoll"),
    server("nginx", Kind::Nginx, "epoll"),
    server("lighttpd", Kind::Lighttpd, "epoll"),
    server("h2o", Kind::H2o, "epoll"),
    server("static-web-server", Kind::StaticWebServer, "epoll"),
    server("hyper", Kind::Hyper, "epoll"),
    server("axum", Kind::Axum, "epoll"),
    server("shearwater-axum", Kind::ShearwaterAxum, "epoll"),
    server("servedir", Kind::ServeDir(None), "epoll"),
    // Further threads on one core only wait for one another and cost two to three times as much.
    server("servedir-one-thread", Kind::ServeDir(Some("1")), "epoll"),
];

/// The server whose response gives the null servers their length.
pub(crate) const REFERENCE: ServerKind = server("shearwater-epoll", Kind::Shearwater, "epoll");

/// Circumstances in which a server runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) folder: &'a Folder,
    pub(crate) address: SocketAddr,
    /// Length of a null server's response.
    pub(crate) null_bytes: u64,
    /// Threads or processes that serve. Peers from crates have one in any case.
    pub(crate) workers: u32,
}

/// Finds the server of this name.
pub(crate) fn find(name: &str) -> Result<&'static ServerKind, String> {
    SERVERS.iter().find(|server| server.name == name).ok_or_else(|| {
        let names: Vec<&str> = SERVERS.iter().map(|server| server.name).collect();
        format!("no server `{name}`\nhelp: the servers are {}", names.join(", "))
    })
}

impl ServerKind {
    /// Returns true if it has a response to the scenario's requests.
    pub(crate) fn serves(&self, scenario: &Scenario) -> bool {
        let source = scenario.source;
        match self.kind {
            Kind::Null | Kind::Shearwater | Kind::ShearwaterPlain | Kind::Nginx => source != Source::Kinds,
            Kind::Kinds(_) => source == Source::Kinds,
            Kind::Site | Kind::Sites(..) | Kind::Lighttpd | Kind::H2o => source == Source::File,
            Kind::StaticWebServer | Kind::ServeDir(_) => source == Source::File,
            Kind::Hyper | Kind::Axum | Kind::ShearwaterAxum => {
                source == Source::Plaintext && !scenario.varied
            }
        }
    }

    /// Returns true if its threads wait for one another on their core: then their waiting says nothing about others.
    pub(crate) fn has_pool(&self) -> bool {
        matches!(self.kind, Kind::ServeDir(_))
    }

    /// Returns true if it is ours: it may use the profile, and its commit is its version.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Shearwater | Kind::Site | Kind::Sites(..) | Kind::Kinds(_))
    }

    pub(crate) fn launch(&self, scenario: &Scenario, place: &Place<'_>) -> Result<Launch, String> {
        if !self.serves(scenario) {
            return Err(format!("{} does not serve the scenario {}", self.name, scenario.name));
        }
        let program = self.program(scenario, place.programs);
        let (address, workers, public) = (place.address, place.workers, place.folder.public());
        let configured = |sites: String| -> Result<Launch, String> {
            let file = place.folder.write("sites.toml", &sites)?;
            Ok(Launch::new(&program, ["--config".to_owned(), file.display().to_string()]))
        };
        match self.kind {
            Kind::Null => {
                let bytes = place.null_bytes;
                let pipeline = if scenario.depth > 1 { " --pipeline" } else { "" };
                let words = format!("--driver {} --listen {address} --bytes {bytes}{pipeline}", self.driver);
                Ok(Launch::new(program, words.split(' ')))
            }
            Kind::Shearwater | Kind::ShearwaterPlain if scenario.source == Source::File => {
                let options = format!("--listen {address} --workers {workers} --driver {}", self.driver);
                let public = std::iter::once(public.display().to_string());
                Ok(Launch::new(program, public.chain(options.split(' ').map(str::to_owned))))
            }
            Kind::Shearwater | Kind::ShearwaterPlain => Ok(self.example(program, place, "fifo")),
            Kind::Kinds(order) => Ok(self.example(program, place, order)),
            Kind::Site => configured(sites::realistic(address, workers, &public)),
            Kind::Sites(sites, routes) => configured(sites::many(address, workers, &public, sites, routes)),
            Kind::Nginx => peers::nginx(program, scenario, place),
            Kind::Lighttpd => peers::lighttpd(program, place),
            Kind::H2o => peers::h2o(program, place),
            Kind::StaticWebServer => Ok(peers::static_web_server(program, place)),
            Kind::Hyper | Kind::Axum | Kind::ShearwaterAxum => Ok(peers::from_crate(program, place, None)),
            Kind::ServeDir(threads) => Ok(peers::from_crate(program, place, threads)),
        }
    }

    fn example(&self, program: PathBuf, place: &Place<'_>, order: &str) -> Launch {
        let environment = vec![
            ("SHEARWATER_LISTEN", place.address.to_string()),
            ("SHEARWATER_DRIVER", self.driver.to_owned()),
            ("SHEARWATER_WORKERS", place.workers.to_string()),
            ("SHEARWATER_ORDER", order.to_owned()),
        ];
        Launch { program, arguments: Vec::new(), environment }
    }

    /// Returns the program's file, or a name to look up.
    pub(crate) fn program(&self, scenario: &Scenario, programs: &Programs) -> PathBuf {
        let name = if scenario.source == Source::File { "shearwater" } else { "examples/plaintext" };
        match self.kind {
            Kind::Null => programs.plain("null-server"),
            Kind::Shearwater => programs.ours(name),
            Kind::ShearwaterPlain => programs.plain(name),
            Kind::Site | Kind::Sites(..) => programs.ours("shearwater"),
            Kind::Kinds(_) => programs.ours("examples/kinds"),
            Kind::Nginx => "nginx".into(),
            Kind::Lighttpd => "lighttpd".into(),
            Kind::H2o => "h2o".into(),
            Kind::StaticWebServer => peers::static_web_server_program(),
            Kind::Hyper => peers::built("peer-hyper"),
            Kind::Axum => peers::built("peer-axum"),
            Kind::ShearwaterAxum => peers::built("peer-ours-axum"),
            Kind::ServeDir(_) => peers::built("peer-servedir"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = SERVERS.iter().map(|server| server.name).collect();
        assert_eq!(names.len(), SERVERS.len());
        assert!(SERVERS.iter().all(|server| find(server.name) == Ok(server)));
        assert!(find("apache").is_err_and(|error| error.contains("static-web-server")));
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
        ] {
            let find = |name| scenario::find(name).expect("a scenario");
            let server = super::find(name).expect("a server");
            assert!(server.serves(find(serves)) && !server.serves(find(not)), "{name}");
        }
    }
}
