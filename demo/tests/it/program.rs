//! The program as a process of its own, on a free port, ended with its test.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::answer::Answer;

/// How long any wait may last before the test fails.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// A running demo.
pub(crate) struct Program {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Option<JoinHandle<String>>,
    pub(crate) addr: SocketAddr,
    /// The line that it starts with.
    pub(crate) banner: String,
}

/// How a program ended, and what it had said until then.
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    /// Behind the banner.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program with nothing but these settings, not started yet.
fn command<V: AsRef<OsStr>>(settings: &[(&str, V)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    for name in ["SERVER_MODE", "DATABASE_URL", "JWT_SECRET", "PORT", "LISTEN"] {
        command.env_remove(name);
    }
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    command
}

/// Hands on what a program says to standard error, for whoever looks at a test that fails, and keeps it.
fn overhear(stderr: ChildStderr) -> JoinHandle<String> {
    thread::spawn(move || {
        let lines = BufReader::new(stderr).lines().map_while(Result::ok);
        lines.inspect(|line| eprintln!("{line}")).map(|line| line + "\n").collect()
    })
}

/// Runs the program with settings that it refuses, to its end.
pub(crate) fn refused<V: AsRef<OsStr>>(settings: &[(&str, V)]) -> Output {
    command(settings).stdin(Stdio::null()).output().unwrap()
}

impl Program {
    /// Starts it on a free port, unless the settings say where, and waits until it listens.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        let mut command = command(settings);
        if settings.iter().all(|(name, _)| *name != "LISTEN") {
            command.env("PORT", "0");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = child.stderr.take().map(overhear);
        let mut banner = String::new();
        stdout.read_line(&mut banner).unwrap();
        let addr = banner.strip_prefix("demo: http://").and_then(|rest| rest.split('/').next());
        let addr = addr.and_then(|addr| addr.parse().ok());
        let addr = addr.unwrap_or_else(|| panic!("no address in {banner:?}"));
        Self { child, stdout, stderr, addr, banner }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
        stream
    }

    /// One request on a connection of its own. `fields` are whole lines without their ends.
    pub(crate) fn ask(&self, method: &str, target: &str, fields: &[&str], body: &[u8]) -> Answer {
        let mut stream = self.connect();
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n");
        fields.iter().for_each(|field| head.push_str(&format!("{field}\r\n")));
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer::parse(&bytes)
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], b"")
    }

    /// Asks the program to end, as an operator does.
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> End {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        End { status: self.child.wait().unwrap(), stdout, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
