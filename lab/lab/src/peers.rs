//! Other people's servers: where they are found, how they are built, and with which settings each runs.
//!
//! The settings are those that each one's documentation recommends for speed on one worker: no access log, persistent
//! connections, open files cached where possible. Peers from crates are built in a workspace of their own, `lab/peers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine;
use crate::process::{Launch, succeed};
use crate::programs::{cargo, root};
use crate::scenario::{JSON, PLAINTEXT, Scenario, Source};
use crate::server::Place;

/// Descriptors of a server, and connections that leave some for its files.
const DESCRIPTORS: u32 = 20_000;
const CONNECTIONS: u32 = 19_000;
/// Room for a burst of connections.
const BACKLOG: u32 = 16_384;
/// Seconds that an idle connection stays open: longer than any block.
const IDLE_S: u32 = 300;
/// The installed version of static-web-server: a measurement names what it compares.
const STATIC_WEB_SERVER: &str = "static-web-server@2.44.1";
/// Days on which versions were released, by what their programs print.
const RELEASED: [(&str, &str); 3] =
    [("nginx/1.22.1", "2022-10-19"), ("lighttpd/1.4.69", "2023-02-10"), ("h2o version 2.2.5", "2018-06-01")];

/// Starts nginx with files of the folder, or `return` with the text.
pub(crate) fn nginx(program: PathBuf, scenario: &Scenario, place: &Place<'_>) -> Result<Launch, String> {
    let location = match scenario.source {
        Source::Json => format!("default_type application/json; return 200 '{JSON}';"),
        Source::File => format!("root {};", place.folder.public().display()),
        Source::Plaintext | Source::Kinds => format!("default_type text/plain; return 200 '{PLAINTEXT}';"),
    };
    let (address, workers) = (place.address, place.workers);
    let text = format!(
        "daemon off;
worker_processes {workers};
pid nginx.pid;
error_log stderr error;
worker_rlimit_nofile {DESCRIPTORS};
events {{ worker_connections {CONNECTIONS}; multi_accept on; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  keepalive_timeout {IDLE_S}s;
  open_file_cache max=1000 inactive=300s;
  open_file_cache_valid 60s;
  default_type application/octet-stream;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen {address} backlog={BACKLOG};
    location / {{ {location} }}
  }}
}}
"
    );
    let (file, folder) = (place.folder.write("nginx.conf", &text)?, place.folder.path());
    let [folder, file] = [folder, &file].map(|path| path.display().to_string());
    Ok(Launch::new(program, ["-p", &folder, "-e", "stderr", "-c", &file]))
}

