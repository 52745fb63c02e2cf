//! The access log of the built program: its lines, rotation by a signal, and destinations that fail or are slow.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use testkit::{TIMEOUT, TestFolder, free_address};

use crate::process::{Server, drivers, program};

/// Longest acceptable time of a response while the log's destination takes nothing.
const LONGEST: Duration = Duration::from_secs(1);

/// Returns the lines of a log without the dates in brackets.
pub(crate) fn lines_of(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    undated(&text)
}

/// Returns the complete lines of a text without the dates in brackets.
fn undated(text: &str) -> Vec<String> {
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let undated = |line: &str| match (line.find('['), line.find(']')) {
        (Some(from), Some(until)) => format!("{}{}", &line[..=from], &line[until..]),
        _ => line.to_owned(),
    };
    complete.lines().map(undated).collect()
}

/// Waits until a log has so many lines.
///
/// A reader beside the writer may see a part of a write that crosses a page.
#[track_caller]
fn until_lines(path: &Path, count: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let lines = undated(&fs::read_to_string(path).unwrap_or_default());
        if lines.len() >= count {
            return lines;
        }
        assert!(start.elapsed() < TIMEOUT, "{lines:?}");
        std::thread::yield_now();
    }
}

fn with_site() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("site/index.html", "hello").file("site/large.bin", vec![b'x'; 1 << 20]);
    folder
}

fn start(folder: &TestFolder, driver: &str, log: &str) -> Server {
    Server::start(folder, &["site", "--driver", driver, "--log", log])
}

