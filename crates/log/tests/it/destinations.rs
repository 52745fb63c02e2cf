//! Files, pipes and daemons: written, replaced, removed, full, missing.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

use serde_json::Value;
use shearwater_log::Destination;
use shearwater_log::Entry;
use shearwater_log::limits::{LOG_VALUE_BYTES_MAX, SYSLOG_BYTES_MAX, SYSLOG_LINE_BYTES_MAX};
use testkit::TestFolder;

use crate::support::{PATIENCE, TestLog, until, write};

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

fn log_in(folder: &TestFolder) -> (TestLog, std::path::PathBuf) {
    let path = folder.path().join("access.log");
    (TestLog::new(&path.display().to_string()), path)
}

#[test]
fn writes_the_lines_of_all_workers() {
    const LINES: usize = 5000;
    let folder = TestFolder::new();
    folder.file("access.log", "before\n");
    let (test, path) = log_in(&folder);
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let mut writer = test.log.line_writer();
            scope.spawn(move || {
                (0..LINES).for_each(|number| write(&mut writer, &format!("/{worker}/{number}")));
            });
        }
    });
    let counts = test.log.end();
    assert_eq!((counts.written, counts.dropped), (3 * LINES as u64, 0));
    let text = text(&path);
    assert_eq!(text.lines().count(), 3 * LINES + 1);
    for worker in 0..3 {
        let own = text.lines().filter(|line| line.starts_with(&format!("/{worker}/")));
        assert!(own.eq((0..LINES).map(|number| format!("/{worker}/{number}"))), "in order");
    }
    test.expect_no_notice();
}

#[test]
fn creates_a_file_that_others_cannot_read() {
    let folder = TestFolder::new();
    let (test, path) = log_in(&folder);
    test.write("/");
    test.log.end();
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o007, 0);
}

#[test]
fn reopens_a_renamed_file() {
    let folder = TestFolder::new();
    let (test, path) = log_in(&folder);
    test.write("/first");
    test.until_written(1);
    fs::rename(&path, folder.path().join("old.log")).expect("renamed");
    test.write("/second");
    test.until_written(2);
    test.log.reopen();
    until(|| path.exists());
    test.write("/third");
    test.log.end();
    assert_eq!(text(&folder.path().join("old.log")), "/first\n/second\n");
    assert_eq!(text(&path), "/third\n");
    test.expect_no_notice();
}

#[test]
fn writes_the_previous_file_while_the_new_one_cannot_be_opened() {
    let folder = TestFolder::new();
    folder.file("logs/x", "");
    let path = folder.path().join("logs/access.log");
    let test = TestLog::new(&path.display().to_string());
    test.write("/first");
    test.until_written(1);
    fs::rename(folder.path().join("logs"), folder.path().join("old")).expect("renamed");
    test.log.reopen();
    test.expect_notice("can't reopen the access log");
    test.write("/second");
    test.until_written(2);
    fs::create_dir(folder.path().join("logs")).expect("created");
    test.expect_notice("is written again");
    test.write("/third");
    test.log.end();
    assert_eq!(text(&folder.path().join("old/access.log")), "/first\n/second\n");
    assert_eq!(text(&path), "/third\n");
}

/// A removed folder takes the file with it: lines wait until it is there again.
#[test]
fn keeps_lines_while_the_folder_is_gone() {
    let folder = TestFolder::new();
    folder.file("logs/x", "");
    let path = folder.path().join("logs/access.log");
    let test = TestLog::new(&path.display().to_string());
    test.write("/first");
    test.until_written(1);
    fs::remove_dir_all(folder.path().join("logs")).expect("removed");
    // The file's name is checked once in an interval: lines until then are gone with the file.
    let mut lines = 1;
    let notice = std::cell::OnceCell::new();
    while notice.get().is_none() {
        test.write("/gone");
        lines += 1;
        until(|| test.notice().map(|text| notice.set(text)).is_some() || test.log.counts().written == lines);
    }
    let notice = notice.into_inner().unwrap_or_default();
    assert!(notice.contains("(os error 2); requests are served"), "{notice}");
    assert!(notice.ends_with("help: create its folder"), "{notice}");
    test.write("/kept");
    fs::create_dir(folder.path().join("logs")).expect("created");
    test.expect_notice("is written again");
    test.until_written(lines + 1);
    test.log.end();
    assert!(text(&path).ends_with("/kept\n"));
}

