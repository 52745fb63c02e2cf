//! The admin listener of the built program: its flag, drains, reloads, sites, the log, the cache, and a taken port.

use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;
use testkit::{TIMEOUT, TestClient, TestFolder, until_refused};

use crate::process::{Server, drivers, run};

/// Connects to the admin listener of a server.
pub(crate) fn connect(server: &Server) -> TestClient {
    TestClient::connect_in_clear(address(server))
}

pub(crate) fn address(server: &Server) -> SocketAddr {
    let url = server.line("admin").expect("an admin listener");
    let authority = url.strip_prefix("http://").and_then(|url| url.strip_suffix("/status")).expect(url);
    authority.parse().expect("an address and a port")
}

/// Returns a metric by its name and labels.
#[track_caller]
pub(crate) fn value(server: &Server, key: &str) -> u64 {
    let response = connect(server).get("/metrics");
    let line = response.text().lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {key}: {}", response.text())).parse().expect("a number")
}

/// Waits until a metric has a value.
#[track_caller]
fn until(server: &Server, key: &str, expected: u64) {
    let start = Instant::now();
    while value(server, key) != expected {
        assert!(start.elapsed() < TIMEOUT, "{key} is {} and not {expected}", value(server, key));
    }
}

fn status(server: &Server) -> Value {
    serde_json::from_slice(&connect(server).get("/status.json").body).expect("JSON")
}

fn with_site() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("site/index.html", "hello").file("site/large.bin", vec![b'x'; 32 << 20]);
    folder
}

#[test]
fn serves_on_while_the_server_drains_and_ends_after_it() {
    for driver in drivers() {
        let folder = with_site();
        let server = Server::start(&folder, &["site", "--driver", driver, "--admin", "0"]);
        let mut download = server.connect();
        download.ask("GET", "/large.bin", &[]).head();
        let mut admin = connect(&server);
        assert_eq!(admin.get("/ready").status, 200);
        server.signal(Signal::TERM);
        until_refused(server.address());
        assert_eq!((admin.get("/ready").status, admin.get("/health").status), (503, 200));
        let status = status(&server);
        assert_eq!(status["server"]["state"], "draining");
        let messages = status["messages"].as_array().expect("messages");
        assert!(messages.iter().any(|of| of["text"].as_str().expect("a text").starts_with("draining")));
        let admin_address = address(&server);
        while !download.data().is_empty() {}
        drop(download);
        assert_eq!(server.end().0, Some(0));
        until_refused(admin_address);
    }
}

#[test]
fn counts_files_in_memory_and_lines_of_the_log() {
    for driver in drivers() {
        let folder = with_site();
        let arguments = ["site", "--driver", driver, "--workers", "1", "--admin", "0", "--log", "a.log"];
        let server = Server::start(&folder, &arguments);
        let mut client = server.connect();
        (0..5).for_each(|_| assert_eq!(client.get("/").status, 200));
        until(&server, "shearwater_log_lines_total{result=\"written\"}", 5);
        assert_eq!(value(&server, "shearwater_log_lines_total{result=\"dropped\"}"), 0);
        for (key, expected) in [("files", 1), ("misses_total", 1), ("hits_total", 4)] {
            assert_eq!(value(&server, &format!("shearwater_cache_{key}")), expected, "{driver} {key}");
        }
        assert!(value(&server, "shearwater_cache_bytes") >= 5);
        assert_eq!(value(&server, "shearwater_site_requests_total{site=\"(default)\",class=\"2xx\"}"), 5);
        let status = status(&server);
        assert_eq!(status["log"]["destination"], "a.log");
        assert_eq!((&status["cache"]["files"], &status["sites"][0]["requests"]), (&1.into(), &5.into()));
        assert_eq!(
            (&status["server"]["driver"], &status["configuration"]["file"]),
            (&(*driver).into(), &Value::Null)
        );
    }
}

