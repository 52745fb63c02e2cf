//! A test binary as a server process that gets signals. One of its tests is the process's code.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use testkit::TIMEOUT;

/// Environment variable set in the child process.
const IS_PROCESS: &str = "SHEARWATER_TEST_PROCESS";

/// Returns true in the child process.
pub(crate) fn is_this() -> bool {
    env::var_os(IS_PROCESS).is_some()
}

/// Reports the server's address to the test.
pub(crate) fn serves(address: SocketAddr) {
    println!("serving {address}");
}

/// Reports the server's end to the test, and waits to be ended by a signal.
pub(crate) fn has_ended() {
    println!("ended");
    loop {
        thread::park();
    }
}

/// Returns a command that runs a test of this binary as a process.
pub(crate) fn command(test: &str, variables: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program is a file"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.envs(variables.iter().copied()).env(IS_PROCESS, "").stderr(Stdio::null());
    command
}

/// A child process that runs a server. Killed when dropped or after a time limit.
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    _net: SyncSender<()>,
}

impl Process {
    /// Starts a process that runs a test of this binary.
    pub(crate) fn start(test: &str) -> Self {
        Self::start_with(test, &[])
    }

    /// Starts a process with further environment variables.
    pub(crate) fn start_with(test: &str, variables: &[(&str, &Path)]) -> Self {
        let mut command = command(test, variables);
        command.stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let net = kill_unless_dropped(Pid::from_child(&child));
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let address = line_with(&mut stdout, "serving ").parse().expect("an address");
        Self { child, stdout, address, _net: net }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signalled");
    }

    /// Waits until its server has ended.
    pub(crate) fn server_ended(&mut self) {
        line_with(&mut self.stdout, "ended");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.child.wait().expect("it can be waited for")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Kills a process after a time limit, unless dropped before.
fn kill_unless_dropped(pid: Pid) -> SyncSender<()> {
    let (net, dropped) = sync_channel(0);
    thread::spawn(move || {
        if dropped.recv_timeout(2 * TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            kill_process(pid, Signal::KILL).ok();
        }
    });
    net
}

/// Returns the rest of the next line with this prefix, after anything that the test harness printed on that line.
fn line_with(lines: &mut impl BufRead, begins: &str) -> String {
    let mut line = String::new();
    while lines.read_line(&mut line).expect("UTF-8") > 0 {
        if let Some((_, rest)) = line.trim_end().split_once(begins) {
            return rest.to_owned();
        }
        line.clear();
    }
    panic!("it ended without {begins:?}");
}
