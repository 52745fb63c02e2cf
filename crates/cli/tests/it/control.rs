//! The control socket: `reload` and `upgrade` wait for their outcome and print it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, geteuid};
use testkit::{TIMEOUT, TestClient, TestFolder, until_refused};

use crate::process::{Server, drivers, has_proc, program, run, threads};

const REFUSED: &str = "not reloaded: what was served before is still served\n";

/// Connections at once.
const CONNECTIONS_MAX: usize = 8;

fn site(root: &str) -> String {
    format!("[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[site]]\nroot = \"{root}\"\n")
}

/// A server of `site.toml` with the PID file `pid`. The folders `one` and `two` have a file `f.txt` with their name.
struct Controlled {
    folder: TestFolder,
    server: Server,
}

impl Controlled {
    fn start(driver: &str) -> Self {
        Self::start_as(driver, |_| {})
    }

    fn start_as(driver: &str, change: impl FnOnce(&mut Command)) -> Self {
        let folder = TestFolder::new();
        for name in ["one", "two"] {
            folder.file(format!("{name}/f.txt"), name).file(format!("{name}/index.html"), name);
        }
        folder.file("site.toml", site("one"));
        let arguments = ["site.toml", "--pid-file", "pid", "--driver", driver, "--workers", "2"];
        let mut command = program(&folder, &arguments);
        command.env_remove("RUNTIME_DIRECTORY").env_remove("XDG_RUNTIME_DIR");
        // A link that a test may replace by a new version.
        symlink(env!("CARGO_BIN_EXE_shearwater"), folder.at("shearwater")).expect("a link");
        command.arg0(folder.at("shearwater"));
        change(&mut command);
        let server = Server::of(&mut command);
        Self { folder, server }
    }

    fn reload(&self) -> (i32, String, String) {
        run(&self.folder, &["reload", "pid"])
    }

    fn spawn(&self, command: &str) -> Child {
        program(&self.folder, &[command, "pid"]).spawn().expect("it starts")
    }

    fn reloaded(&self, root: &str) -> String {
        format!("reloaded site.toml: {}\n", self.folder.at(root).display())
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.folder.at("pid.sock")).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("set");
        stream
    }

    fn written(&self) -> Pid {
        let text = fs::read_to_string(self.folder.at("pid")).expect("a PID file");
        Pid::from_raw(text.trim().parse().expect("a number")).expect("a process")
    }

    /// Waits until the server has so many threads of a name.
    #[track_caller]
    fn until_threads(&self, name: &str, count: usize) {
        until(name, || {
            threads(self.server.pid()).iter().filter(|thread| thread.name == name).count() == count
        });
    }

    /// Reads the log up to a line.
    #[track_caller]
    fn until_logged(&mut self, part: &str) {
        loop {
            let line = self.server.next_line();
            assert!(!line.is_empty(), "it has ended: {part}");
            if line.contains(part) {
                return;
            }
        }
    }
}

#[track_caller]
fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < TIMEOUT, "{what}");
        std::thread::yield_now();
    }
}

/// Returns the exit code and the output of a command.
#[track_caller]
fn output(child: Child) -> (i32, String, String) {
    let output = child.wait_with_output().expect("it can be waited for");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("no signal has ended it"), text(output.stdout), text(output.stderr))
}

