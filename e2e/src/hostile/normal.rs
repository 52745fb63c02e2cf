//! The normal clients: keep-alive connections with requests at a fixed rate, every response compared, every latency recorded.
//!
//! A latency counts from the time at which the request was due, also if the response before it was late. The threads' own lateness in
//! waking is recorded beside the latencies: that share of them is not the server's.

use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::context::KeptClient;
use crate::expected::ExactResponse;

const CLIENTS: u32 = 64;
/// Time between two requests of one client: all of them together send 640 a second.
const INTERVAL: Duration = Duration::from_millis(100);

/// Latencies and errors of the normal clients.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// For each response, the time at which its request was due, and the latency.
    pub(super) samples: Vec<(Instant, Duration)>,
    /// For each time at which a request was due, the lateness of the client.
    pub(super) lateness: Vec<(Instant, Duration)>,
    pub(super) errors: Vec<String>,
}

/// The clients on threads of their own.
pub(super) struct Normal {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Seen>>,
}

impl Normal {
    /// Starts requesting `target`.
    pub(super) fn start(address: SocketAddr, target: &'static str, expected: &ExactResponse) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = |number| {
            let (stop, expected) = (Arc::clone(&stop), expected.clone());
            thread::spawn(move || run(address, target, &expected, INTERVAL / CLIENTS * number, &stop))
        };
        Self { threads: (0..CLIENTS).map(spawn).collect(), stop }
    }

    /// Stops them.
    pub(super) fn finish(self) -> Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for thread in self.threads {
            let seen = thread.join().map_err(|_| anyhow!("a normal client panicked"))?;
            all.samples.extend(seen.samples);
            all.lateness.extend(seen.lateness);
            all.errors.extend(seen.errors);
        }
        Ok(all)
    }
}

fn run(
    address: SocketAddr,
    target: &str,
    expected: &ExactResponse,
    begin: Duration,
    stop: &AtomicBool,
) -> Seen {
    // Only root may; elsewhere the lateness shows.
    set_scheduling("--fifo", "1");
    let (mut seen, mut client) = (Seen::default(), KeptClient::new(address));
    let mut due = Instant::now() + begin;
    while !stop.load(Ordering::Relaxed) {
        let ahead = due.saturating_duration_since(Instant::now());
        thread::sleep(ahead);
        if !ahead.is_zero() {
            seen.lateness.push((due, due.elapsed()));
        }
        match client.request("GET", target, &[]) {
            Ok(response) if expected.equals(&response) => seen.samples.push((due, due.elapsed())),
            Ok(response) => seen.errors.push(format!("a wrong response: {:?}", response.head.text())),
            Err(error) => seen.errors.push(error.to_string()),
        }
        due += INTERVAL;
    }
    seen
}

/// Sets the scheduling class of this thread by the system's own program; this crate has no unsafe code to call the kernel.
pub(super) fn set_scheduling(class: &str, priority: &str) {
    let Ok(thread) = fs::read_link("/proc/thread-self") else { return };
    let mut command = Command::new("chrt");
    command.args([class, "--pid", priority]).args(thread.file_name());
    // Without the program or the right, latencies are worse, and show it as lateness.
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}
