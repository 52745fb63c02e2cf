//! Idle trim: a worker without events for a while frees its spare memory.

use shearwater_io::Driver;

use crate::limits::{IDLE_TRIM_AFTER_MS, IDLE_TRIM_EVENTS_MIN};
use crate::panics;
use crate::service::Service;
use crate::worker::Worker;

/// State of the idle trim.
#[derive(Debug)]
pub(crate) struct IdleTrim {
    /// Time of the last event.
    last_event_ms: u64,
    /// Events since the last trim.
    events: usize,
    /// Callback on the worker's thread after a trim.
    at_rest: Option<fn()>,
}

impl IdleTrim {
    pub(crate) fn new(at_rest: Option<fn()>) -> Self {
        Self { last_event_ms: 0, events: 0, at_rest }
    }

    /// Counts the events of a turn.
    #[inline]
    pub(crate) fn count(&mut self, events: usize, now_ms: u64) {
        if events > 0 {
            self.events += events;
            self.last_event_ms = now_ms;
        }
    }

    /// Returns the time of the next trim, unless there were too few events to be worth it.
    #[inline]
    pub(crate) fn due_ms(&self) -> Option<u64> {
        (self.events >= IDLE_TRIM_EVENTS_MIN).then_some(self.last_event_ms + IDLE_TRIM_AFTER_MS)
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Trims if it is due. Memory in use remains untouched.
    #[inline]
    pub(crate) fn trim_if_idle(&mut self) {
        if self.idle_trim.due_ms().is_some_and(|due_ms| due_ms <= self.state.now_ms) {
            self.trim();
        }
    }

    #[cold]
    fn trim(&mut self) {
        if self.is_busy() || !self.driver.rest() {
            return;
        }
        self.idle_trim.events = 0;
        self.state.outputs.free_spare();
        self.state.responder.trim(0);
        self.state.blocks.free_spare();
        self.state.calls.free_spare();
        if let Some(at_rest) = self.idle_trim.at_rest {
            // The panic hook has reported it; the worker keeps serving.
            let _ = panics::catch(at_rest);
        }
    }
}
