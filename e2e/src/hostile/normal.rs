//! The normal clients: keep-alive connections with requests at a fixed rate, every response compared, every latency recorded.
//!
//! A latency counts from the time at which the request was due, also if the response before it was late. The threads' own lateness in
//! waking is recorded beside the latencies: that share of them is not the server's.

use std::fs;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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

/// Does `work` while the clients request `target`.
pub(super) fn beside_normal_clients<T>(
    address: SocketAddr,
    target: &str,
    expected: &ExactResponse,
    work: impl FnOnce() -> T,
) -> (T, Seen) {
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let spawn =
            |number| scope.spawn(move || run(address, target, expected, INTERVAL / CLIENTS * number, stop));
        let threads: Vec<_> = (0..CLIENTS).map(spawn).collect();
        let done = work();
        stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for thread in threads {
            let seen = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            all.samples.extend(seen.samples);
            all.lateness.extend(seen.lateness);
            all.errors.extend(seen.errors);
        }
        (done, all)
    })
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
