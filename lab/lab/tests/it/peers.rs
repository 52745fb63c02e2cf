//! The peers: their configurations, versions and ages.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::Duration;

use lab::peers::{self, h2o, lighttpd, lock, nginx};
use lab::process::{Launch, Server};
use lab::release::{Day, day_of};
use lab::scenario::{SCENARIOS, Source};

const PUBLIC: &str = "some/folder";

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 20_100))
}

#[test]
fn nginx_serves_what_the_scenario_asks_and_logs_nothing() {
    for scenario in SCENARIOS {
        let text = nginx::configuration(scenario, Path::new(PUBLIC), address(), 1);
        let wanted = match scenario.source {
            Source::File => format!("root {PUBLIC};"),
            Source::Plaintext | Source::Json => {
                format!("return 200 '{}'", String::from_utf8_lossy(&scenario.body()))
            }
        };
        assert!(text.contains(&wanted), "{text}");
        assert!(text.contains("access_log off") && text.contains("listen 127.0.0.1:20100"), "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
    }
}

#[test]
fn the_other_servers_of_files_are_told_where_and_what() {
    let text = lighttpd::configuration(Path::new(PUBLIC), address());
    assert!(text.contains("server.bind = \"127.0.0.1\"\nserver.port = 20100\n"), "{text}");
    assert!(text.contains("server.document-root = \"some/folder\"") && !text.contains("accesslog"), "{text}");
    let text = h2o::configuration(Path::new(PUBLIC), address(), 1);
    assert!(text.contains("host: 127.0.0.1\n  port: 20100\nnum-threads: 1\n"), "{text}");
    assert!(text.contains("file.dir: \"some/folder\"") && !text.contains("access-log"), "{text}");
}

#[test]
fn versions_are_those_of_the_lock_file() {
    let text = "version = 4\n\n[[package]]\nname = \"hyper-util\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"hyper\"\nversion = \"1.12.0\"\n";
    assert_eq!(lock::version(text, "hyper"), Some("1.12.0"));
    assert_eq!(lock::version(text, "hyper-util"), Some("0.1.0"));
    assert_eq!(lock::version(text, "axum"), None);
    for package in ["hyper", "axum", "tower-http", "tokio"] {
        assert!(!lock::versions(&[package]).contains("not locked"), "{package}");
    }
}

#[test]
fn what_builds_the_peers_is_pinned() {
    let [build, install] = peers::build_commands();
    assert!(build.contains(&"--locked".to_owned()) && install.contains(&"--locked".to_owned()));
    assert!(install.iter().any(|argument| argument.contains("static-web-server@")));
}

#[test]
fn workers_that_a_server_starts_after_it_listens_are_found() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let arguments = ["-c", "sleep 3 & wait"].map(str::to_owned).to_vec();
    let launch = Launch { program: "sh".into(), arguments, environment: Vec::new() };
    let log = std::env::temp_dir().join(format!("shearwater-lab-workers-{}.log", std::process::id()));
    // Its port is listened on before it runs.
    let mut server = Server::start(&launch, address, &log).expect("it starts");
    let is_found = (0..400).any(|_| {
        thread::sleep(Duration::from_millis(5));
        server.find_processes();
        server.ids().len() == 2
    });
    drop(server);
    std::fs::remove_file(&log).expect("it was written");
    assert!(is_found);
}

#[test]
fn a_release_has_its_day_and_no_other() {
    let day = |year, month, day| Day { year, month, day };
    assert_eq!(day_of("nginx version: nginx/1.22.1"), Some(day(2022, 10, 19)));
    assert_eq!(day_of("nginx version: nginx/1.22.10"), None);
    assert_eq!(day_of("nginx version: nginx/1.27.0"), None);
    assert_eq!(day_of(""), None);
}

#[test]
fn days_are_counted_through_leap_years() {
    let days = |year, month, day| Day { year, month, day }.days_since_epoch();
    assert_eq!(days(1970, 1, 1), 0);
    assert_eq!(days(1970, 3, 1), 59);
    assert_eq!(days(2000, 2, 29), 11_016);
    assert_eq!(days(2000, 3, 1), 11_017);
    assert_eq!(days(2026, 11, 21), 20_778);
    assert_eq!(Day { year: 2022, month: 10, day: 9 }.text(), "2022-10-09");
}
