//! `SIGUSR2`: a new process of the program takes over the listeners, or the old one serves on.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use testkit::{Client, TIMEOUT, TestClient, TestFolder, process, until_refused};

use crate::process::{Server, drivers, has_proc, program, program_after, run};

/// Bytes of a download, more than sockets hold.
const LARGE_BYTES: usize = 8 * 1024 * 1024;

const REFUSED: &str = "shearwater: not upgraded: nothing has changed\n";

fn configuration(folder: &TestFolder, root: &str) -> String {
    let listen = |address: &str| format!("[[listen]]\naddress = \"{address}\"\n\n");
    let route = "[[site.route]]\npath = \"/large.bin\"\nroot = \".\"\n";
    let socket = format!("unix:{}", folder.at("socket").display());
    let site = format!("[admin]\nlisten = \"127.0.0.1:0\"\n\n[[site]]\nroot = \"{root}\"\n\n{route}");
    listen("127.0.0.1:0") + &listen(&socket) + &site
}

/// A server of `site.toml` with a TCP address, a Unix-domain socket and an admin listener.
struct Upgraded {
    folder: TestFolder,
    server: Server,
}

impl Upgraded {
    fn start(arguments: &[&str]) -> Self {
        let folder = TestFolder::new();
        for root in ["one", "two"] {
            folder.file(format!("{root}/f.txt"), root).file(format!("{root}/index.html"), root);
        }
        folder.file("large.bin", vec![b'x'; LARGE_BYTES]);
        folder.file("site.toml", configuration(&folder, "one"));
        let arguments = [&["site.toml", "--pid-file", "pid"], arguments].concat();
        let server = Server::of(&mut program(&folder, &arguments));
        Self { folder, server }
    }

    fn configure(&self, root: &str) {
        self.folder.file("site.toml", configuration(&self.folder, root));
    }

    fn written(&self) -> Pid {
        let text = fs::read_to_string(self.folder.at("pid")).expect("a PID file");
        Pid::from_raw(text.trim().parse().expect("a number")).expect("a process")
    }

    /// Upgrades by the command, and returns the number of the old process.
    fn upgrade(&mut self) -> Pid {
        let old = self.server.pid();
        let (code, stdout, stderr) = run(&self.folder, &["upgrade", "pid"]);
        let new = self.written();
        assert_eq!((code, stdout), (0, format!("process {new} serves now\n")), "{stderr}");
        assert_ne!(new, old);
        self.server.succeeded_by(new);
        let upgraded = format!("shearwater: upgraded: process {new} serves now\n");
        loop {
            let line = self.server.next_line();
            assert!(!line.is_empty(), "it has ended");
            if line == upgraded {
                return old;
            }
        }
    }

    /// Waits until the admin listener is that of this process.
    fn await_admin(&self, pid: Pid) {
        let url = self.server.line("admin").expect("an admin listener");
        let authority = url.strip_prefix("http://").and_then(|url| url.strip_suffix("/status")).expect(url);
        let address = authority.parse().expect("an address");
        until("the status", || {
            let status = TestClient::connect_in_clear(address).get("/status.json");
            status.text().contains(&format!("\"pid\":{pid},"))
                && status.text().contains("\"state\":\"serving\"")
        });
    }

    /// Requests a file over the Unix-domain socket.
    fn over_socket(&self) -> String {
        let stream = UnixStream::connect(self.folder.at("socket")).expect("it is there");
        stream.set_read_timeout(Some(TIMEOUT)).expect("set");
        let mut client = Client::new(stream);
        client.get("/f.txt").expect("a response").text().to_owned()
    }
}

/// Waits until a condition holds. Until the queues of the old process are empty, it may serve a new connection.
#[track_caller]
fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < TIMEOUT, "{what}");
        std::thread::yield_now();
    }
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

#[track_caller]
fn until_ended(pid: Pid) {
    let start = Instant::now();
    while !process::has_ended(number(pid)) {
        assert!(start.elapsed() < TIMEOUT, "process {pid} serves on");
        std::thread::yield_now();
    }
}

