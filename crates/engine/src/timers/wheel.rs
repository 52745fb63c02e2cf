//! The timer wheel: deadlines of connections, in buckets of one tick each.
//!
//! A connection's node is part of its slot. Moving a deadline to a later time only
//! stores it; when the old bucket comes due the node is moved on. So a busy connection costs one store per
//! request and no list operations.

use shearwater_io::SlotArray;

use crate::memory::NONE;

/// Length of a tick, in milliseconds.
pub(crate) const TICK_MS: u64 = 256;
const BUCKETS: usize = 256;
/// Words in the bit set of occupied buckets.
const WORDS: usize = BUCKETS / 64;

/// A slot with a node of the wheel.
pub(crate) trait Timed {
    /// Returns its node, and its bucket or [`UNLINKED`], which are apart for the slot's layout.
    fn timer(&mut self) -> (&mut Node, &mut u16);
}

/// The buckets, each a list of connections.
pub(crate) struct Wheel {
    heads: [u32; BUCKETS],
    occupied: [u64; WORDS],
    /// Last tick that has been processed.
    turned_to: Tick,
    linked: usize,
}

impl Wheel {
    pub(crate) fn new(now_ms: u64) -> Self {
        Self { heads: [NONE; BUCKETS], occupied: [0; WORDS], turned_to: tick_before(now_ms), linked: 0 }
    }

    /// Returns the number of connections that have a timer.
    pub(crate) fn len(&self) -> usize {
        self.linked
    }

    /// Sets `slot`'s deadline. It fires at the first tick that is not before it.
    pub(crate) fn set<C: Timed>(&mut self, conns: &mut SlotArray<C>, slot: usize, deadline: Tick) {
        let (node, bucket) = conns[slot].timer();
        let is_linked = *bucket != UNLINKED;
        // Coarse deadlines stay the same for about a second.
        if is_linked && node.deadline == deadline {
            return;
        }
        node.deadline = deadline;
        if !is_linked {
            self.link(conns, slot);
        } else if self.distance(*bucket) > deadline.saturating_sub(self.turned_to) {
            self.unlink(conns, slot);
            self.link(conns, slot);
        }
    }

    /// Removes `slot`'s deadline.
    pub(crate) fn clear<C: Timed>(&mut self, conns: &mut SlotArray<C>, slot: usize) {
        if *conns[slot].timer().1 != UNLINKED {
            self.unlink(conns, slot);
        }
    }

