//! A fixed rate: due times, and the account of requests that were not sent or not responded to.

use std::io::{self, Error};
use std::iter::repeat_n;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};

use super::{Arrivals, Latency, LoadClient, LoadOutcome, Pacing};

/// Latency of a timeout at a fixed rate. A closed loop waits as long for its last responses.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Delay of due requests by the client itself from which it counts as stalled.
const STALL_MIN: Duration = Duration::from_millis(1);
/// Due requests sent before responses are received again.
const SENDS_MAX: usize = 64;

impl LoadClient<'_> {
    /// Returns the time from one batch of requests to the next.
    fn next_interval(&mut self, rate: u32) -> Duration {
        let interval = Duration::from_secs(self.load.depth.into()) / rate.max(1);
        match self.load.options.arrivals {
            Arrivals::Poisson => interval.mul_f64(-(1.0 - self.arrivals.f64()).ln()),
            Arrivals::Constant => interval,
        }
    }

    fn advance_due(&mut self, rate: u32) {
        let interval = self.next_interval(rate);
        self.next_due += interval;
    }

    pub(super) fn timeout(&self) -> Duration {
        self.load.options.timeout.unwrap_or(TIMEOUT)
    }

    /// Lets the timer expire whenever a request is due. Waits themselves count in milliseconds.
    pub(super) fn set_timer(&mut self) -> io::Result<()> {
        let Pacing::Rate(rate) = self.load.pacing else { return Ok(()) };
        if !self.sends_at_rate() {
            return Ok(());
        }
        let is_random = self.load.options.arrivals == Arrivals::Poisson;
        if self.timer_due.is_some_and(|due| !is_random || due == self.next_due) {
            return Ok(());
        }
        self.timer_due = Some(self.next_due);
        let until = self.next_due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let interval = if is_random { Duration::ZERO } else { self.next_interval(rate) };
        let [it_value, it_interval] = [until, interval].map(Timespec::try_from);
        let times = Itimerspec {
            it_value: it_value.map_err(Error::other)?,
            it_interval: it_interval.map_err(Error::other)?,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times)?;
        Ok(())
    }

    pub(super) fn send_what_is_due(&mut self) {
        match self.load.pacing {
            Pacing::Rounds if self.idle.len() == self.connections.len() => {
                while let Some(number) = self.idle.pop_front() {
                    self.send(number, None);
                }
            }
            Pacing::Rate(rate) if self.sends_at_rate() => {
                let now = Instant::now();
                self.count_own_delay(now);
                for _ in 0..SENDS_MAX {
                    if self.next_due > now || self.next_due >= self.end {
                        break;
                    }
                    let Some(number) = self.pop_idle() else { break };
                    self.send(number, Some(self.next_due));
                    self.advance_due(rate);
                }
                (self.sent, self.had_idle) = (now, !self.idle.is_empty());
            }
            _ => {}
        }
    }

    /// Returns false while held connections are not to be asked.
    fn sends_at_rate(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.asks)
    }

    /// Takes the connection that has been idle longest. A held one that has ended since is passed over.
    fn pop_idle(&mut self) -> Option<usize> {
        std::iter::from_fn(|| self.idle.pop_front()).find(|&number| self.connections[number].is_open())
    }

    /// Counts for how long a request that is due by now has waited for the client and not for a connection.
    fn count_own_delay(&mut self, now: Instant) {
        let since = if self.had_idle { self.sent } else { self.looked };
        let delay = now.saturating_duration_since(self.next_due.max(since));
        if self.next_due < self.end {
            let (delay_us, counts) = (micros(delay), &mut self.counts);
            counts.client_longest_turn_us = counts.client_longest_turn_us.max(delay_us);
            counts.client_stalled_us += if delay >= STALL_MIN { delay_us } else { 0 };
        }
    }

    /// Records the latency of responses that have just arrived, and returns the present time if that is recorded.
    pub(super) fn record_latency(&mut self, number: usize, completed: u64) -> Option<Instant> {
        let connection = &mut self.connections[number];
        let since = connection.since.filter(|_| completed > 0)?;
        let now = Instant::now();
        if connection.outstanding == 0 {
            // A held connection is idle from now on.
            connection.since = self.held.is_some().then_some(now);
        }
        let latency = now.saturating_duration_since(since);
        let has_timeout = matches!(self.load.pacing, Pacing::Rate(_)) || self.load.options.timeout.is_some();
        self.counts.timeouts += if has_timeout && latency > self.timeout() { completed } else { 0 };
        self.latencies[self.stage].saturating_record_n(nanos(latency), completed);
        Some(now)
    }

    pub(super) fn finish(mut self) -> LoadOutcome {
        let mut due = self.counts.requests;
        if let Pacing::Rate(rate) = self.load.pacing {
            // Responses that never came count with the time until now, and so do requests that found no idle connection.
            for connection in self.connections.iter_mut().filter(|connection| connection.outstanding > 0) {
                match connection.since.take() {
                    Some(since) => self.lost.extend(repeat_n(since, connection.outstanding as usize)),
                    // Its latency would not have been recorded.
                    None => self.counts.timeouts += 1,
                }
            }
            while self.next_due < self.end {
                self.lost.extend(repeat_n(self.next_due, self.load.depth as usize));
                due += u64::from(self.load.depth);
                self.advance_due(rate);
            }
            let timeout = self.timeout();
            for since in &self.lost {
                self.counts.timeouts += 1;
                self.latencies[self.stage].saturating_record(nanos(since.elapsed().max(timeout)));
            }
        } else if self.is_ending() {
            let missing = self.connections.iter().filter(|connection| !connection.is_idle());
            self.counts.timeouts += missing.count() as u64;
        } else if let Some(timeout) = self.load.options.timeout {
            let late = self.connections.iter().filter(|it| it.since.is_some_and(|it| it.elapsed() > timeout));
            self.counts.timeouts += late.map(|connection| u64::from(connection.outstanding)).sum::<u64>();
        }
        let downloaded = self.downloads.iter().map(|download| download.bytes);
        self.counts.downloaded_bytes = downloaded.clone().sum();
        self.counts.least_downloaded_bytes = downloaded.min().unwrap_or(0);
        let latencies = std::mem::take(&mut self.latencies);
        let all = latencies.iter().cloned().reduce(|all, stage| all + &stage);
        self.counts.latency = all.filter(|_| self.load.latencies).as_ref().map(Latency::of);
        LoadOutcome {
            counts: self.counts,
            latencies,
            due,
            responses_in_time: self.responses_in_time,
            in_time: self.in_time,
            connect_error: self.connect_error,
        }
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Returns at least 1, the least that a histogram takes.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}
