//! The time of an answer.

use shearwater::Request;

use crate::limits::UNSEEN_MS_MAX;

/// How long what was seen of a file is taken for the present state without a look: half of the second within which a change has to show.
const FRESH_MS: u64 = 500;

/// The time of an answer, by both clocks of its turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) ms: u64,
    pub(crate) unix_seconds: u64,
}

impl Now {
    pub(crate) fn of(request: &Request<'_>) -> Self {
        Self { ms: request.now_ms(), unix_seconds: request.unix_seconds() }
    }

    /// Whether what was seen then still counts.
    pub(crate) fn is_just_after(self, seen_ms: u64) -> bool {
        self.ms.saturating_sub(seen_ms) < FRESH_MS
    }

    /// Whether what was seen then may still be sent where no look can be had.
    pub(crate) fn is_soon_after(self, seen_ms: u64) -> bool {
        self.ms.saturating_sub(seen_ms) < UNSEEN_MS_MAX
    }
}