#[test]
fn reports_a_full_disk_once_and_serves_on() {
    if !Path::new("/dev/full").exists() {
        println!("skipped: there is no /dev/full");
        return;
    }
    let test = TestLog::new("/dev/full");
    test.write("/first");
    test.expect_notice("help: free space on its file system");
    for _ in 0..100 {
        test.write("/more");
    }
    let counts = test.log.end();
    assert_eq!((counts.written, counts.dropped), (0, 101));
    test.expect_notice("101 lines of the access log /dev/full were dropped");
    test.expect_no_notice();
}

#[test]
fn cannot_start_without_a_folder() {
    let folder = TestFolder::new();
    let path = folder.path().join("none/access.log").display().to_string();
    let Err(error) = TestLog::try_new(&path) else { panic!("it started") };
    assert!(error.to_string().starts_with(&format!("can't open the access log {path}: ")), "{error}");
    assert_eq!(error.help(), "create its folder");
}

/// Opening a socket fails as opening a pipe without a reader does, but no wait ends that.
#[test]
fn cannot_start_at_a_socket_that_is_no_daemon() {
    let folder = TestFolder::new();
    let path = folder.path().join("socket");
    let _socket = UnixListener::bind(&path).expect("a socket");
    let Err(error) = TestLog::try_new(&path.display().to_string()) else { panic!("it started") };
    assert!(error.help().contains("`syslog:` and the path of a daemon's socket"), "{}", error.help());
}

#[test]
fn parses_destinations() {
    for text in
        ["-", "access.log", "/var/log/a", "syslog:/dev/log", "syslog:127.0.0.1:514", "syslog:[::1]:514"]
    {
        assert_eq!(Destination::parse(text).map(|parsed| parsed.to_string()), Ok(text.to_owned()));
    }
    for text in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert_eq!(Destination::parse(text), Ok(Destination::Stdout));
    }
    for text in ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"] {
        assert_eq!(Destination::parse(text), Ok(Destination::Stderr));
    }
    for text in [
        "",
        "syslog",
        "stdout",
        "off",
        "syslog:",
        "syslog:192.0.2.1:514",
        "syslog:127.0.0.1:0",
        "syslog:localhost:514",
    ] {
        assert!(Destination::parse(text).is_err(), "{text}");
    }
}

/// Checks a message and returns its line.
fn line_of(message: &[u8]) -> String {
    let text = String::from_utf8(message.to_vec()).expect("UTF-8");
    let parts: Vec<_> = text.splitn(8, ' ').collect();
    assert_eq!((parts[0], parts[3], parts[5], parts[6]), ("<190>1", "shearwater", "access", "-"), "{text}");
    assert!(parts[1].ends_with('Z') && parts[4] == std::process::id().to_string(), "{text}");
    parts[7].to_owned()
}

#[test]
fn sends_lines_to_a_daemon_at_a_socket() {
    let folder = TestFolder::new();
    let path = folder.path().join("log");
    let test = TestLog::new(&format!("syslog:{}", path.display()));
    test.expect_notice("help: start the syslog daemon");
    let mut message = [0; 2 * SYSLOG_BYTES_MAX];
    // It isn't running at first, and restarted twice.
    for round in 0..3 {
        test.write(&format!("/{round}"));
        if round > 0 {
            test.expect_notice("help: start the syslog daemon");
        }
        let daemon = UnixDatagram::bind(&path).expect("a socket");
        daemon.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let len = daemon.recv(&mut message).expect("a message");
        assert_eq!(line_of(&message[..len]), format!("/{round}"));
        test.expect_notice("is written again");
        test.write(&"x".repeat(2 * SYSLOG_BYTES_MAX));
        let len = daemon.recv(&mut message).expect("a message");
        let line = line_of(&message[..len]);
        assert_eq!(line, format!("{}\\cut", "x".repeat(LOG_VALUE_BYTES_MAX / 2)), "it fits a message");
        test.until_written(2 * round + 2);
        fs::remove_file(&path).expect("removed");
    }
}

