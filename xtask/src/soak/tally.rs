//! What visits came to: requests, answers, connections by kind, and what went wrong.

use super::kind::KINDS;

/// What one thread, or all, have counted.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    /// Requests sent whole.
    pub(super) sent: u64,
    /// Answers that came whole and right.
    pub(super) right: u64,
    /// Requests whose answer the client did not want any more.
    pub(super) given_up: u64,
    /// Connections opened.
    pub(super) connections: u64,
    /// Bytes of answers read and compared.
    pub(super) bytes: u64,
    /// Connections by kind, in the order of [`KINDS`].
    pub(super) kinds: [u64; KINDS.len()],
    /// What went wrong.
    pub(super) wrong: Vec<String>,
}

impl Tally {
    /// Adds another one.
    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.right += other.right;
        self.given_up += other.given_up;
        self.connections += other.connections;
        self.bytes += other.bytes;
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            *mine += theirs;
        }
        self.wrong.extend(other.wrong);
    }
}
