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

/// Latencies and errors of the normal clients.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// For each response, the time at which its request was due, and the latency.
    pub(crate) samples: Vec<(Instant, Duration)>,
    /// For each time at which a request was due, the lateness of the client.
    pub(crate) lateness: Vec<(Instant, Duration)>,
    pub(crate) errors: Vec<String>,
}

/// Clients at a fixed rate, each on a thread of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NormalClients<'a> {
    pub(crate) count: u32,
    /// Time between two requests of one client.
    pub(crate) interval: Duration,
    pub(crate) address: SocketAddr,
    pub(crate) target: &'a str,
    pub(crate) expected: &'a ExactResponse,
    /// Requests of every other client, if they are others.
    pub(crate) also: Option<OtherRequest<'a>>,
}

/// A request with headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherRequest<'a> {
    pub(crate) target: &'a str,
    pub(crate) headers: &'a [&'a str],
    pub(crate) expected: &'a ExactResponse,
}

impl NormalClients<'_> {
    /// Does `work` while the clients send requests.
    pub(crate) fn beside<T>(self, work: impl FnOnce() -> T) -> (T, Seen) {
        let stop = &AtomicBool::new(false);
        thread::scope(|scope| {
            let spawn = |number| scope.spawn(move || self.run(number, stop));
            let threads: Vec<_> = (0..self.count).map(spawn).collect();
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

    fn run(self, number: u32, stop: &AtomicBool) -> Seen {
        let own = OtherRequest { target: self.target, headers: &[], expected: self.expected };
        let request = self.also.filter(|_| number % 2 == 1).unwrap_or(own);
        // Only root may; elsewhere the lateness shows.
        set_scheduling("--fifo", "1");
        let (mut seen, mut client) = (Seen::default(), KeptClient::new(self.address));
        let mut due = Instant::now() + self.interval / self.count * number;
        while !stop.load(Ordering::Relaxed) {
            let ahead = due.saturating_duration_since(Instant::now());
            thread::sleep(ahead);
            if !ahead.is_zero() {
                seen.lateness.push((due, due.elapsed()));
            }
            match client.request("GET", request.target, request.headers) {
                Ok(response) if request.expected.equals(&response) => seen.samples.push((due, due.elapsed())),
                Ok(response) => seen.errors.push(format!("a wrong response: {:?}", response.head.text())),
                Err(error) => seen.errors.push(error.to_string()),
            }
            due += self.interval;
        }
        seen
    }
}

/// Sets the scheduling class of this thread by the system's own program; this crate has no unsafe code to call the kernel.
pub(crate) fn set_scheduling(class: &str, priority: &str) {
    let Ok(thread) = fs::read_link("/proc/thread-self") else { return };
    let mut command = Command::new("chrt");
    command.args([class, "--pid", priority]).args(thread.file_name());
    // Without the program or the right, latencies are worse, and show it as lateness.
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}
