//! The time of a response.

use shearwater::engine::Request;

use crate::limits::{FRESH_MS_MAX, RECENT_MS_MAX};

/// The time of a response, by both clocks of its turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) ms: u64,
    pub(crate) unix_seconds: u64,
}

impl Now {
    pub(crate) fn of(request: &Request<'_>) -> Self {
        Self { ms: request.now_ms(), unix_seconds: request.unix_seconds() }
    }

    /// Returns whether a check at `checked_ms` still counts.
    pub(crate) fn is_fresh(self, checked_ms: u64) -> bool {
        self.ms.saturating_sub(checked_ms) < FRESH_MS_MAX
    }

    /// Returns whether a check at `checked_ms` is so recent that the kernel has the file's name in its caches, and that
    /// the file may be sent without another check, if none is possible.
    pub(crate) fn is_recent(self, checked_ms: u64) -> bool {
        self.ms.saturating_sub(checked_ms) < RECENT_MS_MAX
    }
}
