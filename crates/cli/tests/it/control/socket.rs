//! The socket: its file, its clients, and commands without it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;

use rustix::process::{Signal, geteuid};
use testkit::{TIMEOUT, TestFolder};

use super::Controlled;
use crate::process::{Server, drivers, has_proc, program, run};

/// Connections at once.
const CONNECTIONS_MAX: usize = 8;

fn connect(controlled: &Controlled) -> UnixStream {
    let stream = UnixStream::connect(controlled.folder.at("pid.sock")).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("set");
    stream
}

/// Reads all that a server sends on a control connection.
fn reply(mut stream: UnixStream) -> String {
    let mut text = Vec::new();
    // A server that closes with unread input resets the connection.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn a_server_without_a_control_socket_gets_signals() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let pid = controlled.server.pid();
        // A number names no socket.
        let (code, stdout, stderr) = run(&controlled.folder, &["reload", &pid.to_string()]);
        let sent = format!("sent SIGHUP to process {pid}; the outcome isn't known here: its log has it\n");
        assert_eq!((code, &stdout, stderr.as_str()), (0, &sent, ""));
        controlled.until_logged(" reloaded ");
        fs::remove_file(controlled.folder.at("pid.sock")).expect("it is there");
        let (code, stdout, stderr) = controlled.reload();
        assert_eq!((code, &stdout), (0, &sent));
        assert!(stderr.starts_with("warning: can't use the control socket pid.sock: "), "{stderr}");
        controlled.until_logged(" reloaded ");
        let (code, stdout, _) = run(&controlled.folder, &["upgrade", "pid"]);
        let new = controlled.written();
        assert_eq!((code, stdout), (0, format!("process {new} serves now\n")));
        controlled.server.succeeded_by(new);
        // The new process has a socket again.
        assert_eq!(controlled.reload(), (0, controlled.reloaded("one"), String::new()));
    }
}

#[test]
fn the_socket_of_a_killed_server_is_replaced_and_that_of_another_is_not() {
    let controlled = Controlled::start(drivers()[0]);
    let arguments = ["one", "--pid-file", "pid", "--listen", "127.0.0.1:0"];
    let mut second = Server::of(&mut program(&controlled.folder, &arguments));
    let line = second.next_line();
    let expected = format!(
        "shearwater: no control socket at pid.sock: process {} of user {} listens there; ",
        controlled.server.pid(),
        geteuid().as_raw()
    );
    assert!(line.starts_with(&expected), "{line}");
    drop(second);
    let Controlled { folder, server } = controlled;
    server.signal(Signal::KILL);
    server.end();
    assert!(folder.at("pid.sock").exists());
    let server = Server::of(&mut program(&folder, &arguments));
    let (code, _, stderr) = run(&folder, &["reload", "pid"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    server.stop();
}

#[test]
fn a_path_that_is_too_long_leaves_signals() {
    let folder = TestFolder::new();
    folder.file("one/index.html", "x");
    let pid_file = folder.at("x".repeat(120)).display().to_string();
    let mut server = Server::of(&mut program(&folder, &["one", "--pid-file", &pid_file, "--port", "0"]));
    let line = server.next_line();
    assert!(line.contains(&format!("the path {pid_file}.sock has ")), "{line}");
    assert!(line.ends_with("`shearwater reload` and `upgrade` can only send signals\n"), "{line}");
    let (code, stdout, stderr) = run(&folder, &["reload", &pid_file]);
    assert!(code == 0 && stdout.starts_with("sent SIGHUP to process "), "{stderr}");
}

#[test]
fn hostile_clients_get_an_error_and_hold_up_nobody() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        for (sent, expected) in [
            ("garbage\n".to_owned(), "the server can't read this request"),
            (
                "{\"command\":7,\"arguments\":[],\"timeout_ms\":1}\n".to_owned(),
                "the server can't read this request",
            ),
            (
                "{\"command\":\"no\",\"arguments\":[],\"timeout_ms\":1}\n".to_owned(),
                "doesn't know the command `no`",
            ),
            ("x".repeat(100_000), "the request is longer than 4096 bytes"),
        ] {
            let mut stream = connect(&controlled);
            // The server may close before it has read all.
            let _ = stream.write_all(sent.as_bytes());
            let reply = reply(stream);
            assert!(reply.contains(expected) && reply.ends_with("}\n"), "{reply}");
        }
        // A client that is gone at once, without a request and with one.
        drop(connect(&controlled));
        let request = b"{\"command\":\"reload\",\"arguments\":[],\"timeout_ms\":30000}\n";
        connect(&controlled).write_all(request).expect("sent");
        controlled.until_logged(" reloaded ");

        if has_proc() {
            controlled.until_threads("control", 0);
        }
        let mut silent: Vec<_> = (0..CONNECTIONS_MAX).map(|_| connect(&controlled)).collect();
        let (code, _, stderr) = controlled.reload();
        let busy = "error: the server handles 8 commands already: try again\n";
        assert_eq!((code, stderr.as_str()), (1, busy));
        // Signals are handled meanwhile.
        controlled.server.signal(Signal::HUP);
        controlled.until_logged(" reloaded ");
        let first = reply(silent.swap_remove(0));
        assert!(first.contains("no request within 5 s"), "{first}");
        // A client gets its reply just before its place is free.
        if has_proc() {
            controlled.until_threads("control", 0);
        }
        assert_eq!(controlled.reload(), (0, controlled.reloaded("one"), String::new()));
        drop(silent);
        controlled.server.stop();
    }
}

#[test]
fn a_silent_client_does_not_hold_up_the_end() {
    let controlled = Controlled::start(drivers()[0]);
    let silent = connect(&controlled);
    let Controlled { folder: _folder, server } = controlled;
    server.stop();
    assert_eq!(reply(silent), "");
}

#[test]
fn another_user_is_refused() {
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let can_run = |program: &str| {
        let command = Command::new("setpriv").args(nobody).args([program, "--version"]).output();
        command.is_ok_and(|output| output.status.success())
    };
    if !geteuid().is_root() || !can_run(env!("CARGO_BIN_EXE_shearwater")) {
        println!("skipped: no other user can run the program");
        return;
    }
    let controlled = Controlled::start(drivers()[0]);
    let set_mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    set_mode(controlled.folder.path(), 0o755);
    let reload = || {
        let mut command = Command::new("setpriv");
        command.args(nobody).args([env!("CARGO_BIN_EXE_shearwater"), "reload", "pid"]);
        let output = command.current_dir(controlled.folder.path()).output().expect("it starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (code, stderr) = reload();
    assert!(code == Some(1) && stderr.contains("error: can't signal process "), "{stderr}");
    // Even if somebody has changed the socket's permissions.
    set_mode(&controlled.folder.at("pid.sock"), 0o666);
    let (code, stderr) = reload();
    let refused = " of user 65534 must not control this server: only its own user and root\n";
    assert!(code == Some(1) && stderr.ends_with(refused), "{stderr}");
    controlled.server.stop();
}
