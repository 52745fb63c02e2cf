//! The program as a process: temporary folders, drivers, start, stop, counters; its threads and sockets from `/proc`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use testkit::{TIMEOUT, TestClient, TestFolder};

/// Returns the program with arguments, to be started in a folder.
pub(crate) fn program(folder: &TestFolder, arguments: &[&str]) -> Command {
    piped(Command::new(env!("CARGO_BIN_EXE_shearwater")), folder, arguments)
}

/// Returns a shell that executes a line before the program, such as `ulimit -n 64`.
pub(crate) fn program_after(line: &str, folder: &TestFolder, arguments: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{line} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_shearwater")]);
    piped(shell, folder, arguments)
}

/// Returns another program that executes this one, such as `env --block-signal=TERM`.
pub(crate) fn program_under(launcher: &[&str], folder: &TestFolder, arguments: &[&str]) -> Command {
    let mut command = Command::new(launcher[0]);
    command.args(&launcher[1..]).arg(env!("CARGO_BIN_EXE_shearwater"));
    piped(command, folder, arguments)
}

fn piped(mut command: Command, folder: &TestFolder, arguments: &[&str]) -> Command {
    command.args(arguments).current_dir(folder.path()).env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program until it exits. Returns its exit code and output.
pub(crate) fn run(folder: &TestFolder, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = wait(program(folder, arguments).spawn().expect("it starts"));
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("no signal has ended it"), text(stdout), text(stderr))
}

/// Waits for a process with a timeout.
fn wait(child: Child) -> Output {
    let pid = Pid::from_child(&child);
    let (ended, has_ended) = sync_channel(1);
    let waiting = std::thread::spawn(move || {
        let output = child.wait_with_output().expect("it can be waited for");
        ended.send(()).ok();
        output
    });
    if has_ended.recv_timeout(TIMEOUT).is_err() {
        kill_process(pid, Signal::KILL).ok();
        panic!("the program did not end: {:?}", waiting.join());
    }
    waiting.join().expect("it was waited for")
}

/// A running server, killed when dropped.
pub(crate) struct Server {
    child: Option<Child>,
    /// The process that has taken its place.
    successor: Option<Pid>,
    stdout: Option<BufReader<ChildStdout>>,
    /// Standard error, once it was read from.
    stderr: Option<BufReader<ChildStderr>>,
    /// The start report.
    pub(crate) banner: String,
}

impl Server {
    /// Starts the server on a free port and waits for the start report.
    pub(crate) fn start(folder: &TestFolder, arguments: &[&str]) -> Self {
        if testkit::tls::is_on() {
            return Self::start_by_tls(folder, arguments);
        }
        Self::of(program(folder, arguments).args(["--listen", "127.0.0.1:0"]))
    }

    /// Starts the server as [`start`](Self::start), by TLS: a configuration file gets an address with TLS and certificates.
    fn start_by_tls(folder: &TestFolder, arguments: &[&str]) -> Self {
        let file = arguments.iter().find(|argument| argument.ends_with(".toml"));
        let text = file.map(|file| fs::read_to_string(folder.at(file)).expect("it was written"));
        let (Some(file), Some(text)) = (file, text.filter(|text| text.contains("[[site]]"))) else {
            return Self::of(program(folder, arguments).args(["--listen", "127.0.0.1:0", "--self-signed"]));
        };
        if text.contains("tls = \"self-signed\"") {
            // By an earlier start.
            return Self::of(&mut program(folder, arguments));
        }
        let secured = text.replace("[[site]]\n", "[[site]]\ntls = \"self-signed\"\nhttp = \"serve\"\n");
        let secured = secured.replace("[[listen]]\n", "[[listen]]\ntls = true\n");
        let listen = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n";
        let listen = if secured.contains("[[listen]]") { "" } else { listen };
        folder.file(file, format!("{secured}{listen}"));
        Self::of(&mut program(folder, arguments))
    }

