//! A clock that all workers share, and that tests drive.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A monotonic clock. Clones show the same time.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// Returns a clock that only [`advance`](Self::advance) moves: for tests.
    #[must_use]
    pub fn stopped() -> Self {
        Self(Some(Arc::default()))
    }

    /// Moves a [stopped](Self::stopped) clock. Does nothing to the system's.
    pub fn advance(&self, duration: Duration) {
        if let Some(now_ns) = &self.0 {
            now_ns.fetch_add(nanoseconds(duration), Ordering::Relaxed);
        }
    }

    /// Returns nanoseconds since the first call in this process.
    pub(crate) fn now_ns(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        match &self.0 {
            Some(now_ns) => now_ns.load(Ordering::Relaxed),
            None => nanoseconds(START.get_or_init(Instant::now).elapsed()),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(stopped)" } else { "Clock" })
    }
}

/// Returns the nanoseconds of a duration, at most 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
