//! A worker within another event loop: see [`Host`](crate::Host).

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use shearwater_io::Driver;

use crate::limits::{LOOKS_AGAIN_EVENTS_MIN, TURNS_PER_POLL_MAX};
use crate::server::control::Control;
use crate::server::host::{HostedWorker, NextRun};
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> HostedWorker for Worker<D, S> {
    fn descriptor(&mut self) -> io::Result<RawFd> {
        self.woken(); // an order may have been given before this worker was enlisted
        self.driver.descriptor()
    }

    fn run_due(&mut self, waker: &Waker) -> io::Result<NextRun> {
        self.state.calls.tasks.rise();
        let mut begun_ms = None;
        for _ in 0..TURNS_PER_POLL_MAX {
            let events = if self.is_over() { 0 } else { self.turn_within(Some(Duration::ZERO))? };
            if self.is_over() {
                self.end_serving();
                return Ok(NextRun::Never);
            }
            // What handlers wait for may be the other loop's to fetch, and it has tasks of its own.
            let is_late = *begun_ms.get_or_insert(self.state.now_ms) != self.state.now_ms;
            let awaits = self.is_busy() || !self.state.calls.tasks.is_empty();
            if events < LOOKS_AGAIN_EVENTS_MIN || is_late || awaits {
                break;
            }
        }
        self.heartbeat.iter().for_each(|heartbeat| heartbeat.sleep());
        self.state.calls.tasks.sleep(waker);
        if self.is_busy() {
            return Ok(NextRun::Again);
        }
        let patience = self.patience();
        Ok(match self.driver.arm(patience)? {
            Some(Duration::ZERO) => NextRun::Again,
            timeout => NextRun::Sleep(timeout),
        })
    }

    fn drain_left(&self) -> Option<Duration> {
        let now_ms = self.driver.read_clock_us() / 1000;
        self.drain_until_ms().map(|until_ms| Duration::from_millis(until_ms.saturating_sub(now_ms)))
    }

    fn control(&self) -> Arc<Control> {
        Arc::clone(&self.state.control)
    }
}