    /// Starts a server and waits for the start report.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::try_start(command).unwrap_or_else(|ended| panic!("it ended at its start: {ended:?}"))
    }

    /// Starts a server. If it exits, returns its exit code and output.
    pub(crate) fn try_start(command: &mut Command) -> Result<Self, (Option<i32>, String)> {
        let mut child = command.spawn().expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut server =
            Self { child: Some(child), successor: None, stdout: None, stderr: None, banner: String::new() };
        while !server.banner.ends_with("\n\n") {
            let count = stdout.read_line(&mut server.banner).expect("UTF-8");
            if count == 0 {
                let output = wait(server.child.take().expect("it was started"));
                let text = server.banner.clone() + &String::from_utf8_lossy(&output.stderr);
                return Err((output.status.code(), text));
            }
        }
        server.stdout = Some(stdout);
        Ok(server)
    }

    /// Waits until a server without output listens at `address`.
    pub(crate) fn silent(child: Child, address: SocketAddr) -> Self {
        let banner = format!("URL http://{address}/\n\n");
        let server = Self { child: Some(child), successor: None, stdout: None, stderr: None, banner };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(start.elapsed() < TIMEOUT, "it does not listen");
            std::thread::yield_now();
        }
        server
    }

    /// Returns a line of the start report by its label.
    pub(crate) fn line(&self, name: &str) -> Option<&str> {
        let lines = self.banner.lines().filter_map(|line| line.trim_start().split_once(' '));
        lines.into_iter().find(|(given, _)| *given == name).map(|(_, value)| value.trim())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let url = self.line("URL").expect("a URL");
        let authority = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let authority = authority.and_then(|url| url.strip_suffix('/')).expect(url);
        authority.parse().expect("an address and a port")
    }

    /// Connects as its URL says.
    pub(crate) fn connect(&self) -> TestClient {
        match self.line("URL") {
            Some(url) if url.starts_with("https:") => TestClient::connect(self.address()),
            _ => TestClient::connect_in_clear(self.address()),
        }
    }

    /// Closes our end of its standard output.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    pub(crate) fn pid(&self) -> Pid {
        self.successor.unwrap_or_else(|| Pid::from_child(self.child.as_ref().expect("it serves")))
    }

    /// Has a process that was started by the server take its place. It has the same standard output and error.
    pub(crate) fn succeeded_by(&mut self, pid: Pid) {
        self.successor = Some(pid);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("signalled");
    }

    /// Waits for the next line on standard error.
    pub(crate) fn next_line(&mut self) -> String {
        let child = self.child.as_mut().expect("it serves");
        let stderr = self.stderr.get_or_insert_with(|| BufReader::new(child.stderr.take().expect("a pipe")));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("UTF-8");
        line
    }

    /// Stops it with SIGTERM, in order. Returns the rest of standard output and standard error.
    #[track_caller]
    pub(crate) fn stop(self) -> (String, String) {
        self.signal(Signal::TERM);
        let (code, stdout, stderr) = self.end();
        assert_eq!(code, Some(0), "{stderr}");
        (stdout, stderr)
    }

    /// Waits until it exits. Returns the exit code, unless killed by a signal, and the rest of standard output and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let output = wait(self.child.take().expect("it serves"));
        let mut stdout = String::new();
        if let Some(rest) = &mut self.stdout {
            rest.read_to_string(&mut stdout).expect("UTF-8");
        }
        let mut stderr = String::from_utf8(output.stderr).expect("UTF-8");
        if let Some(rest) = &mut self.stderr {
            rest.read_to_string(&mut stderr).expect("UTF-8");
        }
        (output.status.code(), stdout, stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        if let Some(pid) = self.successor {
            let _ = kill_process(pid, Signal::KILL);
        }
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Returns the names of the available drivers, at least one.
pub(crate) fn drivers() -> &'static [&'static str] {
    static FOUND: OnceLock<Vec<&str>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let folder = TestFolder::new();
        let is_there = |name: &&str| {
            let arguments = ["--listen", "127.0.0.1:0", "--workers", "1", "--driver", name];
            match Server::try_start(&mut program(&folder, &arguments)) {
                Ok(_) => true,
                Err((code, output)) => {
                    assert!(code == Some(2) && output.contains("isn't there"), "{name}: {output}");
                    false
                }
            }
        };
        let found: Vec<&str> = ["epoll", "kqueue", "uring"].into_iter().filter(is_there).collect();
        assert!(!found.is_empty(), "there is no driver at all");
        found
    })
}

/// A line of counters.
pub(crate) struct Summary(String);