#[test]
fn logs_every_request_in_the_combined_format() {
    for driver in drivers() {
        let folder = with_site();
        let server = start(&folder, driver, "access.log");
        assert_eq!(server.line("log"), Some("access.log (combined)"));
        let mut client = server.connect();
        client.request("GET", "/", &["User-Agent: one \"agent\"", "Referer: http://example.org/"]);
        client.request("HEAD", "/?q", &[]);
        assert_eq!(client.request("GET", "/large.bin", &[]).body.len(), 1 << 20);
        client.ask("GET", "/a", &[]).ask("GET", "/b", &[]);
        (0..2).for_each(|_| drop(client.response("GET")));
        let mut bad = server.connect();
        bad.send("GET /bad\x07 HTTP/1.1\r\nHost: a\r\n\r\n").end_sending();
        bad.rest();
        let mut gone = server.connect();
        gone.send("POST /gone HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab").end_sending();
        gone.rest();
        drop((client, bad, gone));
        let (_, stderr) = server.stop();
        assert!(!stderr.contains("access log"), "{stderr}");
        let line = |rest: &str| format!("127.0.0.1 - - [] {rest} \"-\" \"-\"");
        let expected = [
            r#"127.0.0.1 - - [] "GET / HTTP/1.1" 200 5 "http://example.org/" "one \x22agent\x22""#.to_owned(),
            line(r#""HEAD /?q HTTP/1.1" 200 0"#),
            line(r#""GET /large.bin HTTP/1.1" 200 1048576"#),
            line(r#""GET /a HTTP/1.1" 404 10"#),
            line(r#""GET /b HTTP/1.1" 404 10"#),
        ];
        let mut lines = lines_of(&folder.at("access.log"));
        // Two workers' lines may be in any order.
        let of_others = |line: &String| line.contains("/bad") || line.contains("/gone");
        let mut others: Vec<_> = lines.extract_if(.., |line| of_others(line)).collect();
        others.sort();
        assert_eq!(lines, expected, "{driver}");
        assert_eq!(others.len(), 2, "{others:?}");
        assert!(others[0].starts_with(r#"127.0.0.1 - - [] "GET /bad\x07 HTTP/1.1" 400 "#), "{others:?}");
        assert!(others[1].starts_with(r#"127.0.0.1 - - [] "POST /gone HTTP/1.1" 400 "#), "{others:?}");
    }
}

#[test]
fn logs_clients_that_disconnect() {
    for driver in drivers() {
        let folder = TestFolder::new();
        folder.file("site/large.bin", vec![b'x'; 64 << 20]);
        folder.file("site.toml", "[log]\naccess = \"a.log\"\nformat = \"json\"\n[[site]]\nroot = \"site\"\n");
        let server = Server::start(&folder, &["site.toml", "--driver", driver]);
        let mut client = server.connect();
        client.ask("GET", "/large.bin", &[]).head();
        drop(client);
        until_lines(&folder.at("a.log"), 1);
        server.stop();
        let text = fs::read_to_string(folder.at("a.log")).expect("a log");
        let line: Value = serde_json::from_str(text.trim_end()).expect("JSON");
        assert_eq!(
            (&line["status"], &line["end"]),
            (&Value::from(200), &Value::from("disconnected")),
            "{line}"
        );
        let sent = line["body_sent"].as_u64().expect("a number");
        assert!(sent > 0 && sent < 64 << 20, "{line}");
    }
}

#[test]
fn sigusr1_reopens_a_renamed_file() {
    for driver in drivers() {
        let folder = with_site();
        let mut server = start(&folder, driver, "access.log");
        let (path, old) = (folder.at("access.log"), folder.at("access.log.1"));
        assert_eq!(server.connect().request("GET", "/first", &[]).status, 404);
        until_lines(&path, 1);
        fs::rename(&path, &old).expect("renamed");
        server.signal(Signal::USR1);
        assert_eq!(server.next_line(), "shearwater: access log: 1 lines written, 0 dropped\n");
        assert!(server.next_line().starts_with("shearwater: so far 1 requests "));
        let started = Instant::now();
        while !path.exists() {
            assert!(started.elapsed() < TIMEOUT);
        }
        assert_eq!(server.connect().request("GET", "/second", &[]).status, 404);
        server.stop();
        assert_eq!(lines_of(&old).len(), 1);
        let lines = lines_of(&path);
        assert!(lines.len() == 1 && lines[0].contains("GET /second"), "{lines:?}");
    }
}

#[test]
fn a_full_disk_is_reported_once_and_delays_nothing() {
    for driver in drivers() {
        let folder = with_site();
        let mut server = start(&folder, driver, "/dev/full");
        for _ in 0..50 {
            assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
        }
        let line = server.next_line();
        assert!(line.starts_with("shearwater: can't write the access log /dev/full: "), "{line}");
        assert!(line.ends_with("; help: free space on its file system\n"), "{line}");
        assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
        let (_, stderr) = server.stop();
        assert_eq!(stderr.matches("can't write").count(), 0, "{stderr}");
        assert!(
            stderr.contains("shearwater: 51 lines of the access log /dev/full were dropped\n"),
            "{stderr}"
        );
    }
}

#[test]
fn a_missing_folder_is_an_error_at_the_start() {
    let folder = with_site();
    let mut command = program(&folder, &["site", "--listen", "127.0.0.1:0", "--log", "none/access.log"]);
    let Err((code, output)) = Server::try_start(&mut command) else { panic!("it started") };
    assert_eq!(code, Some(2));
    assert!(output.starts_with("error: can't open the access log none/access.log: No such file"), "{output}");
    assert!(output.ends_with("help: create its folder\n"), "{output}");
}

#[test]
fn a_log_that_cant_be_opened_is_an_error_of_the_configuration() {
    let folder = with_site();
    for (path, help) in
        [("none/a.log", "create its folder"), ("site", "name a file in it"), ("site/f.txt/a.log", "")]
    {
        folder.file("log.toml", format!("[log]\naccess = \"{path}\"\n"));
        let output = program(&folder, &["check", "log.toml"]).output().expect("it starts");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{path}: {stderr}");
        assert!(stderr.starts_with("error: can't open the access log: "), "{path}: {stderr}");
        assert!(stderr.contains(" --> log.toml:2:") && stderr.contains(help), "{path}: {stderr}");
    }
}

#[test]
fn a_pipe_that_is_not_read_delays_nothing() {
    for driver in drivers() {
        let folder = with_site();
        let made = Command::new("mkfifo").arg(folder.at("pipe")).status();
        assert!(made.expect("mkfifo").success());
        let reader = {
            let path = folder.at("pipe");
            std::thread::spawn(move || File::open(path).expect("it is opened for writing"))
        };
        let mut server = start(&folder, driver, "pipe");
        let agent = format!("User-Agent: {}", "x".repeat(8000));
        // Without a reader at the start the pipe is opened for the first line.
        assert_eq!(server.connect().request("GET", "/", &[&agent]).status, 200);
        let mut reader = BufReader::new(reader.join().expect("a reader"));
        let mut client = server.connect();
        let mut longest = Duration::ZERO;
        let count = 4000;
        for _ in 0..count {
            let start = Instant::now();
            assert_eq!(client.request("GET", "/", &[&agent]).status, 200);
            longest = longest.max(start.elapsed());
        }
        assert!(longest < LONGEST, "{longest:?}");
        let mut notices = String::new();
        while !notices.contains("lines are being dropped") {
            notices = server.next_line();
        }
        // Whole lines are left when the pipe is read again.
        let mut lines = 0;
        let mut line = String::new();
        for _ in 0..100 {
            line.clear();
            reader.read_line(&mut line).expect("a line");
            assert!(line.starts_with("127.0.0.1 - - [") && line.ends_with("x\"\n"), "{line}");
            lines += 1;
        }
        assert_eq!(lines, 100);
        drop((client, reader));
        let (_, stderr) = server.stop();
        assert!(stderr.contains("lines of the access log pipe were dropped"), "{stderr}");
    }
}

#[test]
fn writes_to_standard_output_and_reports_elsewhere() {
    for driver in drivers() {
        let folder = with_site();
        let address = free_address().expect("a free port");
        let arguments = ["site", "--listen", &address.to_string(), "--driver", driver, "--log", "-"];
        let mut child = program(&folder, &arguments).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let server = Server::silent(child, address);
        let mut line = String::new();
        assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
        stdout.read_line(&mut line).expect("a line");
        assert!(line.contains("\"GET / HTTP/1.1\" 200 5"), "{line}");
        let (_, stderr) = server.stop();
        assert!(
            stderr.starts_with("Shearwater ") && stderr.contains("  log          - (combined)"),
            "{stderr}"
        );
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "");
    }
}

/// systemd's journal and inetd give the program a socket. Opening it by a path fails.
#[test]
fn paths_of_standard_output_are_standard_output_even_if_it_is_a_socket() {
    for (driver, path) in drivers().iter().zip(["/dev/stdout", "link"].into_iter().cycle()) {
        let folder = with_site();
        std::os::unix::fs::symlink("/dev/stdout", folder.at("link")).expect("a link");
        let (reader, writer) = UnixStream::pair().expect("sockets");
        reader.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let address = free_address().expect("a free port");
        let arguments = ["site", "--listen", &address.to_string(), "--driver", driver, "--log", path];
        let mut command = program(&folder, &arguments);
        let child = command.stdout(OwnedFd::from(writer)).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(command);
        let server = Server::silent(child, address);
        assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
        let mut lines = BufReader::new(reader).lines().map(|line| line.expect("a line"));
        let line = lines.find(|line| line.contains("\"GET / HTTP/1.1\" 200 5"));
        assert!(line.is_some(), "{driver} {path}");
        let (_, stderr) = server.stop();
        assert!(!stderr.contains("can't write the access log"), "{stderr}");
        assert_eq!(stderr.starts_with("Shearwater "), path == "/dev/stdout", "{stderr}");
    }
}

#[test]
fn no_client_hides_the_end_of_its_target() {
    for driver in drivers() {
        let folder = with_site();
        folder.file("log.toml", "[log]\naccess = \"log\"\nformat = \"json\"\n[[site]]\nroot = \"site\"\n");
        let server = Server::start(&folder, &["--config", "log.toml", "--driver", driver]);
        let target = format!("/{}payload", "\\".repeat(2100));
        server.connect().request("GET", &target, &["User-Agent: one", "User-Agent: two\u{202e}"]);
        let long = format!("/{}", "x".repeat(9000));
        server.connect().request("GET", &long, &[]);
        until_lines(&folder.at("log"), 2);
        let text = fs::read_to_string(folder.at("log")).expect("a file");
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_by_key(|line| line.contains("\"cut\""));
        assert!(!lines[0].contains('\u{202e}'), "{}", lines[0]);
        let whole: Value = serde_json::from_str(lines[0]).expect("JSON");
        assert_eq!(whole["target"], target);
        if whole["status"] != 400 {
            assert_eq!(whole["user_agent"], "one, two\u{202e}");
        }
        let cut: Value = serde_json::from_str(lines[1]).expect("JSON");
        assert_eq!((&cut["cut"], &cut["status"]), (&serde_json::json!(["target"]), &Value::from(414)));
        assert!(long.starts_with(cut["target"].as_str().expect("a text")));
        server.stop();
    }
}

#[test]
fn sends_lines_to_a_syslog_daemon() {
    for driver in drivers() {
        let folder = with_site();
        let daemon = UnixDatagram::bind(folder.at("log")).expect("a socket");
        daemon.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let server = start(&folder, driver, &format!("syslog:{}", folder.at("log").display()));
        assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
        let mut message = [0; 1000];
        let len = daemon.recv(&mut message).expect("a message");
        let message = String::from_utf8_lossy(&message[..len]).into_owned();
        assert!(message.starts_with("<190>1 ") && message.contains(" access - 127.0.0.1 - - ["), "{message}");
        server.stop();
    }
}
