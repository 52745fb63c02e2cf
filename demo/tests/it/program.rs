//! The program as a child process on a free port, which ends with its test.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread::{self, JoinHandle};

use serde_json::Value;
use testkit::{ClientResponse, TestClient};

/// A running demo.
pub(crate) struct Program {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Option<JoinHandle<String>>,
    pub(crate) addr: SocketAddr,
    /// The first line of its output.
    pub(crate) banner: String,
}

/// A program's exit status and output.
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    /// Output after the banner.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Prepares the program with these settings only.
fn command<V: AsRef<OsStr>>(settings: &[(&str, V)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    for name in ["SERVER_MODE", "DATABASE_URL", "JWT_SECRET", "PORT", "LISTEN"] {
        command.env_remove(name);
    }
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    command
}

/// Copies the program's stderr to that of the test and keeps it.
fn overhear(stderr: ChildStderr) -> JoinHandle<String> {
    thread::spawn(move || {
        let lines = BufReader::new(stderr).lines().map_while(Result::ok);
        lines.inspect(|line| eprintln!("{line}")).map(|line| line + "\n").collect()
    })
}

/// Runs the program with invalid settings until it ends.
pub(crate) fn refused<V: AsRef<OsStr>>(settings: &[(&str, V)]) -> Output {
    command(settings).stdin(Stdio::null()).output().unwrap()
}

impl Program {
    /// Starts it, on a free port unless the settings say otherwise, and waits until it listens.
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

    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.addr)
    }

    /// Sends a request on a new connection. `fields` are lines without line ends.
    pub(crate) fn ask(&self, method: &str, target: &str, fields: &[&str], body: &[u8]) -> ClientResponse {
        self.connect().send_body(method, target, fields, body)
    }

    /// Sends a request with a JSON body.
    pub(crate) fn ask_json(&self, method: &str, target: &str, body: &Value) -> ClientResponse {
        self.ask(method, target, &["Content-Type: application/json"], body.to_string().as_bytes())
    }

    pub(crate) fn get(&self, target: &str) -> ClientResponse {
        self.connect().get(target)
    }

    /// Sends a signal that ends the program.
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

/// Reads a response's body as JSON.
pub(crate) trait Json {
    fn json(&self) -> Value;
}

impl Json for ClientResponse {
    fn json(&self) -> Value {
        let form = (self.status, self.field("content-type"));
        assert_eq!(form, (200, Some("application/json")), "{}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }
}
