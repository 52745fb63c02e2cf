//! Work at fixed intervals: stages of connections, speeds of slow connections, and progress.

use std::time::{Duration, Instant};

use super::load::LoadCounts;
use super::{LoadClient, LoadConnection, Pacing};

/// Interval between ticks.
pub(super) const TICK: Duration = Duration::from_millis(20);
/// Connections opened in a tick: more would delay responses.
const OPENED_PER_TICK_MAX: usize = 256;

/// A linear change of the number of connections, from that of the stage before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stage {
    /// Connections at its end.
    pub(crate) connections: u32,
    pub(crate) duration: Duration,
}

impl Stage {
    /// Returns the number of the stage at a time since the start, and its connections then.
    pub(super) fn at(stages: &[Self], elapsed: Duration) -> (usize, u32) {
        let (mut begin, mut before) = (Duration::ZERO, 0);
        for (number, stage) in stages.iter().enumerate() {
            let end = begin + stage.duration;
            if elapsed < end {
                let share = (elapsed - begin).as_secs_f64() / stage.duration.as_secs_f64();
                let change = f64::from(stage.connections) - f64::from(before);
                return (number, (f64::from(before) + change * share).round() as u32);
            }
            (begin, before) = (end, stage.connections);
        }
        (stages.len().saturating_sub(1), before)
    }
}

/// Receives the progress of a run: time since its start, open connections, counts.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(Duration, usize, &LoadCounts);

impl LoadClient<'_> {
    pub(super) fn tick(&mut self, now: Instant, buffer: &mut [u8]) {
        let interval = now.saturating_duration_since(self.last_tick);
        if interval < TICK {
            return;
        }
        let elapsed = now.saturating_duration_since(self.begin);
        self.last_tick = now;
        if !self.load.options.stages.is_empty() {
            self.change_connections(elapsed);
        }
        let options = &self.load.options;
        if options.read_bytes_per_s.is_some() || options.write_bytes_per_s.is_some() {
            let [read, write] = [options.read_bytes_per_s, options.write_bytes_per_s].map(|rate| {
                rate.map(|rate| due_bytes(rate, elapsed) - due_bytes(rate, elapsed.saturating_sub(interval)))
            });
            for number in 0..self.connections.len() {
                self.connections[number].allow(read, write);
                self.ready(number, buffer, true);
            }
        }
        if let Some(observer) = &mut self.observer {
            observer(elapsed, self.connections.len(), &self.counts);
        }
    }

    fn change_connections(&mut self, elapsed: Duration) {
        let (stage, wanted) = Stage::at(&self.load.options.stages, elapsed);
        // Between two ticks the end of a stage may have passed.
        let wanted =
            if stage > self.stage { self.load.options.stages[stage - 1].connections } else { wanted };
        let before = std::mem::replace(&mut self.active, wanted as usize);
        self.stage = stage;
        // Connections beyond the number close after the response that they wait for.
        while self.connections.len() > self.active && self.connections.last().is_some_and(|it| it.is_idle()) {
            self.connections.pop();
        }
        self.idle.retain(|&number| number < self.active);
        for number in before..self.active.min(self.connections.len()) {
            if self.connections[number].is_idle() {
                self.start(number);
            }
        }
        for _ in self.connections.len()..self.active.min(self.connections.len() + OPENED_PER_TICK_MAX) {
            if !self.open_next() {
                return;
            }
        }
    }

    /// Opens another connection and lets it send; returns false if the kernel refused it.
    pub(super) fn open_next(&mut self) -> bool {
        let number = self.connections.len();
        match self.connect_wire(number as u64, false) {
            Ok(wire) => self.connections.push(LoadConnection::new(Some(wire), self.load, number as u32)),
            Err(error) => {
                self.counts.connect_errors += 1;
                self.connect_error = Some(error);
                return false;
            }
        }
        self.start(number);
        true
    }

    /// Lets an idle connection send: at once in a closed loop, and where it is held from now on.
    fn start(&mut self, number: usize) {
        if self.load.pacing == Pacing::Closed || self.held.is_some() {
            self.send(number, None);
        } else {
            self.idle.push_back(number);
        }
    }
}

/// Returns the bytes that may have passed in a time.
fn due_bytes(bytes_per_s: u64, elapsed: Duration) -> u64 {
    (bytes_per_s as f64 * elapsed.as_secs_f64()) as u64
}