#[test]
fn cuts_what_is_longer_than_a_message() {
    let folder = TestFolder::new();
    let path = folder.path().join("log");
    let daemon = UnixDatagram::bind(&path).expect("a socket");
    daemon.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    // Only values of clients can be cut to fit.
    let test = TestLog::with_format(&format!("syslog:{}", path.display()), &"$time_local".repeat(350));
    let mut message = [0; 2 * SYSLOG_BYTES_MAX];
    test.write("/");
    let len = daemon.recv(&mut message).expect("a message");
    assert!((SYSLOG_LINE_BYTES_MAX..=SYSLOG_BYTES_MAX).contains(&len), "{len}");
    let line = line_of(&message[..len]);
    assert!(line.len() == SYSLOG_LINE_BYTES_MAX && line.ends_with("\\cut"), "{line}");
}

#[test]
fn keeps_json_whole_however_long_its_texts_are() {
    let folder = TestFolder::new();
    let path = folder.path().join("log");
    let daemon = UnixDatagram::bind(&path).expect("a socket");
    daemon.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let test = TestLog::with_format(&format!("syslog:{}", path.display()), "json");
    let text = vec![b'\x01'; SYSLOG_BYTES_MAX];
    let field = |_: &str| Some(&text[..]);
    let entry =
        Entry { method: &text, target: &text, version: "HTTP/1.1", status: Some(431), ..Entry::new(&field) };
    test.log.line_writer().log(&entry);
    let mut message = [0; 2 * SYSLOG_BYTES_MAX];
    let len = daemon.recv(&mut message).expect("a message");
    let json: Value = serde_json::from_str(&line_of(&message[..len])).expect("JSON");
    assert_eq!((&json["status"], &json["end"]), (&Value::from(431), &Value::from("complete")));
    assert_eq!(json["cut"].as_array().map(Vec::len), Some(5));
    assert!(len > SYSLOG_LINE_BYTES_MAX / 2, "as much as fits: {len}");
}

#[test]
fn sends_lines_to_a_daemon_by_udp() {
    let daemon = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    daemon.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let test = TestLog::new(&format!("syslog:{}", daemon.local_addr().expect("an address")));
    let mut message = [0; SYSLOG_BYTES_MAX];
    for number in 0..3 {
        test.write(&format!("/{number}"));
        let len = daemon.recv(&mut message).expect("a message");
        assert_eq!(line_of(&message[..len]), format!("/{number}"));
    }
    assert_eq!(test.log.end().written, 3);
    test.expect_no_notice();
}

/// Nothing listens at the port: the lines must wait, as they do for a socket.
#[test]
fn keeps_lines_while_no_daemon_takes_udp() {
    let daemon = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = daemon.local_addr().expect("an address");
    drop(daemon);
    let test = TestLog::new(&format!("syslog:{address}"));
    let mut writer = test.log.line_writer();
    for number in 0..10 {
        write(&mut writer, &format!("/{number}"));
    }
    test.expect_notice("help: start the syslog daemon");
    assert_eq!(test.log.counts().written, 0);
    let daemon = UdpSocket::bind(address).expect("a socket");
    daemon.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut message = [0; SYSLOG_BYTES_MAX];
    for number in 0..10 {
        let len = daemon.recv(&mut message).expect("a message");
        assert_eq!(line_of(&message[..len]), format!("/{number}"));
    }
    test.expect_notice("is written again");
    assert_eq!(test.log.end().written, 10);
    test.expect_no_notice();
}
