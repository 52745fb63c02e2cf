//! Started programs: a server on a free loopback port, with its log.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

/// Time within which a started server must listen.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum part of the log in an error, bytes.
const LOG_TAIL_BYTES: usize = 2_000;

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct Program {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

/// Ports for servers of tests: below those that systems assign to clients, which would take them in the meantime.
const PORTS: Range<u16> = 10_000..30_000;

/// Returns a loopback address whose port was free a moment ago. Each call in a process returns another port.
pub fn free_address() -> Result<SocketAddr> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    // Processes begin far from one another.
    let begin = std::process::id().wrapping_mul(997);
    for _ in 0..count {
        let at = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % count;
        let port = PORTS.start + u16::try_from(at).map_err(Error::other)?;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            bound => return bound?.local_addr(),
        }
    }
    Err(Error::other("no port is free"))
}

/// Returns a line of a log without the time that it begins with in a file: `2026-11-23T21:25:00.123Z `.
fn without_time(line: &str) -> &str {
    match line.split_once("Z ") {
        Some((time, rest)) if time.len() == 23 && time.as_bytes()[10] == b'T' => rest,
        _ => line,
    }
}

impl Program {
    /// Starts `command`, a server on `address`, and waits until it accepts connections. Its output goes to the file `log`.
    pub fn start(mut command: Command, address: SocketAddr, log: &Path) -> Result<Self> {
        let output = File::create(log)?;
        let errors = output.try_clone()?;
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn()?;
        let mut program = Self { child, address, log: log.to_owned() };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = program.child.try_wait()? {
                return Err(Error::other(format!("exited at start, {status}: {}", program.log_tail())));
            }
            if Instant::now() >= deadline {
                return Err(Error::other(format!("does not listen on {address}: {}", program.log_tail())));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(program)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns true while the process has not exited.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Waits for its exit; `None` if it is still running after `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Sends `SIGTERM` and waits for its exit; `None` if it is still running after `timeout`.
    pub fn stop(&mut self, timeout: Duration) -> Option<ExitStatus> {
        // A process that has exited by itself is found by waiting.
        let _ = self.signal(Signal::TERM);
        self.wait(timeout)
    }

    /// Everything that it has written to standard output and standard error, without the times of messages.
    pub fn log(&self) -> String {
        let text = String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned();
        text.split_inclusive('\n').map(without_time).collect()
    }

    /// The log file.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let start = log.len().saturating_sub(LOG_TAIL_BYTES);
        log.get(start..).unwrap_or(&log).trim().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.is_alive() {
            // By its own process id; if it is gone already there is nothing left to do.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
