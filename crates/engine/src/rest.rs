//! Rest: a worker that has heard nothing for a while gives the memory of a busier moment back.

use shearwater_io::Driver;

use crate::app::App;
use crate::limits::{REST_AFTER_MS, REST_EVENTS_MIN};
use crate::panics;
use crate::worker::Worker;

/// When a worker rests.
#[derive(Debug)]
pub(crate) struct Rest {
    /// When it was heard of last.
    heard_ms: u64,
    /// Events since it rested last.
    events: usize,
    /// Called on the worker's thread when the worker has given back its own.
    at_rest: Option<fn()>,
}

impl Rest {
    pub(crate) fn new(at_rest: Option<fn()>) -> Self {
        Self { heard_ms: 0, events: 0, at_rest }
    }

    /// A turn had so many events.
    #[inline]
    pub(crate) fn hear(&mut self, events: usize, now_ms: u64) {
        if events > 0 {
            self.events += events;
            self.heard_ms = now_ms;
        }
    }

    /// When the worker is to rest, if nothing happens until then and there may be memory to give back.
    #[inline]
    pub(crate) fn due_ms(&self) -> Option<u64> {
        (self.events >= REST_EVENTS_MIN).then_some(self.heard_ms + REST_AFTER_MS)
    }
}

impl<D: Driver, A: App> Worker<D, A> {
    /// Rests if it is time to. What is in use stays as it is.
    #[inline]
    pub(crate) fn rest(&mut self) {
        if self.rest.due_ms().is_some_and(|due_ms| due_ms <= self.service.now_ms) {
            self.rest_unless_busy();
        }
    }

    #[cold]
    fn rest_unless_busy(&mut self) {
        if self.is_busy() || !self.driver.rest() {
            return;
        }
        self.rest.events = 0;
        self.service.outputs.forget();
        self.service.responder.trim(0);
        self.service.blocks.forget_spare();
        self.service.calls.forget_spare();
        if let Some(at_rest) = self.rest.at_rest {
            // The hook has shown the panic; the worker has clients to serve.
            let _ = panics::catch(at_rest);
        }
    }
}
