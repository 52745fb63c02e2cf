//! The control socket: `reload` and `upgrade` wait for their outcome and print it.

mod socket;
mod upgrades;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Instant;

use rustix::process::{Pid, Signal};
use testkit::{TIMEOUT, TestFolder, until_refused};

use crate::process::{Server, drivers, has_proc, program, run, threads};

const REFUSED: &str = "not reloaded: what was served before is still served\n";

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
        let reloads = [(); 4].map(|()| controlled.spawn("reload"));
        for reload in reloads {
            assert_eq!(output(reload), (0, controlled.reloaded("two"), String::new()));
        }
        assert_eq!(controlled.server.connect().get("/f.txt").text(), "two");
        controlled.folder.file("site.toml", site("none"));
        let reloads = [(); 4].map(|()| controlled.spawn("reload"));
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
fn a_check_says_what_a_reload_would_do_and_changes_nothing() {
    for driver in drivers() {
        let controlled = Controlled::start(driver);
        let (folder, server) = (&controlled.folder, &controlled.server);
        let check = || run(folder, &["reload", "--check", "pid"]);
        let socket = folder.at("new.sock").display().to_string();
        folder.file("site.toml", site("two") + &format!("[[listen]]\naddress = \"unix:{socket}\"\n"));
        let two = folder.at("two");
        let expected =
            format!("a reload would succeed: site.toml: {}; now listening on unix:{socket}\n", two.display());
        assert_eq!(check(), (0, expected, String::new()));
        assert!(!folder.at("new.sock").exists(), "the address is given up again");
        assert_eq!(server.connect().get("/f.txt").text(), "one");
        folder.file("site.toml", site("three"));
        let (code, stdout, stderr) = check();
        assert_eq!((code, stdout.as_str()), (1, ""));
        assert!(stderr.starts_with("error: no such folder: ") && stderr.contains("site.toml:5:"), "{stderr}");
        assert!(stderr.ends_with("error: a reload would be refused\n"), "{stderr}");
        folder.file("site.toml", "");
        let (code, _, stderr) = check();
        assert!(code == 1 && stderr.starts_with("error: nothing is left to serve"), "{stderr}");
        folder.file("site.toml", site("two"));
        assert_eq!(controlled.reload(), (0, controlled.reloaded("two"), String::new()));
        let number = server.pid().to_string();
        let (code, _, stderr) = run(folder, &["reload", "--check", &number]);
        let expected = "error: only a server with a control socket can check\n\
            help: `shearwater check FILE` checks a file without a server\n";
        assert_eq!((code, stderr.as_str()), (1, expected));
    }
}
