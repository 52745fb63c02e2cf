//! The connections: a dense table of slots, reused under new generations.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use crate::slot_array::CHUNK;
use crate::{SharedLimit, SlotArray, Token};

/// No index.
pub(crate) const NONE: u32 = u32::MAX;

/// Instead of an index: the ring has the send.
#[cfg(target_os = "linux")]
pub(crate) const IN_RING: u32 = u32::MAX - 1;

/// Instead of an index: a send that the worker counts as done, and whose result isn't known (S7).
pub(crate) const SILENT: u32 = u32::MAX - 2;

/// Instead of an index: the connection is being detached.
#[cfg(target_os = "linux")]
pub(crate) const DETACHING: u32 = u32::MAX - 3;

/// State bits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags(u16);

impl Flags {
    /// Receiving is paused.
    pub(crate) const PAUSED: Self = Self(1 << 2);
    /// `ReadClosed` has been delivered.
    pub(crate) const READ_CLOSED: Self = Self(1 << 3);
    /// The send in flight can continue.
    pub(crate) const WRITABLE: Self = Self(1 << 4);
    /// Queued for a send to begin or to resume.
    pub(crate) const QUEUED: Self = Self(1 << 5);
    /// Its `Sent` is deferred to the next turn.
    pub(crate) const SENT_DEFERRED: Self = Self(1 << 6);
    /// A send found the connection broken.
    pub(crate) const BROKEN: Self = Self(1 << 7);
    /// The send in flight waits for a file to be fetched.
    pub(crate) const FETCHING: Self = Self(1 << 13);
    /// A file was fetched for it, and the page cache isn't checked again.
    pub(crate) const FETCHED: Self = Self(1 << 14);
    /// Its last receive filled at least half of the buffer: more input is likely.
    pub(crate) const BULK: Self = Self(1 << 15);
    /// The worker has closed it; the kernel still holds entries that name it.
    pub(crate) const CLOSING: Self = Self(1 << 8);
    /// Its descriptor was detached. All bits, a combination that nothing else uses: no single bit is left.
    const DETACHED: Self = Self(u16::MAX);

    /// Returns these flags combined with others.
    pub(crate) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns whether any of these flags is set.
    pub(crate) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }

    pub(crate) fn clear(&mut self, flag: Self) {
        self.0 &= !flag.0;
    }

    /// Returns whether the send in flight can continue now.
    pub(crate) fn can_send(self) -> bool {
        self.has(Self::WRITABLE) && !self.has(Self::FETCHING)
    }
}

/// Flags of the readiness driver.
impl Flags {
    /// The kernel may hold input.
    pub(crate) const READABLE: Self = Self(1);
    /// A short read is followed by another: the kernel has reported the peer's FIN, an error, or urgent data,
    /// which cuts a receive short.
    pub(crate) const READ_AGAIN: Self = Self(1 << 1);
    /// Queued for reading.
    pub(crate) const READ_QUEUED: Self = Self(1 << 9);
    /// The kernel has reported the peer's FIN or an error, not yet handled.
    pub(crate) const END_ANNOUNCED: Self = Self(1 << 10);
    /// `FinReceived` has been delivered.
    pub(crate) const FIN_REPORTED: Self = Self(1 << 11);
    /// The kernel has reported an error.
    pub(crate) const FAILED: Self = Self(1 << 12);

    /// Returns whether a `recv` is due.
    pub(crate) fn wants_recv(self) -> bool {
        self.has(Self::READABLE) && self.0 & (Self::PAUSED.0 | Self::READ_CLOSED.0) == 0
    }

    /// Returns whether to check for the peer's end although receiving is paused (R6).
    pub(crate) fn shows_end(self) -> bool {
        let due = Self::PAUSED.0 | Self::END_ANNOUNCED.0;
        self.0 & (due | Self::READ_CLOSED.0) == due
    }
}

