//! Memory, descriptors, accept modes and Unix-domain sockets.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal};
use testkit::{TestClient, TestFolder};

use crate::process::{Server, Summary, drivers, has_proc, program, program_after};

/// Returns the most address space that a process has had, in KiB.
fn mapped_kib(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).expect("its size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Parses the number in the line about memory.
fn bytes_of(line: Option<&str>) -> u64 {
    let line = line.expect("a line about memory");
    let (number, unit) = line.strip_prefix("up to ").and_then(|rest| rest.split_once(' ')).expect(line);
    let bytes = match unit.split(' ').next() {
        Some("MiB") => f64::from(1 << 20),
        Some("KiB") => 1024.0,
        _ => panic!("{line}"),
    };
    (number.parse::<f64>().expect(line) * bytes) as u64
}

#[test]
fn refuses_partial_heads_beyond_the_memory_limit() {
    const LEFT_KIB: u64 = 128 * 1024;
    const CLIENTS: usize = 2600;
    if !has_proc() {
        return;
    }
    let folder = TestFolder::new();
    for driver in drivers() {
        let arguments = ["--driver", driver, "--workers", "1", "--listen", "127.0.0.1:0", "-v"];
        let unlimited = Server::of(&mut program(&folder, &arguments));
        let kib = mapped_kib(unlimited.pid()) + LEFT_KIB;
        drop(unlimited);
        let mut server = Server::of(&mut program_after(&format!("ulimit -v {kib}"), &folder, &arguments));
        let bytes = bytes_of(server.line("memory"));
        assert!((1 << 20..LEFT_KIB * 512).contains(&bytes), "{bytes}");
        // Together they need more than the process can map.
        let part = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(59_000));
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send(&part);
        }
        let all = (CLIENTS * part.len()) as u64;
        let so_far = Summary::until(&mut server, |so_far| so_far.count("bytes received") >= all);
        let refused = so_far.reached("buffered_bytes_max");
        assert!(refused > 500, "{refused} refused");
        assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
    }
}

#[test]
fn reports_a_memory_limit_as_set() {
    let folder = TestFolder::new();
    folder.file("site.toml", "[limits]\nbuffered_bytes_max = 2097152\n[server]\nworkers = 1\n");
    let server = Server::start(&folder, &["--config", "site.toml", "-v"]);
    assert_eq!(bytes_of(server.line("memory")), 2 << 20);
}

#[test]
fn keeps_no_memory_of_the_parsed_configuration() {
    const ROUTES: u64 = 20_000;
    let folder = TestFolder::new();
    folder.file("www/index.html", "index");
    let mut config = String::new();
    for site in 0..ROUTES / 100 {
        config += &format!("[[site]]\nhosts = [\"{site}.test\"]\nroot = \"www\"\n");
        (0..100).for_each(|route| config += &format!("[[site.route]]\npath = \"/part-{route}/*\"\n"));
    }
    folder.file("site.toml", config);
    let rss_kib = |arguments: &[&str]| {
        let server = Server::start(&folder, arguments);
        assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
        testkit::process::rss_kib(server.pid().as_raw_nonzero().get().unsigned_abs())
    };
    let (Some(plain), Some(configured)) = (rss_kib(&["www"]), rss_kib(&["--config", "site.toml"])) else {
        return;
    };
    // Parsed, a route takes 2 KiB.
    assert!(configured < plain + ROUTES / 2, "{plain} KiB, {configured} KiB with {ROUTES} routes");
}

/// Sets the soft descriptor limit of a process. Returns `false` if the command is missing.
fn limit_descriptors(pid: Pid, soft: u64) -> bool {
    let pid = format!("--pid={}", pid.as_raw_nonzero());
    let Ok(output) = Command::new("prlimit").args([pid, format!("--nofile={soft}:")]).output() else {
        println!("skipped: there is no prlimit");
        return false;
    };
    assert!(output.status.success(), "{output:?}");
    true
}

#[test]
fn serves_curl_at_a_unix_socket() {
    let folder = TestFolder::new();
    folder.file("site/index.html", "index");
    folder.file("site/large.txt", "0123456789".repeat(100_000));
    if Command::new("curl").arg("--version").output().is_err() {
        println!("skipped: there is no curl");
        return;
    }
    let path = folder.at("socket");
    let address = format!("unix:{}", path.display());
    for driver in drivers() {
        for (mode, workers) in [("reuseport", "1"), ("reuseport", "3"), ("dispatch", "2")] {
            let arguments =
                ["site", "--listen", &address, "--driver", driver, "--accept", mode, "-w", workers];
            let server = Server::of(&mut program(&folder, &arguments));
            assert_eq!(server.line("socket"), path.to_str());
            let get = |target: &str| {
                let mut curl = Command::new("curl");
                curl.args(["--silent", "--show-error", "--fail", "--max-time", "20", "--unix-socket"]);
                let output =
                    curl.arg(&path).arg(format!("http://localhost/{target}")).output().expect("curl");
                assert!(output.status.success(), "{output:?}");
                output.stdout
            };
            assert_eq!(get(""), b"index");
            assert!(get("large.txt") == "0123456789".repeat(100_000).as_bytes());
            let (stdout, _) = server.stop();
            assert!(stdout.contains("2 requests handled"), "{stdout}");
            assert!(!path.exists(), "its file goes with it");
        }
    }
}