#[test]
fn shows_a_log_that_fails_from_the_start_on() {
    for driver in drivers() {
        let folder = with_site();
        let made = Command::new("mkfifo").arg(folder.at("pipe")).status();
        assert!(made.expect("mkfifo").success());
        let server = Server::start(&folder, &["site", "--driver", driver, "--admin", "0", "--log", "pipe"]);
        assert_eq!(value(&server, "shearwater_log_failing"), 1);
        let status = status(&server);
        assert_eq!(status["log"]["failing"], true);
        let text = status["messages"][0]["text"].as_str().expect("a message");
        assert!(text.starts_with("can't write the access log pipe: "), "{text}");
        let reader = File::open(folder.at("pipe")).expect("the server opens it again");
        until(&server, "shearwater_log_failing", 0);
        let messages = &self::status(&server)["messages"];
        assert_eq!((&messages[0]["level"], &messages[1]["level"]), (&"error".into(), &"info".into()));
        drop(reader);
    }
}

/// Returns a configuration with a site for each host.
fn sites(hosts: &[&str]) -> String {
    let site = |host: &&str| format!("[[site]]\nhosts = [\"{host}\"]\nroot = \"site\"\n");
    let sites: String = hosts.iter().map(site).collect();
    format!("[admin]\nlisten = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n{sites}")
}

#[test]
fn counts_sites_that_appear_with_a_reload() {
    for driver in drivers() {
        let folder = with_site();
        folder.file("site.toml", sites(&["a.example", "b.example"]));
        let arguments = ["site.toml", "--driver", driver];
        let mut server = Server::of(&mut crate::process::program(&folder, &arguments));
        let get = |server: &Server, host: &str| {
            let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(server.connect().send(head).response("GET").status, 200);
        };
        let of = |site: &str| format!("shearwater_site_requests_total{{site=\"{site}\",class=\"2xx\"}}");
        get(&server, "a.example");
        get(&server, "b.example:80");
        until(&server, &of("b.example"), 1);
        folder.file("site.toml", sites(&["c.example", "b.example"]));
        let mut reload = || {
            server.signal(Signal::HUP);
            let mut log = String::new();
            while !log.contains("shearwater: reloaded ") && !log.contains("shearwater: not reloaded: ") {
                log.push_str(&server.next_line());
            }
            log
        };
        reload();
        folder.file("site.toml", "wrong");
        reload();
        get(&server, "c.example");
        get(&server, "b.example");
        // The first site is that of all other hosts.
        get(&server, "d.example");
        until(&server, &of("c.example"), 2);
        until(&server, &of("b.example"), 2);
        assert_eq!(value(&server, &of("a.example")), 1, "counts never fall");
        assert_eq!(value(&server, "shearwater_reloads_total{result=\"done\"}"), 1);
        assert_eq!(value(&server, "shearwater_reloads_total{result=\"refused\"}"), 1);
        let status = status(&server);
        assert_eq!(status["configuration"]["file"], "site.toml");
        let messages = status["messages"].as_array().expect("messages");
        let levels: Vec<_> = messages.iter().map(|of| of["level"].as_str().expect("a level")).collect();
        assert_eq!(levels, ["info", "error"], "{messages:?}");
        assert!(messages[1]["text"].as_str().expect("a text").starts_with("not reloaded"), "{messages:?}");
    }
}

#[test]
fn a_changed_listener_needs_a_restart() {
    for driver in drivers() {
        let folder = with_site();
        folder.file("site.toml", sites(&["a.example"]));
        let mut server =
            Server::of(&mut crate::process::program(&folder, &["site.toml", "--driver", driver]));
        folder.file(
            "site.toml",
            sites(&["a.example"]).replace("127.0.0.1:0\"\n[[listen", "unix:a.sock\"\n[[listen"),
        );
        server.signal(Signal::HUP);
        let line = server.next_line();
        let expected = "warning: a change of `admin.listen` to unix:";
        assert!(line.starts_with(expected) && line.contains("takes effect after a restart"), "{line}");
    }
}