/// Flags of the completion driver, with bits that the other uses for itself.
#[cfg(target_os = "linux")]
impl Flags {
    /// The kernel holds a receive entry.
    pub(crate) const ARMED: Self = Self(1 << 9);
    /// The receive entry is being cancelled.
    pub(crate) const CANCELLING: Self = Self(1 << 10);
    /// The kernel holds a send entry.
    pub(crate) const SENDING: Self = Self(1 << 11);
    /// The kernel holds an entry that waits for room to send.
    pub(crate) const AWAITING: Self = Self(1 << 12);
    /// The kernel holds an entry that waits for the peer's FIN or an error.
    pub(crate) const END_WATCHED: Self = Self(1);
    /// `FinReceived` has been delivered.
    pub(crate) const FIN_DELIVERED: Self = Self(1 << 1);
}

/// A driver's part of a slot.
pub(crate) trait SlotState: Default {
    /// Returns whether the connection's file is kept even without a descriptor.
    fn is_stored(&self) -> bool {
        false
    }
}

/// One connection: the whole cost of an idle one. `X` is the driver's data.
#[derive(Debug)]
pub(crate) struct Slot<X> {
    /// `None` while the slot is free, closed but not yet reported, detached, or stored without a descriptor.
    pub(crate) fd: Option<OwnedFd>,
    generation: u32,
    /// Index of the send in flight; in a free slot, the next free slot of its chunk.
    pub(crate) send: u32,
    pub(crate) flags: Flags,
    pub(crate) extra: X,
}

impl<X: SlotState> Default for Slot<X> {
    fn default() -> Self {
        Self { fd: None, generation: 0, send: NONE, flags: Flags::default(), extra: X::default() }
    }
}

impl<X> Slot<X> {
    /// Returns whether the worker waits for the end of a send.
    pub(crate) fn is_sending(&self) -> bool {
        !matches!(self.send, NONE | SILENT)
    }
}

impl<X: SlotState> Slot<X> {
    fn is(&self, generation: u32) -> bool {
        self.generation == generation && (self.fd.is_some() || self.extra.is_stored())
    }
}

/// The free slots of a chunk.
#[derive(Debug)]
struct FreeSlots {
    /// The slot freed last; its `send` is the one freed before it.
    first: u32,
    /// Number of slots in use.
    used: u16,
}

/// Bits of a word of [`Slots::with_room`].
const WORD_BITS: usize = u64::BITS as usize;

/// The table of slots. Grows on demand, by chunks. Reuses the slot freed last of the first chunk that has one, so
/// that the last chunks become empty and [`Slots::trim`] frees them.
#[derive(Debug)]
pub(crate) struct Slots<X> {
    slots: SlotArray<Slot<X>>,
    /// The free slots of each chunk.
    free: Vec<FreeSlots>,
    /// A bit for each chunk that has a free slot.
    with_room: Vec<u64>,
    used: usize,
    /// Those of them that count for no limit (A9).
    adopted: HashSet<Token>,
    /// First generation of the slots of a new chunk: later than any that a freed chunk had.
    first_generation: u32,
    /// Limit that used slots count for: whoever accepts takes the place.
    pub(crate) limit: SharedLimit,
}

impl<X> Slots<X> {
    /// Returns the number of slots in use that count for the limits.
    pub(crate) fn counted(&self) -> usize {
        self.used - self.adopted.len()
    }
}

impl<X> Drop for Slots<X> {
    fn drop(&mut self) {
        self.limit.leave(self.counted());
    }
}

impl<X: SlotState> Slots<X> {
    pub(crate) fn new() -> Self {
        Self {
            slots: SlotArray::new(),
            free: Vec::new(),
            with_room: Vec::new(),
            used: 0,
            adopted: HashSet::new(),
            first_generation: 0,
            limit: SharedLimit::default(),
        }
    }

    /// Returns the number of slots in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of slots, free ones included.
    #[cfg(target_os = "linux")]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the first chunk that has a free slot.
    fn chunk_with_room(&self) -> Option<usize> {
        let word = self.with_room.iter().position(|word| *word != 0)?;
        Some(word * WORD_BITS + self.with_room[word].trailing_zeros() as usize)
    }