/// Reads all that a server sends on a control connection.
fn reply(mut stream: UnixStream) -> String {
    let mut text = Vec::new();
    // A server that closes with unread input resets the connection.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn a_reload_returns_once_every_worker_serves_the_new_site() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let mut clients = [(); 8].map(|()| controlled.server.connect());
        for root in ["two", "one", "two"] {
            controlled.folder.file("site.toml", site(root));
            assert_eq!(controlled.reload(), (0, controlled.reloaded(root), String::new()));
            clients.iter_mut().for_each(|client| assert_eq!(client.get("/f.txt").text(), root));
            assert_eq!(controlled.server.next_line(), format!("shearwater: {}", controlled.reloaded(root)));
        }
        let text = format!("[server]\nbacklog = 9\n{}", site("one"));
        controlled.folder.file("site.toml", text);
        let warning = "warning: a change of `server.backlog` to 9 takes effect after a restart; now 4096\n";
        assert_eq!(controlled.reload(), (0, controlled.reloaded("one"), warning.to_owned()));
        let file = fs::symlink_metadata(controlled.folder.at("pid.sock")).expect("a socket");
        assert_eq!(file.mode() & 0o7777, 0o600);
        if has_proc() {
            controlled.until_threads("control", 0);
            controlled.until_threads("reload", 0);
        }
        drop(clients);
        let Controlled { folder, server } = controlled;
        server.stop();
        assert!(!folder.at("pid.sock").exists() && !folder.at("pid").exists());
    }
}

#[test]
fn a_refused_reload_prints_the_errors_of_the_log() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        for text in [site("none"), "[server]\nwokers = 2\n".to_owned() + &site("two")] {
            controlled.folder.file("site.toml", text);
            let (_, _, errors) = run(&controlled.folder, &["check", "site.toml"]);
            let expected = format!("{errors}error: {REFUSED}");
            assert_eq!(controlled.reload(), (1, String::new(), expected));
            let mut log = String::new();
            while !log.ends_with(REFUSED) {
                log.push_str(&controlled.server.next_line());
            }
            assert_eq!(log, format!("{errors}shearwater: {REFUSED}"));
            assert_eq!(controlled.server.connect().get("/f.txt").text(), "one");
        }
    }
}

/// Under systemd, `ExecReload=` ends once the unit isn't reloading any more.
#[test]
fn the_service_manager_knows_the_end_before_the_command_does() {
    for driver in drivers() {
        let manager = TestFolder::new();
        let notified = UnixDatagram::bind(manager.at("notify")).expect("a socket");
        notified.set_nonblocking(true).expect("set");
        let controlled = Controlled::start_as(driver, |command| {
            command.env("NOTIFY_SOCKET", manager.at("notify"));
        });
        for (root, code) in [("two", 0), ("none", 1)] {
            controlled.folder.file("site.toml", site(root));
            assert_eq!(controlled.reload().0, code);
            // All that it has received by now, that of the start too.
            let mut bytes = [0; 4096];
            let messages = std::iter::from_fn(|| {
                let count = notified.recv(&mut bytes).ok()?;
                Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
            });
            let messages: Vec<_> = messages.collect();
            let [.., begin, end] = &messages[..] else { panic!("{messages:?}") };
            assert!(begin.starts_with("RELOADING=1\n") && end.starts_with("READY=1\n"), "{messages:?}");
        }
    }
}

#[test]
fn the_usual_pid_file_needs_no_argument() {
    let controlled = Controlled::start(drivers()[0]);
    fs::create_dir(controlled.folder.at("run")).expect("a folder");
    let reload = |variable: &str| {
        let mut command = program(&controlled.folder, &["reload"]);
        command.env_remove("RUNTIME_DIRECTORY").env_remove("XDG_RUNTIME_DIR");
        output(command.env(variable, controlled.folder.at("run")).spawn().expect("it starts"))
    };
    let (code, _, stderr) = reload("RUNTIME_DIRECTORY");
    assert!(code == 1 && stderr.contains("/run/shearwater.pid or "), "{stderr}");
    assert!(
        stderr.ends_with("\nhelp: name the one that the server was started with (--pid-file)\n"),
        "{stderr}"
    );
    // The folder of a unit is that of its server.
    for name in ["pid", "pid.sock"] {
        let usual = format!("run/shearwater.{name}");
        fs::rename(controlled.folder.at(name), controlled.folder.at(usual)).expect("renamed");
    }
    for variable in ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"] {
        assert_eq!(reload(variable), (0, controlled.reloaded("one"), String::new()));
    }
}

