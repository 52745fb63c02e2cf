//! The servers that can be compared, as data, and how each is started for a scenario.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::binaries::Binaries;
use crate::peers::{self, h2o, lighttpd, nginx, static_web_server};
use crate::process::Launch;
use crate::scenario::{Scenario, Source};
use crate::site::Site;
use crate::sites::{self, Sites};

/// What a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Constant bytes as long as ours.
    Null,
    /// Ours: the program for files, the example `plaintext` for handlers.
    Shearwater,
    /// The same, built without a profile of how it runs: to be held against one that is built with it.
    ShearwaterPlain,
    /// Our program with a site configured as people have them (`sites::Sites::Real`) over the same folder.
    ShearwaterSite,
    /// nginx, one worker, tuned.
    Nginx,
    /// lighttpd, one process.
    Lighttpd,
    /// h2o, one thread.
    H2o,
    /// static-web-server, one worker.
    StaticWebServer,
    /// hyper by itself, from the peers' workspace.
    Hyper,
    /// `axum::serve`, from the peers' workspace.
    Axum,
    /// The router of `Axum` on our engine, from the peers' workspace.
    ShearwaterAxum,
    /// tower-http's `ServeDir`, from the peers' workspace, as its documentation starts it: with as many threads for files as it
    /// takes.
    ServeDir,
    /// The same with one thread for files: on one core more of them only wait for one another and cost two to three times as
    /// much.
    ServeDirOneThread,
}

/// One server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerKind {
    /// As typed after `--servers`.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// How it waits for the kernel, for those that have a choice.
    pub driver: &'static str,
}

const fn peer(name: &'static str, kind: Kind) -> ServerKind {
    ServerKind { name, kind, driver: "epoll" }
}

/// All of them.
pub const SERVERS: &[ServerKind] = &[
    ServerKind { name: "null-epoll", kind: Kind::Null, driver: "epoll" },
    ServerKind { name: "null-uring", kind: Kind::Null, driver: "uring" },
    ServerKind { name: "shearwater-epoll", kind: Kind::Shearwater, driver: "epoll" },
    ServerKind { name: "shearwater-uring", kind: Kind::Shearwater, driver: "uring" },
    ServerKind { name: "shearwater-epoll-plain", kind: Kind::ShearwaterPlain, driver: "epoll" },
    ServerKind { name: "shearwater-uring-plain", kind: Kind::ShearwaterPlain, driver: "uring" },
    ServerKind { name: "shearwater-site", kind: Kind::ShearwaterSite, driver: "epoll" },
    peer("nginx", Kind::Nginx),
    peer("lighttpd", Kind::Lighttpd),
    peer("h2o", Kind::H2o),
    peer("static-web-server", Kind::StaticWebServer),
    peer("hyper", Kind::Hyper),
    peer("axum", Kind::Axum),
    peer("shearwater-axum", Kind::ShearwaterAxum),
    peer("servedir", Kind::ServeDir),
    peer("servedir-one-thread", Kind::ServeDirOneThread),
];

/// The server whose answers null servers equal in length.
pub const REFERENCE: ServerKind = SERVERS[2];

/// Where and how a server is to run.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Our programs.
    pub binaries: &'a Binaries,
    /// Files and configurations.
    pub site: &'a Site,
    /// Where to listen.
    pub address: SocketAddr,
    /// Length of a null server's answer.
    pub null_bytes: u64,
    /// Threads or processes that serve. Peers from crates have one, whatever is asked.
    pub workers: u32,
}

/// The server of this name.
///
/// # Errors
/// Names all there are.
pub fn find(name: &str) -> Result<&'static ServerKind, String> {
    SERVERS.iter().find(|server| server.name == name).ok_or_else(|| {
        let names: Vec<&str> = SERVERS.iter().map(|server| server.name).collect();
        format!("no server {name:?}; there are {}", names.join(", "))
    })
}

impl ServerKind {
    /// Whether it has an answer to the scenario's requests.
    pub fn serves(&self, scenario: &Scenario) -> bool {
        match self.kind {
            Kind::Null | Kind::Shearwater | Kind::ShearwaterPlain | Kind::Nginx => true,
            Kind::ShearwaterSite
            | Kind::Lighttpd
            | Kind::H2o
            | Kind::StaticWebServer
            | Kind::ServeDir
            | Kind::ServeDirOneThread => scenario.source == Source::File,
            Kind::Hyper | Kind::Axum | Kind::ShearwaterAxum => {
                scenario.source == Source::Plaintext && !scenario.varied
            }
        }
    }