#[test]
fn resumes_accepting_when_descriptors_are_free() {
    if testkit::tls::skips("a handshake waits until its connection is accepted") {
        return;
    }
    let folder = TestFolder::new();
    for driver in drivers() {
        let arguments = ["--workers", "2", "--accept", "dispatch", "--driver", driver];
        let mut server = Server::start(&folder, &arguments);
        // Fewer than it has open.
        if !limit_descriptors(server.pid(), 8) {
            return;
        }
        let mut waiting: Vec<TestClient> = (0..3).map(|_| server.connect()).collect();
        for client in &mut waiting {
            client.ask("GET", "/", &[]);
        }
        let line = server.next_line();
        assert!(line.contains("no connections are accepted for now: its share of descriptors"), "{line}");
        limit_descriptors(server.pid(), 200);
        for client in &mut waiting {
            assert_eq!(client.response("GET").status, 200);
        }
        let line = server.next_line();
        assert!(line.contains("connections are accepted again"), "{line}");
    }
}

/// The only worker is full, connections wait in its inbox, and the acceptor has stopped.
#[test]
fn a_second_signal_stops_a_full_worker_without_acceptor() {
    if testkit::tls::skips("a handshake waits until its connection is accepted") {
        return;
    }
    let folder = TestFolder::new();
    folder.file("site/index.html", "index");
    folder.file("d.toml", "[performance]\nmax_connections = 1\n[[site]]\nroot = \"site\"\n");
    for driver in drivers() {
        let arguments = ["d.toml", "-w", "1", "--accept", "dispatch", "--driver", driver];
        let server = Server::start(&folder, &arguments);
        let mut first = server.connect();
        assert_eq!(first.request("GET", "/", &[]).status, 200);
        // More than one batch, so that the last ones are taken after the acceptor has stopped.
        let mut asking: Vec<TestClient> = (0..129).map(|_| server.connect()).collect();
        for client in &mut asking {
            client.ask("GET", "/", &[]);
        }
        let mut quiet = server.connect();
        quiet.send("GET / HT");
        let _last: Vec<TestClient> = (0..15).map(|_| server.connect()).collect();
        server.signal(Signal::TERM);
        // Each makes room for the next by closing.
        for mut client in asking {
            assert_eq!(client.response("GET").status, 200);
        }
        server.stop();
    }
}

#[test]
fn new_clients_do_not_wait_for_a_full_worker() {
    let folder = TestFolder::new();
    folder.file("site/index.html", "index");
    folder.file("d.toml", "[performance]\nmax_connections = 2\n[[site]]\nroot = \"site\"\n");
    for driver in drivers() {
        let arguments = ["d.toml", "-w", "2", "--accept", "dispatch", "--driver", driver];
        let mut server = Server::start(&folder, &arguments);
        let mut staying = server.connect();
        assert_eq!(staying.request("GET", "/", &[]).status, 200);
        let mut going = server.connect();
        assert_eq!(going.request("GET", "/", &[]).status, 200);
        // This one makes the first worker full.
        let mut waiting = server.connect();
        waiting.ask("GET", "/", &[]);
        let line = server.next_line();
        assert!(line.contains("worker 0 accepts no connections for now"), "{line}");
        drop(going);
        for _ in 0..20 {
            assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
        }
        drop(staying);
        assert_eq!(waiting.response("GET").status, 200);
    }
}

#[test]
fn raises_the_soft_descriptor_limit_for_folders() {
    let folder = TestFolder::new();
    let mut config = String::new();
    for number in 0..100 {
        folder.file(format!("{number}/index.html"), format!("site {number}"));
        config += &format!("[[site]]\nhosts = [\"s{number}.test\"]\nroot = \"{number}\"\n");
    }
    folder.file("d.toml", config);
    let arguments = ["d.toml", "--listen", "127.0.0.1:0", "--verbose"];
    let server = Server::of(&mut program_after("ulimit -Sn 64", &folder, &arguments));
    assert!(server.banner.contains("limit raised from 64 to"), "{}", server.banner);
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: s99.test\r\n\r\n");
    assert_eq!(client.response("GET").status, 200);
}

/// Idle connections on io_uring need no descriptor.
#[test]
fn serves_more_connections_than_descriptors() {
    const CLIENTS: usize = 700;
    let folder = TestFolder::new();
    folder.file("site/index.html", "index");
    folder.file("site/large.bin", vec![b'x'; 300_000]);
    folder.file("d.toml", format!("[performance]\nmax_connections = {CLIENTS}\n[[site]]\nroot = \"site\"\n"));
    for driver in drivers().iter().filter(|driver| **driver == "uring") {
        let arguments = ["d.toml", "--workers", "1", "--listen", "127.0.0.1:0", "--driver", driver];
        let server = Server::of(&mut program_after("ulimit -n 300", &folder, &arguments));
        if !server.banner.contains("limit 300: up to 700 connections, idle ones without a descriptor") {
            println!("skipped: this kernel can't store files\n{}", server.banner);
            return;
        }
        let mut clients: Vec<TestClient> = Vec::new();
        for _ in 0..CLIENTS {
            let mut client = server.connect();
            assert_eq!(client.request("GET", "/", &[]).status, 200);
            clients.push(client);
        }
        for client in &mut clients {
            assert_eq!(client.request("GET", "/large.bin", &[]).body.len(), 300_000);
        }
        drop(clients);
        assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
        server.stop();
    }
}
