//! A crowd of hostile connections on one thread: opened over a time, each doing what its script says, until all have ended or
//! the time is over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use super::ending::{End, How, Tally};
use super::modesty;
use super::script::{Reading, Script};
use super::source::Sources;
use super::visitor::{Next, Signs, Visitor};
use crate::harness::trouble::{During, Outcome};

/// Connections opened before those that are there have their turn.
const OPENS_PER_TURN_MAX: u64 = 32;
/// Events taken from the kernel at a time.
const EVENTS_MAX: usize = 1024;
/// How many bytes one read asks for.
const READ_SIZE: usize = 64 * 1024;

/// How many connections, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Connections in all.
    pub(super) count: u64,
    /// They are opened evenly over this time.
    pub(super) spread: Duration,
    /// At the latest then they are let go of.
    pub(super) until: Instant,
    /// Where they come from.
    pub(super) sources: Sources,
}

/// The connections of one wave.
struct Crowd<'a> {
    poll: Poll,
    address: SocketAddr,
    plan: Plan,
    script_of: &'a mut dyn FnMut(u64) -> Arc<Script>,
    visitors: Vec<Option<Visitor>>,
    /// When which is due. An entry may have been overtaken by an event: then it is a look too many.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    begun: Instant,
    live: u64,
    tally: Tally,
    scratch: Vec<u8>,
}

/// Sends a crowd to `address` and gives how its connections ended.
pub(super) fn send(
    address: SocketAddr,
    plan: Plan,
    script_of: &mut dyn FnMut(u64) -> Arc<Script>,
) -> Outcome<Tally> {
    modesty::stand_back();
    let poll = Poll::new().during("opening the crowd's selector")?;
    let mut crowd = Crowd {
        poll,
        address,
        plan,
        script_of,
        visitors: Vec::new(),
        due: BinaryHeap::new(),
        begun: Instant::now(),
        live: 0,
        tally: Tally::default(),
        scratch: vec![0; READ_SIZE],
    };
    crowd.run()?;
    Ok(crowd.finish())
}

impl Crowd<'_> {
    fn run(&mut self) -> Outcome<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            let now = Instant::now();
            if now >= self.plan.until || (self.opened() == self.plan.count && self.live == 0) {
                return Ok(());
            }
            self.open_due(now);
            let patience = self.next_moment(now).saturating_duration_since(now);
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                outcome => outcome.during("waiting for the crowd's sockets")?,
            }
            for event in &events {
                self.turn(event.token().0, Signs::from(event));
            }
            self.turn_due(Instant::now());
        }
    }

    fn opened(&self) -> u64 {
        self.visitors.len() as u64
    }

    /// When the connection with this number is opened.
    fn opening_time(&self, number: u64) -> Instant {
        self.begun + self.plan.spread.mul_f64(number as f64 / self.plan.count.max(1) as f64)
    }

    fn next_moment(&self, now: Instant) -> Instant {
        let opening = (self.opened() < self.plan.count).then(|| self.opening_time(self.opened()));
        let due = self.due.peek().map(|Reverse((at, _))| *at);
        let first = opening.into_iter().chain(due).chain([self.plan.until]).min();
        first.unwrap_or(now).max(now)
    }

    fn open_due(&mut self, now: Instant) {
        for _ in 0..OPENS_PER_TURN_MAX {
            let number = self.opened();
            if number >= self.plan.count || self.opening_time(number) > now {
                return;
            }
            self.open(number);
        }
    }

    fn open(&mut self, number: u64) {
        let script = (self.script_of)(number);
        let slow = matches!(script.reading, Reading::Slowly { .. });
        let opened = Instant::now();
        let Ok(stream) = self.plan.sources.connect(number, self.address, slow) else {
            self.visitors.push(None);
            self.tally.add(End { status: None, how: How::Refused }, Duration::ZERO);
            return;
        };
        let mut visitor = Visitor::new(stream, script, opened);
        let index = self.visitors.len();
        let both = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut visitor.stream, Token(index), both).is_err() {
            self.visitors.push(None);
            self.tally.add(End { status: None, how: How::Refused }, Duration::ZERO);
            return;
        }
        self.visitors.push(Some(visitor));
        self.live += 1;
    }

    fn turn_due(&mut self, now: Instant) {
        let mut turns = self.due.len();
        while turns > 0 && self.due.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            turns -= 1;
            if let Some(Reverse((_, index))) = self.due.pop() {
                self.turn(index, Signs::default());
            }
        }
    }

    fn turn(&mut self, index: usize, signs: Signs) {
        let Some(Some(visitor)) = self.visitors.get_mut(index) else { return };
        let now = Instant::now();
        match visitor.turn(now, signs, &mut self.scratch) {
            Next::Event => {}
            Next::At(at) => self.due.push(Reverse((at, index))),
            Next::End(end) => {
                self.tally.add(end, visitor.age(now));
                self.visitors[index] = None;
                self.live -= 1;
            }
        }
    }

    fn finish(mut self) -> Tally {
        let now = Instant::now();
        for visitor in self.visitors.iter().flatten() {
            self.tally.add(visitor.end(How::Held), visitor.age(now));
        }
        self.tally
    }
}