#[test]
fn a_new_process_takes_over_every_listener() {
    if !has_proc() {
        return;
    }
    for driver in drivers() {
        for (workers, accept) in [("1", "reuseport"), ("3", "reuseport"), ("2", "dispatch")] {
            let mut upgraded =
                Upgraded::start(&["--driver", driver, "--workers", workers, "--accept", accept]);
            let address = upgraded.server.address();
            let mut idle = upgraded.server.connect();
            assert_eq!(idle.get("/f.txt").text(), "one");
            for root in ["two", "one", "two"] {
                upgraded.configure(root);
                let mut download = TestClient::connect_in_clear(address);
                download.ask("GET", "/large.bin", &[]);
                let old = upgraded.upgrade();
                until(root, || TestClient::connect_in_clear(address).get("/f.txt").text() == root);
                until("the Unix-domain socket", || upgraded.over_socket() == root);
                upgraded.await_admin(upgraded.server.pid());
                assert_eq!(download.response("GET").body.len(), LARGE_BYTES, "it ends under the old process");
                drop(download);
                until_ended(old);
            }
            idle.is_ended();
            upgraded.server.signal(Signal::TERM);
            until_ended(upgraded.server.pid());
            until_refused(address);
            for file in ["socket", "pid", "pid.new"] {
                assert!(!upgraded.folder.at(file).exists(), "{file}");
            }
        }
    }
}

/// Addresses are those of the configuration still: a reload keeps and changes them.
#[test]
fn a_new_process_reloads_and_may_have_other_workers() {
    if !has_proc() {
        return;
    }
    for driver in drivers() {
        let mut upgraded = Upgraded::start(&["--driver", driver]);
        let address = upgraded.server.address();
        let text = fs::read_to_string(upgraded.folder.at("site.toml")).expect("it was written");
        for workers in [2, 3, 1, 2] {
            upgraded.folder.file("site.toml", format!("[server]\nworkers = {workers}\n\n{text}"));
            let old = upgraded.upgrade();
            until_ended(old);
            for _ in 0..8 {
                assert_eq!(
                    TestClient::connect_in_clear(address).get("/f.txt").text(),
                    "one",
                    "{workers} workers"
                );
            }
        }
        upgraded
            .folder
            .file("site.toml", "[[listen]]\naddress = \"127.0.0.2:0\"\n[[site]]\nroot = \"two\"\n");
        upgraded.server.signal(Signal::HUP);
        let line = loop {
            let line = upgraded.server.next_line();
            if line.contains(" reloaded ") {
                break line;
            }
            assert!(!line.is_empty() && !line.contains("not reloaded"), "{line}");
        };
        assert!(line.contains(&format!("; no longer on {address}, unix:")), "{line}");
        until_refused(address);
        assert!(!upgraded.folder.at("socket").exists());
    }
}

#[test]
fn a_new_process_that_cannot_start_changes_nothing() {
    for driver in drivers() {
        let mut upgraded = Upgraded::start(&["--driver", driver, "--workers", "2"]);
        let pid = upgraded.server.pid();
        let mut kept = upgraded.server.connect();
        assert_eq!(kept.get("/f.txt").text(), "one");
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let taken = format!("[[listen]]\naddress = \"{}\"\n", taken.local_addr().expect("bound"));
        for (text, expected, code) in [
            ("[server]\nwokers = 1\n", "error: invalid configuration site.toml: 1 error\n", 2),
            (taken.as_str(), "is taken by another program", 1),
        ] {
            upgraded.folder.file("site.toml", text);
            upgraded.server.signal(Signal::USR2);
            let mut log = String::new();
            while !log.ends_with(REFUSED) {
                let line = upgraded.server.next_line();
                assert!(!line.is_empty(), "it has ended: {log}");
                log.push_str(&line);
            }
            assert!(log.contains(expected), "{log}");
            let ended = format!("error: the new process ended before it served (exit status: {code})\n");
            assert!(log.contains(&ended), "{log}");
            assert_eq!(upgraded.written(), pid);
            assert_eq!(kept.get("/f.txt").text(), "one");
            assert_eq!(upgraded.server.connect().get("/f.txt").text(), "one");
            assert!(upgraded.folder.at("socket").exists() && !upgraded.folder.at("pid.new").exists());
        }
        drop(kept);
        upgraded.server.stop();
    }
}

/// The variable may be left in the environment of a program that the server starts, or of its shell.
#[test]
fn only_a_child_of_the_old_process_takes_over() {
    let folder = TestFolder::new();
    folder.file("public/index.html", "here");
    let mut command = program(&folder, &["--listen", "127.0.0.1:0"]);
    let server = Server::of(command.env("SHEARWATER_PREDECESSOR", "1"));
    assert_eq!(server.connect().get("/").text(), "here");
    let mut command = program(&folder, &["--listen", "127.0.0.1:0"]);
    command.env("SHEARWATER_PREDECESSOR", std::process::id().to_string());
    let (code, output) = Server::try_start(&mut command).err().expect("standard input is no channel");
    assert_eq!(code, Some(1));
    assert!(output.contains("error: can't take over from the process that started this one: "), "{output}");
}

