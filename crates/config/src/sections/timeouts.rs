//! `[timeouts]`: how long clients are waited for. The names are those of `docs/limits.md`.

use crate::fields::{Fields, Visit};
use crate::rules::Integer;

/// How long clients are waited for, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first byte of a later head to its end; `408`.
    pub head_ms: u32,
    /// Between two pieces of a body; `408`.
    pub body_ms: u32,
    /// What a body has before its pace counts; `408`.
    pub body_grace_ms: u32,
    /// In which a client that is being sent to has to take something; reset.
    pub write_ms: u32,
    /// For the client to end its side after a last answer.
    pub linger_ms: u32,
    /// While draining: for a connection between two requests.
    pub drain_idle_ms: u32,
}

/// A day.
const MS_MAX: u64 = 86_400_000;

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head_ms: 10_000,
            body_ms: 30_000,
            body_grace_ms: 10_000,
            write_ms: 60_000,
            linger_ms: 10_000,
            drain_idle_ms: 500,
        }
    }
}

impl Fields for Timeouts {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "head_ms",
            "From the first byte of a later request's head to its end; 408. (The first: performance.connection_timeout.)",
            Integer(1..=MS_MAX),
            &mut self.head_ms,
        );
        visit.field(
            "body_ms",
            "Between two pieces of a request's body; 408.",
            Integer(1..=MS_MAX),
            &mut self.body_ms,
        );
        visit.field(
            "body_grace_ms",
            "What a body has before its pace counts (limits.body_bytes_per_second_min); 408.",
            Integer(1..=MS_MAX),
            &mut self.body_grace_ms,
        );
        visit.field(
            "write_ms",
            "In which a client that is being sent to has to take something (limits.send_bytes_per_second_min); reset.",
            Integer(1..=MS_MAX),
            &mut self.write_ms,
        );
        visit.field(
            "linger_ms",
            "For the client to end its side after a last answer; closed then.",
            Integer(1..=MS_MAX),
            &mut self.linger_ms,
        );
        visit.field(
            "drain_idle_ms",
            "While ending: for a connection between two requests to send one more.",
            Integer(0..=MS_MAX),
            &mut self.drain_idle_ms,
        );
    }
}
