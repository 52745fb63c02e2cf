//! Messages to the operator on standard error: their format, level and prefix, and a reader that hangs.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use shearwater_metrics::limits::ADMIN_CONNECTIONS_MAX;
use testkit::{TIMEOUT, TestFolder, free_address};

use crate::admin;
use crate::keys::{SITE, folder};
use crate::process::{Server, drivers, program};

fn configuration(logging: &str) -> String {
    format!("[logging]\n{logging}\n{SITE}")
}

/// Starts on each driver.
fn on_each_driver(logging: &str, check: impl Fn(&TestFolder, Server)) {
    for driver in drivers() {
        let folder = folder(&configuration(logging));
        check(&folder, Server::start(&folder, &["site.toml", "--driver", driver]));
    }
}

/// Parses the next message.
fn next_json(server: &mut Server) -> Value {
    let line = server.next_line();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
pub(crate) fn format() {
    on_each_driver("format = \"json\"", |folder, mut server| {
        server.signal(Signal::USR1);
        let totals = next_json(&mut server);
        assert_eq!((&totals["level"], &totals["target"]), (&"info".into(), &"shearwater::totals".into()));
        assert!(
            totals["message"].as_str().is_some_and(|text| text.starts_with("so far 0 requests")),
            "{totals}"
        );
        let time = totals["time"].as_str().expect("a time");
        assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{time}");

        // A refused reload: its errors are a member.
        folder.file("site.toml", "[server]\nwokers = 1\n");
        server.signal(Signal::HUP);
        let refused = next_json(&mut server);
        assert_eq!((&refused["level"], &refused["kind"]), (&"error".into(), &"reload_refused".into()));
        let details = refused["details"].as_str().expect("errors");
        assert!(details.starts_with("error: unknown key `wokers`\n --> site.toml:2:1\n"), "{details}");

        // Warnings of a reload that succeeds, and the other format from then on.
        folder.file("site.toml", configuration("level = \"info\"") + "[server]\nbacklog = 7\n");
        server.signal(Signal::HUP);
        let warning = server.next_line();
        assert!(warning.starts_with("warning: a change of `server.backlog` to 7 takes effect"), "{warning}");
        assert!(server.next_line().starts_with("shearwater: reloaded site.toml: "));
        folder.file("site.toml", configuration("format = \"json\"") + "[server]\nbacklog = 7\n");
        server.signal(Signal::HUP);
        let warning = next_json(&mut server);
        assert_eq!((&warning["level"], &warning["kind"]), (&"warn".into(), &"configuration_warnings".into()));
        assert!(warning["details"].as_str().is_some_and(|text| text.starts_with("warning: a change of ")));
        assert_eq!(next_json(&mut server)["kind"], "reloaded");
        let (_, stderr) = server.stop();
        let all_json = stderr.lines().all(|line| serde_json::from_str::<Value>(line).is_ok());
        assert!(all_json && stderr.contains("\"kind\":\"draining\""), "{stderr}");
    });
}

#[test]
fn messages_of_the_admin_listener_are_named_and_its_end_is_not_reported() {
    for driver in drivers() {
        let folder = folder(&configuration("format = \"json\""));
        let mut server =
            Server::start(&folder, &["site.toml", "--driver", driver, "--admin", "0", "--workers", "1"]);
        let held: Vec<_> = (0..=ADMIN_CONNECTIONS_MAX).map(|_| admin::connect(&server)).collect();
        let full = next_json(&mut server);
        assert_eq!((&full["kind"], &full["server"]), (&"connections_full".into(), &"admin".into()), "{full}");
        let text = full["message"].as_str().expect("a message");
        assert!(text.starts_with("admin: worker 0 accepts no connections for now: "), "{text}");
        drop(held);
        let (_, stderr) = server.stop();
        for kind in ["draining", "totals"] {
            assert_eq!(stderr.matches(&format!("\"kind\":\"{kind}\"")).count(), 1, "{kind}: {stderr}");
        }
    }
}

#[test]
fn a_reload_changes_the_level() {
    on_each_driver("level = \"error\"", |folder, mut server| {
        folder.file("site.toml", configuration("level = \"debug\""));
        server.signal(Signal::HUP);
        assert!(server.next_line().starts_with("shearwater: reloaded site.toml: "), "by the new level");
        let (_, stderr) = server.stop();
        assert!(stderr.contains("shearwater: worker 0 has ended\n"), "{stderr}");
    });
}

/// Returns what a server writes to a file, from its start to its end.
fn logged_to_file(folder: &TestFolder, driver: &str) -> String {
    let address = free_address().expect("a free port");
    let mut command = program(folder, &["site.toml", "--driver", driver, "--listen", &address.to_string()]);
    command.stderr(File::create(folder.at("messages")).expect("a file")).stdout(Stdio::null());
    let server = Server::silent(command.spawn().expect("it starts"), address);
    // Signals are handled before the first response.
    assert_eq!(server.connect().get("/f.txt").status, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.end().0, Some(0));
    fs::read_to_string(folder.at("messages")).expect("text")
}

#[test]
fn messages_in_a_file_begin_with_the_time() {
    for driver in drivers() {
        let text = logged_to_file(&folder(&configuration("level = \"info\"")), driver);
        assert!(
            text.contains("Z shearwater: draining: ") && text.contains("Z shearwater: in all "),
            "{text}"
        );
        for line in text.lines() {
            let (time, _) = line.split_once(" shearwater: ").unwrap_or_else(|| panic!("{line}"));
            let is_digit = |at: usize| time.as_bytes()[at].is_ascii_digit();
            assert!(time.len() == 24 && [0, 3, 5, 8, 11, 22].into_iter().all(is_digit), "{line}");
            assert_eq!((&time[10..11], &time[19..20], &time[23..]), ("T", ".", "Z"), "{line}");
        }
    }
}

#[test]
fn the_journal_gets_priorities_instead_of_times() {
    for driver in drivers() {
        let folder = folder(&configuration("level = \"info\""));
        let (mut journal, stderr) = UnixStream::pair().expect("sockets");
        let metadata = File::from(std::os::fd::OwnedFd::from(stderr.try_clone().expect("a copy"))).metadata();
        let metadata = metadata.expect("its metadata");
        let address = free_address().expect("a free port");
        let mut command =
            program(&folder, &["site.toml", "--driver", driver, "--listen", &address.to_string()]);
        command.env("JOURNAL_STREAM", format!("{}:{}", metadata.dev(), metadata.ino()));
        command.stderr(std::os::fd::OwnedFd::from(stderr)).stdout(Stdio::null());
        let child = command.spawn().expect("it starts");
        drop(command);
        let server = Server::silent(child, address);
        assert_eq!(server.connect().get("/f.txt").status, 200);
        server.signal(Signal::USR1);
        server.signal(Signal::TERM);
        server.end();
        let mut text = String::new();
        journal.read_to_string(&mut text).expect("text");
        assert!(text.starts_with("<6>shearwater: ") && text.contains("<6>shearwater: draining: "), "{text}");
        assert!(text.lines().all(|line| line.starts_with("<6>shearwater: ")), "{text}");
    }
}

/// Fills a pipe that nobody reads, so that the next message must wait.
fn fill(server: &Server, pid: Pid) {
    // Each signal writes some 200 bytes; a pipe holds 64 KiB. Signals that arrive together count once.
    for _ in 0..2_000 {
        kill_process(pid, Signal::USR1).expect("signalled");
        assert_eq!(server.connect().get("/f.txt").status, 200);
    }
}

#[test]
fn a_reader_of_standard_error_that_hangs_stops_neither_requests_nor_the_drain() {
    for driver in drivers() {
        let folder = folder(&configuration("level = \"debug\""));
        let server = Server::start(&folder, &["site.toml", "--driver", driver]);
        fill(&server, server.pid());
        let begun = Instant::now();
        server.signal(Signal::TERM);
        // Nothing reads standard error until it has ended.
        while fs::exists(format!("/proc/{}/fd/0", server.pid().as_raw_nonzero())).unwrap_or(false) {
            assert!(begun.elapsed() < TIMEOUT, "it hangs");
            std::thread::yield_now();
        }
        let (code, _, stderr) = server.end();
        assert_eq!(code, Some(0));
        assert!(stderr.starts_with("shearwater: so far "), "{stderr}");
    }
}