#[test]
fn several_reloads_at_once_all_have_an_outcome() {
    for driver in drivers() {
        let controlled = Controlled::start(driver);
        controlled.folder.file("site.toml", site("two"));
        let reloads = [(); CONNECTIONS_MAX / 2].map(|()| controlled.spawn("reload"));
        for reload in reloads {
            assert_eq!(output(reload), (0, controlled.reloaded("two"), String::new()));
        }
        assert_eq!(controlled.server.connect().get("/f.txt").text(), "two");
        controlled.folder.file("site.toml", site("none"));
        let reloads = [(); CONNECTIONS_MAX / 2].map(|()| controlled.spawn("reload"));
        for reload in reloads {
            let (code, _, stderr) = output(reload);
            assert!(code == 1 && stderr.ends_with(REFUSED), "{stderr}");
        }
    }
}

#[test]
fn a_server_that_hangs_ends_the_command_in_time() {
    for driver in drivers() {
        let controlled = Controlled::start(driver);
        controlled.server.signal(Signal::STOP);
        let pid = controlled.server.pid();
        for command in ["reload", "upgrade"] {
            let (code, stdout, stderr) = run(&controlled.folder, &[command, "pid", "--timeout", "200ms"]);
            let start = "error: no result within ";
            let end = format!(": process {pid} may still {command}\nhelp: the server's log has the result\n");
            assert_eq!((code, stdout.as_str()), (1, ""));
            assert!(stderr.starts_with(start) && stderr.ends_with(&end), "{stderr}");
        }
        controlled.server.signal(Signal::CONT);
    }
}

#[test]
fn a_drain_refuses_a_reload_with_its_reason() {
    for driver in drivers() {
        let controlled = Controlled::start(driver);
        controlled.folder.file("one/large.bin", vec![b'x'; 64 * 1024 * 1024]);
        let mut download = controlled.server.connect();
        download.ask("GET", "/large.bin", &[]).head();
        controlled.server.signal(Signal::TERM);
        until_refused(controlled.server.address());
        let expected = format!("error: the server is stopping\nerror: {REFUSED}");
        assert_eq!(controlled.reload(), (1, String::new(), expected));
        drop(download);
        assert_eq!(controlled.server.end().0, Some(0));
    }
}

#[test]
fn a_server_without_a_control_socket_gets_signals() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let pid = controlled.server.pid();
        // A number names no socket.
        let (code, stdout, stderr) = run(&controlled.folder, &["reload", &pid.to_string()]);
        let sent = format!("sent SIGHUP to process {pid}: its log has the result\n");
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
            let mut stream = controlled.connect();
            // The server may close before it has read all.
            let _ = stream.write_all(sent.as_bytes());
            let reply = reply(stream);
            assert!(reply.contains(expected) && reply.ends_with("}\n"), "{reply}");
        }
        // A client that is gone at once, without a request and with one.
        drop(controlled.connect());
        let request = b"{\"command\":\"reload\",\"arguments\":[],\"timeout_ms\":30000}\n";
        controlled.connect().write_all(request).expect("sent");
        controlled.until_logged(" reloaded ");

        if has_proc() {
            controlled.until_threads("control", 0);
        }
        let mut silent: Vec<_> = (0..CONNECTIONS_MAX).map(|_| controlled.connect()).collect();
        let (code, _, stderr) = controlled.reload();
        let busy = "error: the server handles 8 commands already: try again\n";
        assert_eq!((code, stderr.as_str()), (1, busy));
        // Signals are handled meanwhile.
        controlled.server.signal(Signal::HUP);
        controlled.until_logged(" reloaded ");
        let first = reply(silent.swap_remove(0));
        assert!(first.contains("no request within 5 s"), "{first}");
        assert_eq!(controlled.reload(), (0, controlled.reloaded("one"), String::new()));
        drop(silent);
        controlled.server.stop();
    }
}

