//! Open streams by their numbers, and the last ones that were closed (RFC 9113 5.1).

use crate::limits::{CLOSED_STREAMS_KEPT_MAX, CLOSED_STREAMS_KEPT_MIN};
use crate::priority::Priority;

/// Number of a stream (RFC 9113 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u32);

impl StreamId {
    /// Creates the identifier of a stream by its number, which may be closed, or none.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number, which is odd.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Index of an open stream.
pub(crate) type Slot = u16;

/// An open stream: its request hasn't ended, or its response hasn't.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    /// The client has ended its side: half-closed (remote).
    pub(crate) is_request_ended: bool,
    /// Content is dropped: the request was rejected.
    pub(crate) is_discarded: bool,
    /// The head of the final response was sent.
    pub(crate) is_head_sent: bool,
    /// Content in bytes that must still come; `None` if that isn't known.
    pub(crate) content_left: Option<u64>,
    /// Bytes that the client may send.
    pub(crate) receive_window: i32,
    /// Bytes of delivered content that wasn't consumed.
    pub(crate) unconsumed: u32,
    /// Bytes that were consumed, or dropped, and not yet reported to the client.
    pub(crate) credit: u32,
    /// Bytes that we may send; negative if the client has lowered its window since.
    pub(crate) send_window: i32,
    /// Bytes that wait for a window and a turn.
    pub(crate) available: u64,
    /// Bytes sent in the present turn.
    pub(crate) turn_bytes: u32,
    pub(crate) priority: Priority,
    /// Neighbours in the queue of its urgency, while it is in one.
    pub(crate) links: Option<Links>,
}

/// Neighbours in a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    pub(crate) before: Option<Slot>,
    pub(crate) after: Option<Slot>,
}

impl Stream {
    /// Creates a stream whose request has begun.
    pub(crate) fn new(id: u32, is_request_ended: bool, receive_window: i32, send_window: i32) -> Self {
        Self {
            id,
            is_request_ended,
            is_discarded: false,
            is_head_sent: false,
            content_left: None,
            receive_window,
            unconsumed: 0,
            credit: 0,
            send_window,
            available: 0,
            turn_bytes: 0,
            priority: Priority::default(),
            links: None,
        }
    }

    /// Returns true if it has content to send and a window for it.
    pub(crate) fn is_ready(&self) -> bool {
        self.available > 0 && self.send_window > 0
    }
}

/// How a stream was closed, as far as that decides about later frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClosedBy {
    /// Our reset: late frames are ignored.
    Us,
    /// Its end, or a reset by the client: further frames are errors.
    Client,
}

/// All open streams, and the last closed ones.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Vec<Stream>,
    free: Vec<Slot>,
    /// Numbers of the open streams in ascending order, with their slots.
    order: Vec<(u32, Slot)>,
    /// Numbers of closed streams, a ring; the lowest bit, always 1 in a number, is 0 if we have reset it.
    closed: Vec<u32>,
    closed_next: usize,
    closed_max: usize,
    /// Highest number that has begun.
    last: u32,
}