    /// Whether its threads wait for one another on their one core: then their waiting says nothing about others.
    pub fn has_pool(&self) -> bool {
        matches!(self.kind, Kind::ServeDir | Kind::ServeDirOneThread)
    }

    /// How it is started for a scenario.
    ///
    /// # Errors
    /// It has no answer to the scenario, or its configuration cannot be written.
    pub fn launch(&self, scenario: &Scenario, place: &Place<'_>) -> Result<Launch, String> {
        if !self.serves(scenario) {
            return Err(format!("{} does not serve the scenario {}", self.name, scenario.name));
        }
        let program = self.program_path(scenario, place.binaries);
        match self.kind {
            Kind::Null => Ok(self.null(program, scenario, place)),
            Kind::Shearwater | Kind::ShearwaterPlain if scenario.source == Source::File => {
                Ok(self.program(program, place))
            }
            Kind::Shearwater | Kind::ShearwaterPlain => Ok(self.example(program, place)),
            Kind::ShearwaterSite => sites::launch(Sites::Real, program, place.address, place.site),
            Kind::Nginx => nginx::launch(program, scenario, place),
            Kind::Lighttpd => lighttpd::launch(program, place),
            Kind::H2o => h2o::launch(program, place),
            Kind::StaticWebServer => Ok(static_web_server::launch(program, place)),
            Kind::ServeDirOneThread => Ok(peers::launch_built(program, place, &["1"])),
            Kind::Hyper | Kind::Axum | Kind::ShearwaterAxum | Kind::ServeDir => {
                Ok(peers::launch_built(program, place, &[]))
            }
        }
    }

    fn null(&self, program: PathBuf, scenario: &Scenario, place: &Place<'_>) -> Launch {
        let mut arguments = ["--driver", self.driver, "--listen"].map(str::to_owned).to_vec();
        arguments.extend([place.address.to_string(), "--bytes".to_owned(), place.null_bytes.to_string()]);
        if scenario.depth > 1 {
            arguments.push("--pipeline".to_owned());
        }
        Launch { program, arguments, environment: Vec::new() }
    }

    fn program(&self, program: PathBuf, place: &Place<'_>) -> Launch {
        let mut arguments = vec![place.site.public().display().to_string(), "--listen".to_owned()];
        arguments.extend([place.address.to_string(), "--workers".to_owned(), place.workers.to_string()]);
        arguments.extend(["--driver".to_owned(), self.driver.to_owned()]);
        Launch { program, arguments, environment: Vec::new() }
    }

    fn example(&self, program: PathBuf, place: &Place<'_>) -> Launch {
        let environment = vec![
            ("SHEARWATER_LISTEN", place.address.to_string()),
            ("SHEARWATER_DRIVER", self.driver.to_owned()),
            ("SHEARWATER_WORKERS", place.workers.to_string()),
        ];
        Launch { program, arguments: Vec::new(), environment }
    }

    /// The file that is run, or a name to be looked up.
    pub fn program_path(&self, scenario: &Scenario, binaries: &Binaries) -> PathBuf {
        match self.kind {
            Kind::Null => binaries.null(),
            Kind::Shearwater if scenario.source == Source::File => binaries.program(),
            Kind::ShearwaterSite => binaries.program(),
            Kind::Shearwater => binaries.example(),
            Kind::ShearwaterPlain if scenario.source == Source::File => binaries.plain_program(),
            Kind::ShearwaterPlain => binaries.plain_example(),
            Kind::Nginx => "nginx".into(),
            Kind::Lighttpd => "lighttpd".into(),
            Kind::H2o => "h2o".into(),
            Kind::StaticWebServer => peers::static_web_server::program(),
            Kind::Hyper => peers::built("peer-hyper"),
            Kind::Axum => peers::built("peer-axum"),
            Kind::ShearwaterAxum => peers::built("peer-ours-axum"),
            Kind::ServeDir | Kind::ServeDirOneThread => peers::built("peer-servedir"),
        }
    }
}
