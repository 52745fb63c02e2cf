//! A test of each key's effect on the running server. `configured.rs` lists them; a key without a test is an error.
//!
//! Each test changes its key and nothing else that could have the same effect. Timeouts are recognized by the limits that the server
//! reports, not by a clock.

pub(crate) mod admin;
pub(crate) mod guards;
pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod performance;
pub(crate) mod server;
pub(crate) mod tls;

use std::net::TcpListener;
use std::time::Duration;

use testkit::TestFolder;

use crate::process::{Server, drivers, program};

/// A site of one folder.
pub(crate) const SITE: &str = "[[site]]\nroot = \"www\"\n";

/// Less than the shortest default timeout (10 s), and much more than the timeouts set here.
const SOONER_THAN_DEFAULTS: Duration = Duration::from_secs(9);

/// Returns a folder with a site and its configuration.
pub(crate) fn folder(config: &str) -> TestFolder {
    let folder = TestFolder::new();
    folder.file("www/index.html", "index").file("www/f.txt", "content");
    folder.file("site.toml", config);
    folder
}

/// Serves [`SITE`] with settings on each driver.
fn on_each_driver(settings: &str, check: impl Fn(&TestFolder, Server)) {
    on_each_driver_with(settings, &[], check);
}

/// As [`on_each_driver`], with the whole start report.
fn on_each_driver_verbosely(settings: &str, check: impl Fn(&TestFolder, Server)) {
    on_each_driver_with(settings, &["--verbose"], check);
}

fn on_each_driver_with(settings: &str, flags: &[&str], check: impl Fn(&TestFolder, Server)) {
    for driver in drivers() {
        println!("{driver}: {settings}");
        let folder = folder(&format!("{settings}{SITE}"));
        let arguments = [&["site.toml", "--driver", driver], flags].concat();
        check(&folder, Server::start(&folder, &arguments));
    }
}

/// Sends bytes on a new connection and returns everything received until it closes, sooner than by any default.
#[track_caller]
fn until_closed(server: &Server, bytes: &str) -> String {
    let mut client = server.connect();
    client.stream().set_read_timeout(Some(SOONER_THAN_DEFAULTS)).expect("a timeout");
    client.send(bytes);
    String::from_utf8(client.rest()).expect("text")
}

/// Starts with a configuration for a free port. Retries if another process takes the port.
fn start_on_a_port(config: impl Fn(u16) -> String, driver: &str) -> (TestFolder, Server, u16) {
    for _ in 0..20 {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a port").port();
        let folder = folder(&config(port));
        let mut command = program(&folder, &["site.toml", "--driver", driver]);
        let (code, stderr) = match Server::try_start(&mut command) {
            Ok(server) => return (folder, server, port),
            Err(ended) => ended,
        };
        assert!(code == Some(1) && stderr.contains("is taken by another program"), "{stderr}");
    }
    panic!("no port stays free");
}