#[test]
fn a_service_manager_gets_the_new_process() {
    if !has_proc() {
        return;
    }
    for driver in drivers() {
        let folder = TestFolder::new();
        folder.file("public/index.html", "here");
        let manager = UnixDatagram::bind(folder.at("notify")).expect("a socket");
        manager.set_read_timeout(Some(TIMEOUT)).expect("set");
        let next = || {
            let mut bytes = [0; 1024];
            let count = manager.recv(&mut bytes).expect("a message");
            String::from_utf8(bytes[..count].to_vec()).expect("UTF-8")
        };
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("bound");
        // The manager's socket stays with the service, although it is passed to the first process only.
        let line = "exec 3<&0 </dev/null && export LISTEN_FDS=1 LISTEN_PID=$$ WATCHDOG_USEC=60000000 WATCHDOG_PID=$$";
        let mut command = program_after(line, &folder, &["--pid-file", "pid", "--driver", driver]);
        command.stdin(std::os::fd::OwnedFd::from(socket)).env("NOTIFY_SOCKET", folder.at("notify"));
        let mut server = Server::of(&mut command);
        let first = next();
        assert!(first.starts_with("READY=1\n") && first.ends_with("\nWATCHDOG=1"), "{first}");
        for _ in 0..2 {
            let old = server.pid();
            let (code, _, stderr) = run(&folder, &["upgrade", "pid"]);
            assert_eq!(code, 0, "{stderr}");
            let text = fs::read_to_string(folder.at("pid")).expect("a PID file");
            let new = Pid::from_raw(text.trim().parse().expect("a number")).expect("a process");
            server.succeeded_by(new);
            assert_eq!(next(), format!("MAINPID={new}"));
            // systemd waits for its own children only.
            let status = fs::read_to_string(format!("/proc/{new}/status")).expect("it runs");
            assert!(status.contains("\nPPid:") && !status.contains(&format!("\nPPid:\t{old}\n")), "{status}");
            let ready = next();
            assert!(ready.starts_with("READY=1\n") && ready.ends_with("\nWATCHDOG=1"), "{ready}");
            until_ended(old);
            assert_eq!(TestClient::connect_in_clear(address).get("/").text(), "here");
        }
        // The old processes haven't said that the service stops.
        server.signal(Signal::TERM);
        assert!(next().starts_with("STOPPING=1"), "nothing else in between");
        until_ended(server.pid());
    }
}

/// A terminal that is closed sends `SIGHUP` to all its processes. A server reloads then, if `nohup` has started it.
#[test]
fn nohup_outlasts_upgrades() {
    if !has_proc() || Command::new("script").arg("--version").output().is_err() {
        println!("skipped: there is no script");
        return;
    }
    let folder = TestFolder::new();
    folder.file("public/index.html", "here");
    let program = env!("CARGO_BIN_EXE_shearwater");
    let start = format!("nohup {program} public --listen 127.0.0.1:0 --pid-file pid >out 2>log &");
    let line = format!(
        "{start} until test -s pid; do sleep 0.1; done; {program} upgrade pid && {program} upgrade pid && exit 3"
    );
    let mut script = Command::new("script");
    script.args(["-qec", &line, "typescript"]).current_dir(folder.path()).stdin(Stdio::null());
    assert_eq!(script.stdout(Stdio::null()).status().expect("a shell").code(), Some(3));
    let text = fs::read_to_string(folder.at("pid")).expect("a PID file");
    let process = Pid::from_raw(text.trim().parse().expect("a number")).expect("a process");
    let log = || fs::read_to_string(folder.at("log")).expect("a log");
    let start = Instant::now();
    while !log().contains("shearwater: reloaded ") && start.elapsed() < TIMEOUT {
        std::thread::yield_now();
    }
    kill_process(process, Signal::TERM).expect("it runs");
    until_ended(process);
    assert!(log().contains("shearwater: reloaded "), "{}", log());
}

#[test]
fn a_reload_after_an_upgrade_is_one_of_the_new_process() {
    if !has_proc() {
        return;
    }
    let mut upgraded = Upgraded::start(&["--workers", "2"]);
    let address = upgraded.server.address();
    let mut download = upgraded.server.connect();
    download.ask("GET", "/large.bin", &[]);
    let old = upgraded.upgrade();
    upgraded.configure("two");
    kill_process(old, Signal::HUP).expect("it drains");
    let new = upgraded.server.pid();
    let mut expected = vec![
        format!("shearwater: process {new} serves now: forwarded SIGHUP to it\n"),
        "shearwater: reloaded site.toml: ".to_owned(),
    ];
    while !expected.is_empty() {
        let line = upgraded.server.next_line();
        assert!(!line.is_empty() && !line.contains("not reloaded"), "{line}");
        expected.retain(|text| !line.starts_with(text));
    }
    until("the new root", || TestClient::connect_in_clear(address).get("/f.txt").text() == "two");
    assert_eq!(download.response("GET").body.len(), LARGE_BYTES);
}

