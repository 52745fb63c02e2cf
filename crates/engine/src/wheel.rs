//! The timer wheel: deadlines of connections, in buckets of one tick each.
//!
//! A connection's node lies in its [`Conn`](crate::conn::Conn), so a timer costs nothing but the bucket's head. It is lazy: moving a
//! deadline later only writes it down; when the old bucket comes due the node moves on. So a busy connection costs
//! one store per request and no list work.

use crate::conn::{Conn, NONE};
use crate::timer::{Node, Tick, UNLINKED};

/// Length of a tick.
pub(crate) const TICK_MS: u64 = 256;
const BUCKETS: usize = 256;

/// The wheel itself: the first connection of each bucket.
pub(crate) struct Wheel {
    heads: [u32; BUCKETS],
    occupied: [u64; BUCKETS / 64],
    /// All ticks up to this one have been looked at.
    turned_to: Tick,
    linked: usize,
}

impl Wheel {
    pub(crate) fn new(now_ms: u64) -> Self {
        Self {
            heads: [NONE; BUCKETS],
            occupied: [0; BUCKETS / 64],
            turned_to: tick_before(now_ms),
            linked: 0,
        }
    }

    /// Connections that have a timer.
    pub(crate) fn len(&self) -> usize {
        self.linked
    }

    /// Sets `slot`'s deadline. Fires at the first tick that is not before it.
    pub(crate) fn set(&mut self, conns: &mut [Conn], slot: usize, deadline: Tick) {
        let conn = &mut conns[slot];
        conn.timer.deadline = deadline;
        if conn.bucket == UNLINKED {
            self.link(conns, slot);
        } else if self.distance(conn.bucket) > deadline.saturating_sub(self.turned_to) {
            self.unlink(conns, slot);
            self.link(conns, slot);
        }
    }

    /// Forgets `slot`'s deadline.
    pub(crate) fn clear(&mut self, conns: &mut [Conn], slot: usize) {
        if conns[slot].bucket != UNLINKED {
            self.unlink(conns, slot);
        }
    }

    /// Moves on to `now_ms` by at most one due connection, and returns it; `None` when nothing more is due.
    pub(crate) fn expire(&mut self, conns: &mut [Conn], now_ms: u64) -> Option<usize> {
        let now = tick_before(now_ms);
        while self.turned_to < now {
            let bucket = (self.turned_to as usize + 1) % BUCKETS;
            let slot = self.heads[bucket];
            if slot == NONE {
                self.skip_empty(now);
                continue;
            }
            let slot = slot as usize;
            self.unlink(conns, slot);
            if conns[slot].timer.deadline <= self.turned_to + 1 {
                return Some(slot);
            }
            self.link_after(conns, slot, self.turned_to + 1);
        }
        None
    }

    /// Milliseconds from `now_ms` until something may be due; `None` if there is no timer.
    pub(crate) fn next_due_ms(&self, now_ms: u64) -> Option<u64> {
        let ticks = self.next_occupied()?;
        let due_ms = (u64::from(self.turned_to) + ticks as u64) * TICK_MS;
        Some(due_ms.saturating_sub(now_ms))
    }

    /// Ticks from `turned_to` to the next occupied bucket: 1 to `BUCKETS`.
    fn next_occupied(&self) -> Option<usize> {
        if self.linked == 0 {
            return None;
        }
        (1..=BUCKETS).find(|ahead| {
            let bucket = (self.turned_to as usize + ahead) % BUCKETS;
            self.occupied[bucket / 64] & (1 << (bucket % 64)) != 0
        })
    }

    /// The next bucket is empty: goes to just before the next occupied one, at most to `now`.
    fn skip_empty(&mut self, now: Tick) {
        let ahead = self.next_occupied().map_or(u32::MAX, |ahead| ahead as u32 - 1);
        self.turned_to = self.turned_to.saturating_add(ahead.max(1)).min(now);
    }

    /// How many ticks ahead a bucket comes due: 1 to `BUCKETS`.
    fn distance(&self, bucket: u16) -> u32 {
        let ahead = (BUCKETS + bucket as usize - (self.turned_to as usize + 1) % BUCKETS) % BUCKETS;
        ahead as u32 + 1
    }

    fn link(&mut self, conns: &mut [Conn], slot: usize) {
        self.link_after(conns, slot, self.turned_to);
    }

    /// Links into the deadline's bucket; one that is further ahead than the wheel is long goes into the last.
    fn link_after(&mut self, conns: &mut [Conn], slot: usize, after: Tick) {
        let furthest = after + BUCKETS as u32 - 1;
        let tick = conns[slot].timer.deadline.clamp(after + 1, furthest);
        let bucket = tick as usize % BUCKETS;
        let head = self.heads[bucket];
        let conn = &mut conns[slot];
        (conn.timer.next, conn.timer.prev, conn.bucket) = (head, NONE, bucket as u16);
        if head != NONE {
            conns[head as usize].timer.prev = slot as u32;
        }
        self.heads[bucket] = slot as u32;
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.linked += 1;
    }

    fn unlink(&mut self, conns: &mut [Conn], slot: usize) {
        let Node { next, prev, .. } = conns[slot].timer;
        if next != NONE {
            conns[next as usize].timer.prev = prev;
        }
        if prev != NONE {
            conns[prev as usize].timer.next = next;
        } else {
            let bucket = conns[slot].bucket as usize;
            self.heads[bucket] = next;
            if next == NONE {
                self.occupied[bucket / 64] &= !(1 << (bucket % 64));
            }
        }
        conns[slot].bucket = UNLINKED;
        self.linked -= 1;
    }
}

/// The last tick that is over at `ms`.
fn tick_before(ms: u64) -> Tick {
    (ms / TICK_MS) as Tick
}

/// The first tick that is not before `ms`.
pub(crate) fn tick_at(ms: u64) -> Tick {
    ms.div_ceil(TICK_MS) as Tick
}

/// The first tick of a whole group of four (about a second) that is not before `ms`: for deadlines that may be late,
/// so that many idle connections wake the worker at most once a second.
pub(crate) fn coarse_tick_at(ms: u64) -> Tick {
    tick_at(ms).next_multiple_of(4)
}
