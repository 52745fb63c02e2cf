//! The normal client: requests at a fixed rate, each latency counted from the moment the request was due.
//!
//! Open loop: a late answer delays the requests behind it, and their wait counts too (no coordinated omission).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::harness::client::{Client, request};
use crate::harness::trouble::Outcome;

/// Over how many connections the requests go in turn, so that every worker is met.
const CONNECTIONS: usize = 8;
/// The last stretch before a request is due is spent spinning: a sleep would add its own lateness.
const SPIN: Duration = Duration::from_micros(200);

/// One answered request.
#[derive(Debug, Clone, Copy)]
struct Sample {
    due: Instant,
    latency: Duration,
}

/// What the normal client saw.
#[derive(Debug, Default)]
pub(super) struct Samples {
    samples: Vec<Sample>,
    /// Requests that got no answer, or a wrong one.
    pub(super) failures: Vec<String>,
}

/// Latencies of one stretch of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latencies {
    /// How many requests were due in it.
    pub(super) count: usize,
    /// Half were faster, microseconds.
    pub(super) p50_us: f64,
    /// 99 of 100 were faster, microseconds.
    pub(super) p99_us: f64,
    /// The slowest, microseconds.
    pub(super) most_us: f64,
    /// The median of the p99 of every second: what remains when a few bad seconds of the machine are left out.
    pub(super) typical_p99_us: f64,
}

impl Latencies {
    /// One line for a report.
    pub(super) fn summary(&self) -> String {
        let Self { count, p50_us, p99_us, most_us, typical_p99_us } = self;
        format!(
            "us: p50 {p50_us:.0}, p99 {p99_us:.0} (typical second {typical_p99_us:.0}), most {most_us:.0}; n {count}"
        )
    }
}

impl Samples {
    /// The latencies of the requests that were due from `start` to `end`.
    pub(super) fn between(&self, start: Instant, end: Instant) -> Latencies {
        let sorted = self.sorted(start, end);
        Latencies {
            count: sorted.len(),
            p50_us: quantile_us(&sorted, 50),
            p99_us: quantile_us(&sorted, 99),
            most_us: quantile_us(&sorted, 100),
            typical_p99_us: self.typical_p99_us(start, end),
        }
    }

    fn sorted(&self, start: Instant, end: Instant) -> Vec<Duration> {
        let inside = self.samples.iter().filter(|sample| sample.due >= start && sample.due < end);
        let mut sorted: Vec<Duration> = inside.map(|sample| sample.latency).collect();
        sorted.sort_unstable();
        sorted
    }

    fn typical_p99_us(&self, start: Instant, end: Instant) -> f64 {
        let second = Duration::from_secs(1);
        let whole_seconds = u32::try_from((end - start).as_secs()).unwrap_or(u32::MAX);
        let p99_of =
            |index: u32| quantile_us(&self.sorted(start + second * index, start + second * (index + 1)), 99);
        let mut each: Vec<f64> = (0..whole_seconds).map(p99_of).collect();
        each.sort_unstable_by(f64::total_cmp);
        each.get(each.len() / 2).copied().unwrap_or(f64::INFINITY)
    }
}

/// Nearest rank: the smallest value that at least `percent` of all values do not exceed. Of nothing it is without end: a client that got
/// no answer at all has met no bound.
fn quantile_us(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(f64::INFINITY, |value| value.as_secs_f64() * 1e6)
}

/// A normal client at work on a thread of its own.
#[derive(Debug)]
pub(super) struct Pace {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Samples>,
}

impl Pace {
    /// Starts `GET target` at `rate` requests a second.
    pub(super) fn start(address: SocketAddr, target: &str, rate: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let bytes = request("GET", target);
        let thread = std::thread::spawn(move || run(address, &bytes, rate, &seen));
        Self { stop, thread }
    }

    /// Ends it and gives what it saw.
    pub(super) fn finish(self) -> Outcome<Samples> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the normal client panicked".into())
    }
}

fn run(address: SocketAddr, bytes: &[u8], rate: u32, stop: &AtomicBool) -> Samples {
    let interval = Duration::from_secs(1) / rate.max(1);
    let mut connections: Vec<Option<Client>> = (0..CONNECTIONS).map(|_| None).collect();
    let mut samples = Samples::default();
    let mut due = Instant::now() + interval;
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        wait_until(due);
        match ask(&mut connections[turn % CONNECTIONS], address, bytes) {
            Ok(()) => samples.samples.push(Sample { due, latency: due.elapsed() }),
            Err(failure) => samples.failures.push(failure),
        }
        due += interval;
        turn += 1;
    }
    samples
}

fn ask(slot: &mut Option<Client>, address: SocketAddr, bytes: &[u8]) -> Result<(), String> {
    let mut client = match slot.take() {
        Some(client) => client,
        None => Client::open(address).map_err(|fault| fault.to_string())?,
    };
    let answer = client.exchange(bytes, false).map_err(|fault| fault.to_string())?;
    if answer.head.status != 200 {
        return Err(format!("status {}", answer.head.status));
    }
    if !answer.head.announces_close() {
        *slot = Some(client);
    }
    Ok(())
}

fn wait_until(due: Instant) {
    let ahead = due.saturating_duration_since(Instant::now());
    if ahead > SPIN {
        std::thread::sleep(ahead - SPIN);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::quantile_us;
    use std::time::Duration;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        let rounded = |percent| quantile_us(&sorted, percent).round();
        assert_eq!((rounded(50), rounded(99), rounded(100)), (100.0, 198.0, 200.0));
        assert_eq!(quantile_us(&[], 99), f64::INFINITY);
    }
}