/// A service manager that waits for the old process restarts the service then.
#[test]
fn an_old_process_stops_if_the_new_one_fails() {
    for driver in drivers() {
        let mut upgraded = Upgraded::start(&["--driver", driver, "--workers", "2"]);
        let mut download = upgraded.server.connect();
        download.ask("GET", "/large.bin", &[]);
        upgraded.upgrade();
        upgraded.server.signal(Signal::KILL);
        let (code, _, stderr) = upgraded.server.end();
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(", which had taken over, has failed (signal: 9 (SIGKILL))\n"), "{stderr}");
        assert!(stderr.contains(" has cut off 1 connections during a request or response\n"), "{stderr}");
    }
}

/// The service ends in order: downloads of the old process may take their time.
#[test]
fn an_old_process_drains_on_if_the_new_one_ends_in_order() {
    if !has_proc() {
        return;
    }
    let mut upgraded = Upgraded::start(&["--workers", "2"]);
    let mut download = upgraded.server.connect();
    download.ask("GET", "/large.bin", &[]);
    let old = upgraded.upgrade();
    upgraded.server.signal(Signal::TERM);
    until_ended(upgraded.server.pid());
    assert_eq!(download.response("GET").body.len(), LARGE_BYTES);
    drop(download);
    until_ended(old);
    let (code, _, stderr) = upgraded.server.end();
    assert_eq!(code, Some(0), "{stderr}");
}

/// systemd would end the service with the old process.
#[test]
fn reports_a_service_manager_that_is_gone() {
    let folder = TestFolder::new();
    folder.file("public/index.html", "here");
    let manager = UnixDatagram::bind(folder.at("notify")).expect("a socket");
    let mut command = program(&folder, &["--listen", "127.0.0.1:0", "--pid-file", "pid"]);
    let mut server = Server::of(command.env("NOTIFY_SOCKET", folder.at("notify")));
    drop(manager);
    let (code, _, stderr) = run(&folder, &["upgrade", "pid"]);
    assert_eq!(code, 0, "{stderr}");
    let new = Pid::from_raw(
        fs::read_to_string(folder.at("pid")).expect("a PID file").trim().parse().expect("a number"),
    );
    let new = new.expect("a process");
    server.succeeded_by(new);
    let expected = format!(
        "shearwater: can't notify the service manager of process {new}: Connection refused (os error "
    );
    loop {
        let line = server.next_line();
        assert!(!line.is_empty(), "no warning");
        if line.starts_with(&expected) {
            assert!(
                line.ends_with(
                    "; systemd may end the service with this process; help: restart the service\n"
                ),
                "{line}"
            );
            break;
        }
    }
    server.signal(Signal::TERM);
    until_ended(new);
}

#[test]
fn commands_refuse_other_processes() {
    let folder = TestFolder::new();
    folder.file("empty", "").file("own", std::process::id().to_string()).file("gone", "4194304");
    folder.file("all", "-1\n").file("group", "-4194304").file("signed", "+1");
    for command in ["reload", "upgrade"] {
        for (process, expected) in [
            ("missing", "error: missing: No such file or directory"),
            ("empty", "error: empty: not the number of a process: \"\"\n"),
            ("all", "error: all: not the number of a process: \"-1\"\n"),
            ("group", "error: group: not the number of a process: \"-4194304\"\n"),
            ("signed", "error: signed: not the number of a process: \"+1\"\n"),
            ("0", "error: not the number of a process: \"0\"\n"),
        ] {
            let (code, stdout, stderr) = run(&folder, &[command, process]);
            assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
            assert!(stderr.starts_with(expected), "{stderr}");
        }
        if has_proc() {
            let (code, _, stderr) = run(&folder, &[command, "own"]);
            assert!(
                code == 1 && stderr.contains(", not shearwater\nhelp: the PID file may be of a server"),
                "{stderr}"
            );
            let (code, _, stderr) = run(&folder, &[command, "gone"]);
            assert_eq!((code, stderr.as_str()), (1, "error: there is no process 4194304\n"));
        }
    }
}