impl Streams {
    /// Creates an empty table, which stores as many closed streams as may be open.
    pub(crate) fn new(streams_max: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            closed: Vec::new(),
            closed_next: 0,
            closed_max: (streams_max as usize).clamp(CLOSED_STREAMS_KEPT_MIN, CLOSED_STREAMS_KEPT_MAX),
            last: 0,
        }
    }

    /// Returns its allocated memory in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Stream>()
            + self.free.capacity() * size_of::<Slot>()
            + self.order.capacity() * size_of::<(u32, Slot)>()
            + self.closed.capacity() * size_of::<u32>()
    }

    /// Frees all memory if no stream is open. Closed ones are no longer known.
    pub(crate) fn trim(&mut self) {
        if self.order.is_empty() {
            (self.slots, self.free, self.order) = (Vec::new(), Vec::new(), Vec::new());
            (self.closed, self.closed_next) = (Vec::new(), 0);
        }
    }

    /// Returns the number of open streams.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the highest number that has begun; 0 if none has.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// Records that a number has begun, as the highest.
    pub(crate) fn begin(&mut self, id: u32) {
        debug_assert!(id > self.last);
        self.last = id;
    }

    /// Adds the stream with the highest number.
    pub(crate) fn open(&mut self, stream: Stream) -> Slot {
        self.begin(stream.id);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[usize::from(slot)] = stream;
                slot
            }
            None => {
                self.slots.push(stream);
                // `Limits::usable` bounds the number of streams.
                (self.slots.len() - 1) as Slot
            }
        };
        self.order.push((stream.id, slot));
        slot
    }

    /// Returns the slot of an open stream.
    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<Slot> {
        let place = self.order.binary_search_by_key(&id, |entry| entry.0).ok()?;
        Some(self.order[place].1)
    }

    /// Returns the slot of an open stream by its place in the order of numbers, below [`Self::len`].
    pub(crate) fn nth(&self, place: usize) -> Slot {
        self.order[place].1
    }

    /// Iterates over the slots of all open streams.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = Slot> {
        self.order.iter().map(|entry| entry.1)
    }

    /// Removes an open stream, which must be in no queue.
    pub(crate) fn close(&mut self, slot: Slot, by: ClosedBy) -> Stream {
        let stream = self[slot];
        debug_assert!(stream.links.is_none());
        if let Ok(place) = self.order.binary_search_by_key(&stream.id, |entry| entry.0) {
            self.order.remove(place);
            self.free.push(slot);
        }
        self.note_closed(stream.id, by);
        stream
    }

    /// Records how a stream was closed.
    pub(crate) fn note_closed(&mut self, id: u32, by: ClosedBy) {
        let entry = if by == ClosedBy::Us { id & !1 } else { id };
        match self.closed.get_mut(self.closed_next) {
            Some(oldest) => *oldest = entry,
            None => self.closed.push(entry),
        }
        self.closed_next = (self.closed_next + 1) % self.closed_max;
    }

    /// Returns how a stream was closed; `None` if that was long ago, or it was skipped.
    pub(crate) fn closed_by(&self, id: u32) -> Option<ClosedBy> {
        self.closed.iter().find_map(|&entry| match entry | 1 == id {
            true if entry == id => Some(ClosedBy::Client),
            true => Some(ClosedBy::Us),
            false => None,
        })
    }
}

impl std::ops::Index<Slot> for Streams {
    type Output = Stream;

    fn index(&self, slot: Slot) -> &Stream {
        &self.slots[usize::from(slot)]
    }
}

impl std::ops::IndexMut<Slot> for Streams {
    fn index_mut(&mut self, slot: Slot) -> &mut Stream {
        &mut self.slots[usize::from(slot)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_open_streams_and_the_last_closed_ones() {
        let mut streams = Streams::new(1);
        for id in (1..200).step_by(2) {
            streams.open(Stream::new(id, true, 0, 0));
        }
        for id in (1..200).step_by(4) {
            let slot = streams.find(id).expect("it is open");
            streams.close(slot, if id % 8 == 1 { ClosedBy::Us } else { ClosedBy::Client });
        }
        assert_eq!((streams.len(), streams.last()), (50, 199));
        for id in 1..202 {
            let slot = streams.find(id);
            assert_eq!(slot.is_some(), id % 4 == 3 && id < 200, "{id}");
            assert!(slot.is_none_or(|slot| streams[slot].id == id));
        }
        assert_eq!(streams.closed_by(197), Some(ClosedBy::Client));
        assert_eq!(streams.closed_by(193), Some(ClosedBy::Us));
        assert_eq!((streams.closed_by(199), streams.closed_by(201)), (None, None));
        for id in 0..CLOSED_STREAMS_KEPT_MIN as u32 {
            streams.note_closed(1001 + 2 * id, ClosedBy::Us);
        }
        assert_eq!((streams.closed_by(197), streams.closed_by(1001)), (None, Some(ClosedBy::Us)));
    }

    #[test]
    fn slots_are_used_again() {
        let mut streams = Streams::new(1);
        let mut held_bytes = 0;
        for id in (1..2_001).step_by(2) {
            streams.open(Stream::new(id, true, 0, 0));
            if streams.len() > 10 {
                let oldest = streams.all().next().expect("a stream");
                streams.close(oldest, ClosedBy::Client);
            }
            if id == 101 {
                held_bytes = streams.held_bytes();
            }
        }
        assert_eq!((streams.len(), streams.held_bytes()), (10, held_bytes));
    }
}