    /// Returns true if an unprocessed tick is over at `now_ms`.
    #[inline]
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        self.turned_to < tick_before(now_ms)
    }

    /// Removes a due connection and returns it; `None` when nothing more is due at `now_ms`.
    pub(crate) fn expire<C: Timed>(&mut self, conns: &mut SlotArray<C>, now_ms: u64) -> Option<usize> {
        let slot = self.due(conns, now_ms)?;
        self.unlink(conns, slot);
        Some(slot)
    }

    /// Advances to the next due connection and returns it, or to `now_ms`.
    pub(crate) fn due<C: Timed>(&mut self, conns: &mut SlotArray<C>, now_ms: u64) -> Option<usize> {
        let now = tick_before(now_ms);
        while self.turned_to < now {
            let bucket = (self.turned_to as usize + 1) % BUCKETS;
            let slot = self.heads[bucket];
            if slot == NONE {
                self.skip_empty(now);
                continue;
            }
            let slot = slot as usize;
            if conns[slot].timer().0.deadline <= self.turned_to + 1 {
                return Some(slot);
            }
            self.unlink(conns, slot);
            self.link_after(conns, slot, self.turned_to + 1);
        }
        None
    }

    /// Returns the milliseconds from `now_ms` until something may be due; `None` without timers.
    pub(crate) fn next_due_ms(&self, now_ms: u64) -> Option<u64> {
        let ticks = self.next_occupied()?;
        let due_ms = (u64::from(self.turned_to) + ticks as u64) * TICK_MS;
        Some(due_ms.saturating_sub(now_ms))
    }

    /// Returns the ticks from `turned_to` to the next occupied bucket: 1 to `BUCKETS`.
    fn next_occupied(&self) -> Option<usize> {
        if self.linked == 0 {
            return None;
        }
        // Called every turn: scans word by word, and at last the bits of the first word before the start.
        let start = (self.turned_to as usize + 1) % BUCKETS;
        let before_start = (1 << (start % 64)) - 1;
        (0..=WORDS).find_map(|nth| {
            let word = (start / 64 + nth) % WORDS;
            let bits = match nth {
                0 => self.occupied[word] & !before_start,
                WORDS => self.occupied[word] & before_start,
                _ => self.occupied[word],
            };
            let bucket = word * 64 + bits.trailing_zeros() as usize;
            (bits != 0).then(|| (bucket + BUCKETS - start) % BUCKETS + 1)
        })
    }

    /// Skips empty buckets up to the next occupied one, at most to `now`.
    fn skip_empty(&mut self, now: Tick) {
        let ahead = self.next_occupied().map_or(u32::MAX, |ahead| ahead as u32 - 1);
        self.turned_to = self.turned_to.saturating_add(ahead.max(1)).min(now);
    }

    /// Returns the ticks until a bucket comes due: 1 to `BUCKETS`.
    fn distance(&self, bucket: u16) -> u32 {
        let ahead = (BUCKETS + bucket as usize - (self.turned_to as usize + 1) % BUCKETS) % BUCKETS;
        ahead as u32 + 1
    }

    fn link<C: Timed>(&mut self, conns: &mut SlotArray<C>, slot: usize) {
        self.link_after(conns, slot, self.turned_to);
    }

    /// Links into the deadline's bucket, or into the last one if it is beyond the wheel.
    fn link_after<C: Timed>(&mut self, conns: &mut SlotArray<C>, slot: usize, after: Tick) {
        let furthest = after + BUCKETS as u32 - 1;
        let tick = conns[slot].timer().0.deadline.clamp(after + 1, furthest);
        let bucket = tick as usize % BUCKETS;
        let head = self.heads[bucket];
        let (node, own_bucket) = conns[slot].timer();
        (node.next, node.prev, *own_bucket) = (head, NONE, bucket as u16);
        if head != NONE {
            conns[head as usize].timer().0.prev = slot as u32;
        }
        self.heads[bucket] = slot as u32;
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.linked += 1;
    }

    fn unlink<C: Timed>(&mut self, conns: &mut SlotArray<C>, slot: usize) {
        let (node, own_bucket) = conns[slot].timer();
        let (Node { next, prev, .. }, bucket) = (*node, std::mem::replace(own_bucket, UNLINKED));
        if next != NONE {
            conns[next as usize].timer().0.prev = prev;
        }
        if prev != NONE {
            conns[prev as usize].timer().0.next = next;
        } else {
            let bucket = bucket as usize;
            self.heads[bucket] = next;
            if next == NONE {
                self.occupied[bucket / 64] &= !(1 << (bucket % 64));
            }
        }
        self.linked -= 1;
    }
}

/// Returns the last tick that is over at `ms`.
fn tick_before(ms: u64) -> Tick {
    (ms / TICK_MS) as Tick
}

/// Latest deadline: centuries ahead, with room for rounding up.
const TICK_MAX: Tick = Tick::MAX - 1024;

/// Returns the first tick that is not before `ms`.
pub(crate) fn tick_at(ms: u64) -> Tick {
    ms.div_ceil(TICK_MS).min(u64::from(TICK_MAX)) as Tick
}

/// Returns the first tick of a group of four (about a second) that is not before `ms`: for deadlines that may
/// be late, so that many idle connections wake the worker at most once a second.
pub(crate) fn coarse_tick_at(ms: u64) -> Tick {
    tick_at(ms).next_multiple_of(4)
}

/// A deadline in ticks since the worker's clock began.
pub(crate) type Tick = u32;

/// Bucket of a connection without a timer.
pub(crate) const UNLINKED: u16 = u16::MAX;

/// A connection's node in the wheel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) deadline: Tick,
    pub(crate) next: u32,
    pub(crate) prev: u32,
}