    /// Returns the token that the next [`Slots::insert`] will return.
    pub(crate) fn next_token(&self) -> Token {
        match self.chunk_with_room() {
            Some(chunk) => {
                let slot = self.free[chunk].first;
                Token::new(slot, self.slots[slot as usize].generation)
            }
            None => Token::new(self.slots.len() as u32, self.first_generation),
        }
    }

    /// Inserts a connection. The caller keeps [`Slots::used`] below [`NONE`].
    pub(crate) fn insert(&mut self, fd: OwnedFd) -> Token {
        let chunk = self.chunk_with_room().unwrap_or_else(|| self.add_chunk());
        let free = &mut self.free[chunk];
        let at = free.first;
        let slot = &mut self.slots[at as usize];
        (free.first, free.used) = (slot.send, free.used + 1);
        if free.first == NONE {
            self.with_room[chunk / WORD_BITS] &= !(1 << (chunk % WORD_BITS));
        }
        let token = Token::new(at, slot.generation);
        *slot = Slot { fd: Some(fd), generation: slot.generation, ..Slot::default() };
        self.used += 1;
        token
    }

    /// Inserts a connection that counts for no limit.
    pub(crate) fn insert_adopted(&mut self, fd: OwnedFd) -> Token {
        let token = self.insert(fd);
        self.adopted.insert(token);
        token
    }

    /// Adds a chunk of free slots; returns its index.
    fn add_chunk(&mut self) -> usize {
        let (chunk, start) = (self.free.len(), self.slots.len());
        self.slots.grow_to(start);
        let end = self.slots.len();
        for slot in start..end {
            self.slots[slot].generation = self.first_generation;
            self.slots[slot].send = if slot + 1 < end { slot as u32 + 1 } else { NONE };
        }
        self.free.push(FreeSlots { first: start as u32, used: 0 });
        self.with_room.resize(self.free.len().div_ceil(WORD_BITS), 0);
        self.with_room[chunk / WORD_BITS] |= 1 << (chunk % WORD_BITS);
        chunk
    }

    /// Frees the last chunks as long as none of their slots is in use.
    pub(crate) fn trim(&mut self) {
        while self.free.pop_if(|chunk| chunk.used == 0).is_some() {
            let chunk = self.free.len();
            self.with_room[chunk / WORD_BITS] &= !(1 << (chunk % WORD_BITS));
            let generations = (chunk * CHUNK..self.slots.len()).map(|slot| self.slots[slot].generation);
            self.first_generation = generations.fold(self.first_generation, u32::max);
            self.slots.truncate(chunk * CHUNK);
        }
        self.with_room.truncate(self.free.len().div_ceil(WORD_BITS));
        self.adopted.shrink_to_fit();
        self.free.shrink_to_fit();
        self.with_room.shrink_to_fit();
    }

    /// Returns the connection in this slot, if any, and its token.
    #[cfg(target_os = "linux")]
    pub(crate) fn at(&mut self, slot: usize) -> Option<(Token, &mut Slot<X>)> {
        let found = self.slots.get_mut(slot)?;
        let is_held = found.is(found.generation);
        is_held.then(|| (Token::new(slot as u32, found.generation), found))
    }

    /// Returns the open connection with this token.
    pub(crate) fn open(&self, token: Token) -> Option<&Slot<X>> {
        let slot = self.slots.get(token.slot())?;
        (slot.is(token.generation()) && !slot.flags.has(Flags::CLOSING)).then_some(slot)
    }

    /// Returns the open connection with this token.
    pub(crate) fn open_mut(&mut self, token: Token) -> Option<&mut Slot<X>> {
        self.held_mut(token).filter(|slot| !slot.flags.has(Flags::CLOSING))
    }

    /// Returns the connection with this token, open or closing, while its file is held.
    pub(crate) fn held_mut(&mut self, token: Token) -> Option<&mut Slot<X>> {
        self.slots.get_mut(token.slot()).filter(|slot| slot.is(token.generation()))
    }

