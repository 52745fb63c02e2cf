//! The time of the turn for requests that outlast it.

use std::cell::Cell;
use std::rc::Rc;

use shearwater_tasks::Timers;

/// Clock of a worker's turn, for requests that outlast one.
pub(crate) struct Clock {
    pub(crate) timers: Rc<Timers>,
    unix_seconds: Cell<u64>,
}

impl Default for Clock {
    fn default() -> Self {
        Self { timers: Timers::new(), unix_seconds: Cell::new(0) }
    }
}

impl Clock {
    pub(crate) fn set(&self, now_ms: u64, unix_seconds: u64) {
        self.timers.set_now_ms(now_ms);
        self.unix_seconds.set(unix_seconds);
    }

    pub(crate) fn unix_seconds(&self) -> u64 {
        self.unix_seconds.get()
    }
}
