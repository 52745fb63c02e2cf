//! The servers that can be compared, as data, and how each is started for a scenario.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::binaries::Binaries;
use crate::process::Launch;
use crate::scenario::{JSON, PLAINTEXT, Scenario, Source};
use crate::site::Site;

/// What a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Constant bytes as long as ours.
    Null,
    /// Ours: the program for files, the example `plaintext` for handlers.
    Shearwater,
    /// nginx, one worker, tuned.
    Nginx,
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

/// All of them.
pub const SERVERS: &[ServerKind] = &[
    ServerKind { name: "null-epoll", kind: Kind::Null, driver: "epoll" },
    ServerKind { name: "null-uring", kind: Kind::Null, driver: "uring" },
    ServerKind { name: "shearwater-epoll", kind: Kind::Shearwater, driver: "epoll" },
    ServerKind { name: "shearwater-uring", kind: Kind::Shearwater, driver: "uring" },
    ServerKind { name: "nginx", kind: Kind::Nginx, driver: "epoll" },
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
    /// Threads or processes that serve.
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
    /// How it is started for a scenario.
    ///
    /// # Errors
    /// Its configuration cannot be written.
    pub fn launch(&self, scenario: &Scenario, place: &Place<'_>) -> Result<Launch, String> {
        match self.kind {
            Kind::Null => Ok(self.null(scenario, place)),
            Kind::Shearwater if scenario.source == Source::File => Ok(self.program(place)),
            Kind::Shearwater => Ok(self.example(place)),
            Kind::Nginx => nginx(scenario, place),
        }
    }

    fn null(&self, scenario: &Scenario, place: &Place<'_>) -> Launch {
        let mut arguments = ["--driver", self.driver, "--listen"].map(str::to_owned).to_vec();
        arguments.extend([place.address.to_string(), "--bytes".to_owned(), place.null_bytes.to_string()]);
        if scenario.depth > 1 {
            arguments.push("--pipeline".to_owned());
        }
        Launch { program: place.binaries.null(), arguments, environment: Vec::new() }
    }

    fn program(&self, place: &Place<'_>) -> Launch {
        let mut arguments = vec![place.site.public().display().to_string(), "--listen".to_owned()];
        arguments.extend([place.address.to_string(), "--workers".to_owned(), place.workers.to_string()]);
        arguments.extend(["--driver".to_owned(), self.driver.to_owned()]);
        Launch { program: place.binaries.program(), arguments, environment: Vec::new() }
    }

    fn example(&self, place: &Place<'_>) -> Launch {
        let environment = vec![
            ("SHEARWATER_LISTEN", place.address.to_string()),
            ("SHEARWATER_DRIVER", self.driver.to_owned()),
            ("SHEARWATER_WORKERS", place.workers.to_string()),
        ];
        Launch { program: place.binaries.example(), arguments: Vec::new(), environment }
    }

    /// The file that is run.
    pub fn program_path(&self, scenario: &Scenario, binaries: &Binaries) -> PathBuf {
        match self.kind {
            Kind::Null => binaries.null(),
            Kind::Shearwater if scenario.source == Source::File => binaries.program(),
            Kind::Shearwater => binaries.example(),
            Kind::Nginx => PathBuf::from("nginx"),
        }
    }
}

fn nginx(scenario: &Scenario, place: &Place<'_>) -> Result<Launch, String> {
    let text = nginx_configuration(scenario, &place.site.public(), place.address, place.workers);
    let file = place.site.write("nginx.conf", &text)?;
    let folder = place.site.folder().display().to_string();
    let arguments = ["-p", &folder, "-e", "stderr", "-c", &file.display().to_string()].map(str::to_owned);
    Ok(Launch { program: PathBuf::from("nginx"), arguments: arguments.to_vec(), environment: Vec::new() })
}

/// nginx as its own documentation tunes it: no log, no limit of requests per connection, descriptors and metadata kept.
pub fn nginx_configuration(scenario: &Scenario, public: &Path, address: SocketAddr, workers: u32) -> String {
    let location = match scenario.source {
        Source::Plaintext => format!("default_type text/plain; return 200 '{PLAINTEXT}';"),
        Source::Json => format!("default_type application/json; return 200 '{JSON}';"),
        Source::File => format!("root {};", public.display()),
    };
    format!(
        "daemon off;\nworker_processes {workers};\npid nginx.pid;\nerror_log stderr error;\n\
         worker_rlimit_nofile 20000;\n\
         events {{ worker_connections 19000; multi_accept on; }}\n\
         http {{\n  access_log off;\n  sendfile on;\n  tcp_nopush on;\n  tcp_nodelay on;\n  \
         keepalive_requests 1000000000;\n  keepalive_timeout 300s;\n  \
         open_file_cache max=1000 inactive=300s;\n  open_file_cache_valid 60s;\n  \
         default_type application/octet-stream;\n  client_body_temp_path body;\n  proxy_temp_path proxy;\n  \
         fastcgi_temp_path fastcgi;\n  uwsgi_temp_path uwsgi;\n  scgi_temp_path scgi;\n  \
         server {{\n    listen {address} backlog=16384;\n    location / {{ {location} }}\n  }}\n}}\n"
    )
}