/// Starts lighttpd with one process. It caches metadata for a second or two by default.
pub(crate) fn lighttpd(program: PathBuf, place: &Place<'_>) -> Result<Launch, String> {
    let (ip, port, public) = (place.address.ip(), place.address.port(), place.folder.public());
    let text = format!(
        "server.bind = \"{ip}\"
server.port = {port}
server.document-root = \"{}\"
server.modules = ()
server.event-handler = \"linux-sysepoll\"
server.network-backend = \"sendfile\"
server.max-fds = {DESCRIPTORS}
server.max-connections = {CONNECTIONS}
server.listen-backlog = {BACKLOG}
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = {IDLE_S}
server.stat-cache-engine = \"simple\"
mimetype.assign = ( \"\" => \"application/octet-stream\" )
",
        public.display()
    );
    let file = place.folder.write("lighttpd.conf", &text)?;
    Ok(Launch::new(program, ["-D", "-f", &file.display().to_string()]))
}

/// Starts h2o. It caches open files by default; its accept queue has 65,536 entries, which the kernel cuts.
pub(crate) fn h2o(program: PathBuf, place: &Place<'_>) -> Result<Launch, String> {
    let (ip, port, public) = (place.address.ip(), place.address.port(), place.folder.public());
    let text = format!(
        "listen:
  host: {ip}
  port: {port}
num-threads: {}
max-connections: {CONNECTIONS}
http1-request-timeout: {IDLE_S}
hosts:
  default:
    paths:
      \"/\":
        file.dir: \"{}\"
        file.send-compressed: OFF
",
        place.workers,
        public.display()
    );
    let file = place.folder.write("h2o.yaml", &text)?;
    Ok(Launch::new(program, ["-m", "worker", "-c", &file.display().to_string()]))
}

/// Starts static-web-server without what it would add to responses or do to bodies.
pub(crate) fn static_web_server(program: PathBuf, place: &Place<'_>) -> Launch {
    let (ip, port, public) = (place.address.ip(), place.address.port(), place.folder.public());
    let place = [format!("--host={ip}"), format!("--port={port}"), format!("--root={}", public.display())];
    let rest = "--threads-multiplier=1 --log-level=error --compression=false --cache-control-headers=false \
                --security-headers=false --directory-listing=false";
    Launch::new(program, place.into_iter().chain(rest.split_whitespace().map(str::to_owned)))
}

/// Starts a program of the peers' workspace.
pub(crate) fn from_crate(program: PathBuf, place: &Place<'_>, threads: Option<&str>) -> Launch {
    let place = [place.address.to_string(), place.folder.public().display().to_string()];
    Launch::new(program, place.into_iter().chain(threads.map(str::to_owned)))
}

/// Returns the folder of all that is built for the peers.
fn target() -> PathBuf {
    root().join("target/peers")
}

/// Returns a program of the peers' workspace.
pub(crate) fn built(name: &str) -> PathBuf {
    target().join("release").join(name)
}

/// Returns the installed static-web-server, or its name.
pub(crate) fn static_web_server_program() -> PathBuf {
    let own = target().join("tools/bin/static-web-server");
    if own.is_file() { own } else { "static-web-server".into() }
}

/// Builds the peers from crates, with pinned versions.
pub(crate) fn build() -> Result<(), String> {
    let build = "build --release --locked --manifest-path lab/peers/Cargo.toml --target-dir target/peers";
    let install = format!("install --locked --root target/peers/tools {STATIC_WEB_SERVER}");
    for words in [build, &install] {
        crate::progress(&format!("cargo {words}"));
        let mut command = Command::new(cargo());
        // An installation builds in a temporary folder of its own.
        command.current_dir(root()).args(words.split(' ')).env_remove("CARGO_TARGET_DIR");
        succeed(command)?;
    }
    Ok(())
}

/// Returns the versions of the peers from crates, as their workspace's lock file has them.
pub(crate) fn locked() -> String {
    let lock = fs::read_to_string(root().join("lab/peers/Cargo.lock")).unwrap_or_default();
    let one = |package| format!("{package} {}", locked_version(&lock, package).unwrap_or("(not locked)"));
    ["hyper", "axum", "tower-http", "tokio"].map(one).join(", ")
}

fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let mut lines = lock.lines();
    lines.find(|line| line.strip_prefix("name = ").is_some_and(|name| name.trim_matches('"') == package))?;
    lines.next()?.strip_prefix("version = ").map(|version| version.trim_matches('"'))
}

/// Returns the day on which a version was released, where it is known.
pub(crate) fn released(version: &str) -> Option<&'static str> {
    let is = |marker: &str| {
        let rest = version.split_once(marker).map(|(_, rest)| rest);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    };
    RELEASED.iter().find(|(marker, _)| is(marker)).map(|(_, day)| *day)
}

/// Returns the version that a program prints.
pub(crate) fn version(program: &Path) -> String {
    let Some(path) = machine::lookup(program) else { return "not found".to_owned() };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let argument = match name.as_str() {
        "wrk" | "nginx" | "lighttpd" => "-v",
        "static-web-server" => "-V",
        _ => "--version",
    };
    machine::version(&path, argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_versions_in_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"hyper-util\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"hyper\"\nversion = \"1.12.0\"\n";
        assert_eq!(locked_version(lock, "hyper"), Some("1.12.0"));
        assert_eq!(locked_version(lock, "axum"), None);
        assert!(!locked().contains("not locked"), "{}", locked());
    }

    #[test]
    fn a_release_has_its_day_and_no_other() {
        assert_eq!(released("nginx version: nginx/1.22.1"), Some("2022-10-19"));
        assert_eq!(released("nginx version: nginx/1.22.10"), None);
        assert_eq!(released(""), None);
    }
}
