//! The bound of unopened bytes of all connections (X5).

use super::connection::Connection;
use super::{Counters, Failure, Provider, Secure, Session};
use crate::limits::{SECURE_HOLDERS_MAX, SECURE_PARTIAL_BYTES_MAX};
use crate::{Driver, Token};

/// Connections that held the most unopened bytes at the last search, the largest last.
#[derive(Debug, Default)]
pub(super) struct Holders(Vec<(usize, Token)>);

/// Appends to a connection's unopened bytes.
pub(super) fn hold_more(counters: &mut Counters, conn: &mut Connection<impl Session>, more: &[u8]) {
    conn.partial.extend_from_slice(more);
    count(counters, conn);
}

/// Counts the memory of a connection's unopened bytes, and of messages that its session has in part.
fn count(counters: &mut Counters, conn: &mut Connection<impl Session>) {
    counters.partial_bytes -= conn.held;
    conn.held = conn.partial.capacity() + conn.session.pending_bytes();
    counters.partial_bytes += conn.held;
}

impl<D: Driver, P: Provider> Secure<D, P> {
    /// Replaces a connection's unopened bytes.
    pub(super) fn hold(&mut self, conn: &mut Connection<P::Session>, bytes: Vec<u8>) {
        conn.partial = bytes;
        count(&mut self.counters, conn);
    }

    /// Ends the sessions of the largest holders while all unopened bytes together exceed their bound.
    #[inline]
    pub(super) fn bound_partial(&mut self) {
        while self.counters.partial_bytes > SECURE_PARTIAL_BYTES_MAX {
            let Some(token) = self.largest_holder() else { return };
            if let Some(mut conn) = self.take(token) {
                self.counters.memory_resets += 1;
                self.fail(&mut conn, Failure::Memory);
                self.put(conn);
            }
        }
    }

    /// Returns a connection that holds at least as much as others did at the last search.
    #[cold]
    fn largest_holder(&mut self) -> Option<Token> {
        for _ in 0..2 {
            while let Some((bytes, token)) = self.holders.0.pop() {
                if self.find(token).is_some_and(|conn| conn.held >= bytes) {
                    return Some(token);
                }
            }
            self.find_holders();
        }
        None
    }

    fn find_holders(&mut self) {
        let held = |conn: &Connection<P::Session>| (conn.held, conn.token);
        let mut found: Vec<_> = self
            .conns
            .iter()
            .filter_map(|conn| conn.as_deref().map(held))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        let first = found.len().saturating_sub(SECURE_HOLDERS_MAX);
        if first > 0 {
            found.select_nth_unstable_by_key(first, |(bytes, _)| *bytes);
        }
        self.holders.0 = found.split_off(first);
        self.holders.0.sort_unstable_by_key(|(bytes, _)| *bytes);
    }
}