    /// Returns the open connection in this slot if its generation equals `generation` in the bits of `mask`.
    pub(crate) fn open_by_bits(
        &mut self,
        slot: u32,
        generation: u32,
        mask: u32,
    ) -> Option<(Token, &mut Slot<X>)> {
        let found = self.slots.get_mut(slot as usize)?;
        let same = found.generation & mask == generation & mask;
        (same && found.fd.is_some()).then(|| (Token::new(slot, found.generation), found))
    }

    /// Takes the descriptor of an open connection. The slot stays in use.
    pub(crate) fn detach(&mut self, token: Token) -> Option<OwnedFd> {
        let slot = self.open_mut(token)?;
        slot.flags = Flags::DETACHED;
        slot.fd.take()
    }

    /// Frees a slot whose descriptor was detached; returns false for any other.
    pub(crate) fn end_detached(&mut self, token: Token) -> bool {
        let slot = self.slots.get_mut(token.slot());
        let Some(slot) = slot.filter(|slot| {
            slot.generation == token.generation() && slot.fd.is_none() && slot.flags == Flags::DETACHED
        }) else {
            return false;
        };
        slot.flags = Flags::CLOSING;
        true
    }

    /// Frees the slot of a closed connection and starts its next generation.
    pub(crate) fn release(&mut self, token: Token) {
        let Some(slot) = self.slots.get_mut(token.slot()) else { return };
        debug_assert!(
            slot.fd.is_none() && !slot.extra.is_stored() && slot.generation == token.generation(),
            "released twice, or before its close"
        );
        let chunk = token.slot() / CHUNK;
        let free = &mut self.free[chunk];
        slot.generation = slot.generation.wrapping_add(1);
        (slot.send, free.first) = (free.first, token.slot() as u32);
        free.used -= 1;
        self.with_room[chunk / WORD_BITS] |= 1 << (chunk % WORD_BITS);
        self.used -= 1;
        if self.adopted.is_empty() || !self.adopted.remove(&token) {
            self.limit.leave(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    impl SlotState for () {}

    fn descriptor() -> OwnedFd {
        File::open("/dev/null").expect("the file opens").into()
    }

    #[test]
    fn an_idle_connection_costs_at_most_16_bytes() {
        assert!(size_of::<Slot<bool>>() <= 16, "{} bytes", size_of::<Slot<bool>>());
    }

    #[test]
    fn ignores_events_of_an_earlier_generation() {
        let mut slots = Slots::<()>::new();
        let old = slots.insert(descriptor());
        assert!(slots.open_by_bits(0, old.generation(), u32::MAX).is_some());
        slots.open_mut(old).expect("the slot is open").fd = None;
        assert!(slots.open_by_bits(0, old.generation(), u32::MAX).is_none());
        slots.release(old);
        let new = slots.insert(descriptor());
        assert!(slots.open_by_bits(0, old.generation(), u32::MAX).is_none());
        assert_eq!(slots.open_by_bits(0, new.generation(), u32::MAX).map(|(token, _)| token), Some(new));
        assert_eq!((new.slot(), slots.used()), (0, 1));
    }

    fn close<X: SlotState>(slots: &mut Slots<X>, token: Token) {
        slots.open_mut(token).expect("the slot is open").fd = None;
        slots.release(token);
    }

    #[test]
    fn prefers_low_slots_and_frees_the_last_chunks() {
        let mut slots = Slots::<()>::new();
        let tokens: Vec<_> = (0..3 * CHUNK).map(|_| slots.insert(descriptor())).collect();
        assert!(tokens.iter().enumerate().all(|(at, token)| token.slot() == at));
        tokens[5..].iter().for_each(|token| close(&mut slots, *token));
        close(&mut slots, tokens[2]);
        assert_eq!(slots.insert(descriptor()).slot(), 2, "the first chunk has room");
        slots.trim();
        assert_eq!((slots.slots.len(), slots.used()), (CHUNK, 5));
        let again: Vec<_> = (5..2 * CHUNK).map(|_| slots.insert(descriptor())).collect();
        for token in again {
            assert!(!tokens.contains(&token), "a generation of a freed chunk came again: {token:?}");
            assert_eq!(slots.open(token).map(|slot| slot.generation), Some(token.generation()));
        }
    }
}