#[test]
fn a_taken_port_is_an_error_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    for driver in drivers() {
        let folder = with_site();
        let arguments = ["site", "--listen", "127.0.0.1:0", "--driver", driver, "--admin", &address];
        let (code, stdout, stderr) = run(&folder, &arguments);
        let expected = format!(
            "error: admin listener: {address} is taken by another program: choose another port, or end that program\n\
             help: another instance of this program may listen on {address}\n"
        );
        assert_eq!((code, &stdout[..], &stderr[..]), (1, "", &expected[..]));
    }
}

#[test]
fn the_flag_overrides_the_file_and_takes_local_addresses_only() {
    let folder = with_site();
    folder.file("site.toml", sites(&["a.example"]));
    for driver in drivers() {
        let arguments = ["site.toml", "--driver", driver, "--admin", "unix:a.sock"];
        let server = Server::of(&mut crate::process::program(&folder, &arguments));
        assert_eq!(server.line("admin"), Some("unix:a.sock"));
        let expected = "--admin unix:a.sock overrides admin.listen = \"127.0.0.1:0\"";
        assert_eq!(server.line("flag"), Some(expected));
        let stream = UnixStream::connect(folder.at("a.sock")).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        assert_eq!(TestClient::new(stream).get("/ready").status, 200);
    }
    let (code, _, stderr) = run(&folder, &["site", "--admin", "0.0.0.0:0"]);
    let expected = "error: --admin 0.0.0.0:0: other machines can reach this address\nhelp: use 127.0.0.1 ";
    assert!(code == 2 && stderr.starts_with(expected), "{stderr}");
}

/// Skipped without `promtool`, which is a part of Prometheus.
#[test]
fn promtool_accepts_the_metrics() {
    if Command::new("promtool").arg("--version").output().is_err() {
        println!("skipped: there is no promtool");
        return;
    }
    for driver in drivers() {
        let folder = with_site();
        let server = Server::start(
            &folder,
            &["site", "--driver", driver, "--admin", "0", "--log", "a.log", "--self-signed"],
        );
        let metrics = connect(&server).get("/metrics").body;
        let mut check = Command::new("promtool");
        check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut check = check.spawn().expect("it starts");
        check.stdin.take().expect("a pipe").write_all(&metrics).expect("it reads");
        let output = check.wait_with_output().expect("it ends");
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
}

#[test]
fn scrapes_under_load_disturb_no_request() {
    const CLIENTS: usize = 4;
    const REQUESTS: usize = 2_000;
    for driver in drivers() {
        let folder = with_site();
        let server = Server::start(&folder, &["site", "--driver", driver, "--workers", "2", "--admin", "0"]);
        let ended = AtomicUsize::new(0);
        let mut scrapes = 0;
        let mut last = 0;
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let mut client = server.connect();
                    for _ in 0..REQUESTS {
                        assert_eq!(client.get("/").text(), "hello");
                    }
                    ended.fetch_add(1, Relaxed);
                });
            }
            while ended.load(Relaxed) < CLIENTS && scrapes < 1_000_000 {
                let count = value(&server, "shearwater_requests_total{method=\"GET\",class=\"2xx\"}");
                assert!(count >= last, "a count falls");
                (last, scrapes) = (count, scrapes + 1);
            }
        });
        assert!(scrapes > 0);
        let all = (CLIENTS * REQUESTS) as u64;
        until(&server, "shearwater_requests_total{method=\"GET\",class=\"2xx\"}", all);
        assert_eq!(value(&server, "shearwater_request_duration_seconds_count"), all);
        assert_eq!(value(&server, "shearwater_request_duration_seconds_bucket{le=\"+Inf\"}"), all);
        assert_eq!(value(&server, "shearwater_request_ends_total{end=\"complete\"}"), all);
    }
}