#[test]
fn a_silent_client_does_not_hold_up_the_end() {
    let controlled = Controlled::start(drivers()[0]);
    let silent = controlled.connect();
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

#[test]
fn an_upgrade_refuses_no_reload() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let is_over = AtomicBool::new(false);
        for _ in 0..3 {
            is_over.store(false, Relaxed);
            let new = std::thread::scope(|scope| {
                let reloads = scope.spawn(|| {
                    let mut outcomes = vec![controlled.reload()];
                    while !is_over.load(Relaxed) {
                        outcomes.push(controlled.reload());
                    }
                    outcomes
                });
                let (code, stdout, stderr) = run(&controlled.folder, &["upgrade", "pid"]);
                let new = controlled.written();
                is_over.store(true, Relaxed);
                assert_eq!((code, stdout), (0, format!("process {new} serves now\n")), "{stderr}");
                for outcome in reloads.join().expect("no panic") {
                    assert_eq!(outcome, (0, controlled.reloaded("one"), String::new()));
                }
                new
            });
            assert_ne!(new, controlled.server.pid());
            controlled.server.succeeded_by(new);
            assert_eq!(TestClient::connect(controlled.server.address()).get("/f.txt").text(), "one");
        }
    }
}

/// Each is one that began after its request: the second one may be an upgrade of the new process.
#[test]
fn two_upgrades_at_once_both_succeed() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let upgrades = [(); 2].map(|()| controlled.spawn("upgrade"));
        for upgrade in upgrades {
            let (code, stdout, stderr) = output(upgrade);
            assert!(code == 0 && stdout.ends_with(" serves now\n"), "{stdout}{stderr}");
        }
        controlled.server.succeeded_by(controlled.written());
        assert_eq!(controlled.reload(), (0, controlled.reloaded("one"), String::new()));
        let client = &mut TestClient::connect(controlled.server.address());
        assert_eq!(client.get("/f.txt").text(), "one");
    }
}

/// The new version waits for the test before it starts.
#[test]
fn a_reload_during_an_upgrade_is_one_of_the_new_process() {
    if !has_proc() {
        return;
    }
    for driver in drivers() {
        let controlled = Controlled::start(driver);
        mknodat(CWD, controlled.folder.at("gate"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a pipe");
        let real = env!("CARGO_BIN_EXE_shearwater");
        controlled.folder.file("new", format!("#!/bin/sh\ncat gate > began\nexec {real} \"$@\"\n"));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(controlled.folder.at("new"), executable).expect("set");
        fs::rename(controlled.folder.at("new"), controlled.folder.at("shearwater")).expect("renamed");

        let upgrade = controlled.spawn("upgrade");
        // Opened once the new version reads from it.
        let gate = fs::File::options().write(true).open(controlled.folder.at("gate")).expect("a pipe");
        controlled.folder.file("site.toml", site("two"));
        let reload = controlled.spawn("reload");
        controlled.until_threads("reload", 1);
        drop(gate);

        let (code, stdout, stderr) = output(upgrade);
        let new = controlled.written();
        assert_eq!((code, stdout), (0, format!("process {new} serves now\n")), "{stderr}");
        assert_eq!(output(reload), (0, controlled.reloaded("two"), String::new()));
        let mut controlled = controlled;
        controlled.server.succeeded_by(new);
        controlled.until_logged(" reloaded ");
    }
}

#[test]
fn a_refused_upgrade_prints_the_reason() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let pid = controlled.server.pid();
        controlled.folder.file("site.toml", "[server]\nwokers = 1\n");
        let (code, stdout, stderr) = run(&controlled.folder, &["upgrade", "pid"]);
        let expected = "error: the new process ended before it served (exit status: 2)\n\
                        error: not upgraded: nothing has changed\n\
                        help: the server's log has the messages of the new process\n";
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (1, "", expected));
        assert_eq!(controlled.written(), pid);
        controlled.until_logged("not upgraded: nothing has changed");
        controlled.folder.file("site.toml", site("two"));
        assert_eq!(controlled.reload(), (0, controlled.reloaded("two"), String::new()));
        controlled.server.stop();
    }
}