impl Summary {
    /// Returns the last line of counters in a log.
    #[track_caller]
    pub(crate) fn of(stderr: &str) -> Self {
        let line = stderr.lines().rfind(|line| line.contains(" requests (2xx "));
        Self(line.unwrap_or_else(|| panic!("no figures: {stderr:?}")).to_owned())
    }

    /// Requests the counters with SIGUSR1.
    pub(crate) fn so_far(server: &mut Server) -> Self {
        server.signal(Signal::USR1);
        loop {
            let line = server.next_line();
            assert!(!line.is_empty(), "it has ended");
            if line.starts_with("shearwater: so far ") {
                return Self(line);
            }
        }
    }

    /// Requests the counters until a condition holds.
    #[track_caller]
    pub(crate) fn until(server: &mut Server, mut is_there: impl FnMut(&Self) -> bool) -> Self {
        let start = Instant::now();
        loop {
            let summary = Self::so_far(server);
            if is_there(&summary) {
                return summary;
            }
            assert!(start.elapsed() < TIMEOUT, "it never comes to that: {}", summary.0);
        }
    }

    /// Returns how often a limit was reached, by its name in `docs/limits.md`.
    pub(crate) fn reached(&self, limit: &str) -> u64 {
        let Some((_, limits)) = self.0.split_once("; limits reached: ") else { return 0 };
        let limits = limits.split(';').next().unwrap_or("").trim_end().split(", ");
        let found = limits.filter_map(|entry| entry.split_once(' ')).find(|(name, _)| *name == limit);
        found.map_or(0, |(_, count)| count.parse().expect("a number"))
    }

    /// Returns the number before a word, such as `open`, `reset` or `bytes received`.
    #[track_caller]
    pub(crate) fn count(&self, word: &str) -> u64 {
        let before = self.0.split(&format!(" {word}")).next().expect("a part");
        let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().expect("a part");
        digits.parse().unwrap_or_else(|_| panic!("no number of {word}: {}", self.0))
    }
}

/// Returns whether `/proc` exists.
pub(crate) fn has_proc() -> bool {
    let exists = Path::new("/proc/self/task").exists();
    if !exists {
        println!("skipped: there is no /proc");
    }
    exists
}

/// One thread of a process.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// Numbers of the cores that it may run on.
    pub(crate) cores: Vec<u32>,
}

/// Returns the threads of a process.
pub(crate) fn threads(pid: Pid) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).expect("its threads");
    let thread = |folder: &Path| {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let name = line("Name:").expect("a name").to_owned();
        Some(Thread { name, cores: cores(line("Cpus_allowed_list:").expect("cores")) })
    };
    // A thread may end after it is listed.
    tasks.filter_map(|task| thread(&task.expect("a thread").path())).collect()
}

/// Parses `0-3,8`.
fn cores(list: &str) -> Vec<u32> {
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let range = |range: &str| match range.split_once('-') {
        Some((first, last)) => (number(first)..=number(last)).collect(),
        None => vec![number(range)],
    };
    list.split(',').flat_map(range).collect()
}

/// An IPv4 TCP socket of this machine.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) port: u16,
    pub(crate) remote_port: u16,
    pub(crate) state: State,
    /// Unread bytes; of a listener, connections to accept.
    pub(crate) waiting: u32,
    /// The kernel's keepalive timer is active.
    pub(crate) has_keepalive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Established,
    /// A client that waits for a SYN-ACK.
    SynSent,
    Listen,
    Other,
}

/// Returns all sockets.
pub(crate) fn sockets() -> Vec<Socket> {
    let text = fs::read_to_string("/proc/net/tcp").expect("sockets");
    text.lines().skip(1).map(socket).collect()
}

fn socket(line: &str) -> Socket {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let hex = |text: &str| u32::from_str_radix(text, 16).expect("a hexadecimal number");
    let after_colon = |text: &str| hex(text.split_once(':').expect("a colon").1);
    let port = |address: &str| u16::try_from(after_colon(address)).expect("a port");
    Socket {
        port: port(columns[1]),
        remote_port: port(columns[2]),
        state: match columns[3] {
            "01" => State::Established,
            "02" => State::SynSent,
            "0A" => State::Listen,
            _ => State::Other,
        },
        waiting: after_colon(columns[4]),
        has_keepalive: columns[5].starts_with("02:"),
    }
}
