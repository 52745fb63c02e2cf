//! The normal clients: keep-alive connections that ask at a fixed rate, every answer compared, every latency kept.
//!
//! Open loop: a request comes up at its time whether or not the one before it is answered, and its wait counts. All of it on one
//! thread, whose own lateness in waking is kept beside the latencies: what of them is the clients' own shows there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use super::asker::Asker;
use super::latency::Sample;
use super::modesty;
use super::template::Template;
use crate::harness::client::request;
use crate::harness::trouble::{During, Outcome};

/// Connections.
pub(super) const CONNECTIONS: usize = 64;
/// Requests a second, all connections together.
pub(super) const RATE: u32 = 640;
/// How long answers are awaited after the last request.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Examples of failures that are kept; all are counted.
const EXAMPLES_MAX: usize = 5;

/// What the normal clients saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Each answered request: when it came up, how long until the answer was there.
    pub(super) samples: Vec<Sample>,
    /// Each wait without an event: when it began, by how much it took longer than wanted.
    pub(super) lateness: Vec<Sample>,
    /// Requests without a right answer.
    pub(super) failures: u64,
    /// Some of them.
    pub(super) examples: Vec<String>,
}

impl Seen {
    fn failed(&mut self, count: usize, why: String) {
        self.failures += count as u64;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(why);
        }
    }
}

/// The clients at work on a thread of their own.
#[derive(Debug)]
pub(super) struct Normal {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Outcome<Seen>>,
}

impl Normal {
    /// Starts asking for `target`, whose answer is `template`.
    pub(super) fn start(address: SocketAddr, target: &str, template: Template) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let bytes = request("GET", target);
        let thread = std::thread::spawn(move || {
            // Where it is not allowed, lateness shows what that costs.
            modesty::go_first();
            Clients::start(address, bytes, template)?.run(&seen)
        });
        Self { stop, thread }
    }

    /// Ends them and gives what they saw.
    pub(super) fn finish(self) -> Outcome<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err("the normal clients panicked".to_owned().into()))
    }
}

struct Clients {
    poll: Poll,
    address: SocketAddr,
    request: Vec<u8>,
    template: Template,
    askers: Vec<Option<Asker>>,
    turn: usize,
    seen: Seen,
}

impl Clients {
    fn start(address: SocketAddr, request: Vec<u8>, template: Template) -> Outcome<Self> {
        let poll = Poll::new().during("opening the normal clients' selector")?;
        let open = |index| Asker::open(address, poll.registry(), Token(index)).map(Some);
        let askers: std::io::Result<Vec<_>> = (0..CONNECTIONS).map(open).collect();
        let askers = askers.during("connecting the normal clients")?;
        Ok(Self { poll, address, request, template, askers, turn: 0, seen: Seen::default() })
    }

    fn run(mut self, stop: &AtomicBool) -> Outcome<Seen> {
        let interval = Duration::from_secs(1) / RATE;
        let mut due = Instant::now() + interval;
        while !stop.load(Ordering::Relaxed) {
            self.wait(due)?;
            while due <= Instant::now() {
                self.ask_next();
                due += interval;
            }
        }
        let end = Instant::now() + LAST_ANSWERS;
        while self.unanswered() > 0 && Instant::now() < end {
            self.wait(end)?;
        }
        match self.unanswered() {
            0 => {}
            count => self.seen.failed(count, format!("no answer within {} s", LAST_ANSWERS.as_secs())),
        }
        Ok(self.seen)
    }

    fn unanswered(&self) -> usize {
        self.askers.iter().flatten().map(Asker::unanswered).sum()
    }

    /// Waits for answers until `due` at the latest, in whole milliseconds as the kernel does.
    fn wait(&mut self, due: Instant) -> Outcome<()> {
        let mut events = Events::with_capacity(CONNECTIONS);
        let begun = Instant::now();
        let wanted = due.saturating_duration_since(begun).as_micros().div_ceil(1000);
        let wanted = Duration::from_millis(u64::try_from(wanted).unwrap_or(u64::MAX));
        match self.poll.poll(&mut events, Some(wanted)) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            outcome => outcome.during("waiting for the normal clients' sockets")?,
        }
        if events.is_empty() {
            self.seen.lateness.push((begun, begun.elapsed().saturating_sub(wanted)));
        }
        for event in &events {
            self.read(event.token().0);
        }
        Ok(())
    }

    fn read(&mut self, index: usize) {
        let Some(Some(asker)) = self.askers.get_mut(index) else { return };
        let samples = &mut self.seen.samples;
        let keep = &mut |asked, latency| samples.push((asked, latency));
        if let Err(why) = asker.read(&self.request, &self.template, keep) {
            self.fail(index, why);
        }
    }

    /// What was asked and not answered has failed; the next time it is asked on a new connection.
    fn fail(&mut self, index: usize, why: String) {
        let lost = self.askers[index].take().map_or(0, |asker| asker.unanswered());
        self.seen.failed(lost.max(1), why);
    }

    fn ask_next(&mut self) {
        let index = self.turn % CONNECTIONS;
        self.turn += 1;
        if self.askers[index].is_none() {
            self.askers[index] = Asker::open(self.address, self.poll.registry(), Token(index)).ok();
        }
        let Some(asker) = &mut self.askers[index] else {
            self.seen.failed(1, "could not connect again".to_owned());
            return;
        };
        if let Err(why) = asker.ask(Instant::now(), &self.request) {
            self.fail(index, why);
        }
    }
}