impl Node {
    pub(crate) const fn unlinked() -> Self {
        Self { deadline: 0, next: NONE, prev: NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::{SlotArray, TICK_MS, Wheel, coarse_tick_at, tick_at};

    use crate::connection::Conn;

    /// Number of timers under test.
    const CONNS: usize = 40;

    /// A wheel with a plain list of all deadlines as its model.
    struct Model {
        wheel: Wheel,
        conns: SlotArray<Conn>,
        deadlines: [Option<u32>; CONNS],
        now_ms: u64,
    }

    impl Model {
        fn new(now_ms: u64) -> Self {
            let mut conns = SlotArray::new();
            conns.grow_to(CONNS - 1);
            Self { wheel: Wheel::new(now_ms), conns, deadlines: [None; CONNS], now_ms }
        }

        fn set(&mut self, slot: usize, deadline: u32) {
            self.wheel.set(&mut self.conns, slot, deadline);
            self.deadlines[slot] = Some(deadline);
        }

        fn clear(&mut self, slot: usize) {
            self.wheel.clear(&mut self.conns, slot);
            self.deadlines[slot] = None;
        }

        /// Expires all due timers; `again` may set a new deadline for each.
        fn expire(&mut self, again: impl Fn(usize) -> Option<u32>) {
            for _ in 0..10 * CONNS {
                let Some(slot) = self.wheel.expire(&mut self.conns, self.now_ms) else { break };
                let deadline = self.deadlines[slot].take().expect("it had a deadline");
                assert!(u64::from(deadline) * TICK_MS <= self.now_ms, "early: {deadline} at {}", self.now_ms);
                if let Some(deadline) = again(slot) {
                    self.set(slot, deadline);
                }
            }
            self.check();
        }

        /// Checks that nothing due is left and that a sleeping worker wakes in time.
        fn check(&self) {
            let set = self.deadlines.iter().flatten();
            assert_eq!(self.wheel.len(), set.clone().count());
            let earliest_ms = set.map(|deadline| u64::from(*deadline) * TICK_MS).min();
            let sleeps_ms = self.wheel.next_due_ms(self.now_ms);
            assert_eq!(sleeps_ms.is_some(), earliest_ms.is_some());
            if let (Some(sleeps_ms), Some(earliest_ms)) = (sleeps_ms, earliest_ms) {
                assert!(earliest_ms > self.now_ms, "late: {earliest_ms} at {}", self.now_ms);
                assert!(self.now_ms + sleeps_ms <= earliest_ms, "sleeps past a deadline");
                assert!(sleeps_ms > 0, "a worker with nothing due doesn't spin");
            }
        }
    }

    /// SplitMix64.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    #[test]
    fn agrees_with_a_plain_list_of_deadlines() {
        for seed in 0..300 {
            let mut state = seed;
            let mut model = Model::new(next(&mut state) % 1_000_000);
            model.expire(|_| None);
            for _ in 0..400 {
                let slot = next(&mut state) as usize % CONNS;
                let far_ms = [1, 300, 5_000, 70_000, 1_000_000][next(&mut state) as usize % 5];
                let at_ms = model.now_ms + next(&mut state) % far_ms;
                match next(&mut state) % 8 {
                    0 | 1 => model.set(slot, tick_at(at_ms + 1)),
                    2 | 3 => model.set(slot, coarse_tick_at(at_ms + 1)),
                    4 => model.clear(slot),
                    5 => model.now_ms = at_ms,
                    // Sleeps as long as a worker would.
                    _ => model.now_ms += model.wheel.next_due_ms(model.now_ms).unwrap_or(0),
                }
                let again = slot.is_multiple_of(3).then(|| tick_at(model.now_ms + 1 + far_ms));
                model.expire(|expired| again.filter(|_| expired.is_multiple_of(2)));
            }
        }
    }

    #[test]
    fn sleeping_until_the_next_deadline_meets_each_in_its_tick() {
        let mut model = Model::new(0);
        for slot in 0..CONNS {
            model.set(slot, tick_at(1 + slot as u64 * 7_919));
        }
        let mut wakes = 0;
        while let Some(sleeps_ms) = model.wheel.next_due_ms(model.now_ms) {
            model.now_ms += sleeps_ms;
            wakes += 1;
            while let Some(slot) = model.wheel.expire(&mut model.conns, model.now_ms) {
                let wanted_ms = 1 + slot as u64 * 7_919;
                assert!(
                    (wanted_ms..wanted_ms + TICK_MS).contains(&model.now_ms),
                    "{wanted_ms}: {}",
                    model.now_ms
                );
                model.deadlines[slot] = None;
            }
        }
        assert_eq!(model.deadlines, [None; CONNS]);
        assert!(wakes <= 12 * CONNS, "{wakes} wakes");
    }

    #[test]
    fn accepts_the_furthest_deadline() {
        assert_eq!(coarse_tick_at(u64::MAX) % 4, 0);
        let mut model = Model::new(u64::from(u32::MAX) * 100);
        model.set(0, coarse_tick_at(u64::MAX));
        model.now_ms += 1_000_000_000;
        model.expire(|_| None);
        assert_eq!(model.wheel.len(), 1);
    }
}
