//! A test binary as a process that runs a server and is signalled: one of its tests is what the process does.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::client::PATIENCE;

/// Set in such a process.
const IS_PROCESS: &str = "SHEARWATER_TEST_PROCESS";

/// Returns whether this is such a process.
pub(crate) fn is_this() -> bool {
    env::var_os(IS_PROCESS).is_some()
}

/// Tells the test where the process serves.
pub(crate) fn serves(address: SocketAddr) {
    println!("serving {address}");
}

/// Tells the test that its server has ended, and waits to be ended by a signal.
pub(crate) fn has_ended() {
    println!("ended");
    loop {
        thread::park();
    }
}

/// This test binary as a process that runs a server. Killed when dropped, or when it takes too long.
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    _net: SyncSender<()>,
}

impl Process {
    /// Starts one that does what the test `signals::process` does.
    pub(crate) fn start() -> Self {
        let program = env::current_exe().expect("this program is a file");
        Self::of(&mut Command::new(program))
    }

    /// The same by a command to which the test's name is added.
    pub(crate) fn of(command: &mut Command) -> Self {
        command.args(["--exact", "signals::process", "--nocapture", "--test-threads=1"]);
        command.env(IS_PROCESS, "").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let net = kill_unless_dropped(Pid::from_child(&child));
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let address = line_with(&mut stdout, "serving ").parse().expect("an address");
        Self { child, stdout, address, _net: net }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signalled");
    }

    /// Waits until nobody listens.
    pub(crate) fn until_refused(&self) {
        while TcpStream::connect(self.address).is_ok() {
            thread::yield_now();
        }
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

/// Kills a process after a while, unless the result is dropped before.
fn kill_unless_dropped(pid: Pid) -> SyncSender<()> {
    let (net, dropped) = sync_channel(0);
    thread::spawn(move || {
        if dropped.recv_timeout(2 * PATIENCE) == Err(RecvTimeoutError::Timeout) {
            kill_process(pid, Signal::KILL).ok();
        }
    });
    net
}

/// The rest of the next line that begins so, wherever the test harness has begun that line.
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
