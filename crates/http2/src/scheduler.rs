//! Order in which streams send content (RFC 9218 10): by urgency, and in turns within one.
//!
//! A stream is in the queue of its urgency while it has content and a window. An incremental one sends a frame
//! a turn; any other one up to `TURN_BYTES`, so that a large response doesn't hold up small ones for long.

use crate::limits::TURN_BYTES;
use crate::priority::{Priority, URGENCIES};
use crate::streams::{Links, Slot, Streams};

/// Queues of streams that can send, one for each urgency.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    queues: [Queue; URGENCIES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    first: Option<Slot>,
    last: Option<Slot>,
}

impl Scheduler {
    /// Returns the stream to send next.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.queues.iter().find_map(|queue| queue.first)
    }

    /// Adds or removes a stream after its content or its window has changed.
    #[inline]
    pub(crate) fn update(&mut self, streams: &mut Streams, slot: Slot) {
        match (streams[slot].is_ready(), streams[slot].links.is_some()) {
            (true, false) => self.append(streams, slot),
            (false, true) => self.remove(streams, slot),
            _ => {}
        }
    }

    /// Records that a stream has sent so many bytes; ends its turn if it has had enough.
    pub(crate) fn sent(&mut self, streams: &mut Streams, slot: Slot, bytes: u32) {
        self.update(streams, slot);
        let stream = &mut streams[slot];
        stream.turn_bytes = stream.turn_bytes.saturating_add(bytes);
        let is_turn_over = stream.priority.is_incremental || stream.turn_bytes >= TURN_BYTES;
        if is_turn_over && stream.links.is_some() {
            self.remove(streams, slot);
            self.append(streams, slot);
        }
    }

    /// Changes a stream's priority.
    pub(crate) fn set_priority(&mut self, streams: &mut Streams, slot: Slot, priority: Priority) {
        let is_queued = streams[slot].links.is_some();
        if is_queued {
            self.remove(streams, slot);
        }
        streams[slot].priority = priority;
        if is_queued {
            self.append(streams, slot);
        }
    }

    fn append(&mut self, streams: &mut Streams, slot: Slot) {
        let queue = &mut self.queues[usize::from(streams[slot].priority.urgency)];
        let before = queue.last.replace(slot);
        match before {
            Some(before) => set(streams, before, |links| links.after = Some(slot)),
            None => queue.first = Some(slot),
        }
        let stream = &mut streams[slot];
        stream.links = Some(Links { before, after: None });
        stream.turn_bytes = 0;
    }

    /// Removes a stream from its queue, if it is in one.
    pub(crate) fn remove(&mut self, streams: &mut Streams, slot: Slot) {
        let Some(Links { before, after }) = streams[slot].links.take() else { return };
        let queue = &mut self.queues[usize::from(streams[slot].priority.urgency)];
        match before {
            Some(before) => set(streams, before, |links| links.after = after),
            None => queue.first = after,
        }
        match after {
            Some(after) => set(streams, after, |links| links.before = before),
            None => queue.last = before,
        }
    }
}

fn set(streams: &mut Streams, slot: Slot, change: impl FnOnce(&mut Links)) {
    if let Some(links) = &mut streams[slot].links {
        change(links);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{ClosedBy, Stream};

    const FRAME: u32 = 16 * 1024;

    /// Opens streams with a priority and a number of frames to send each.
    fn opened(streams: &[(&str, u64)]) -> (Scheduler, Streams) {
        let (mut scheduler, mut table) = (Scheduler::default(), Streams::new(1));
        for (number, (priority, frames)) in (0..).zip(streams) {
            let mut stream = Stream::new(2 * number + 1, true, 0, i32::MAX);
            stream.priority = Priority::of_field(priority.as_bytes());
            stream.available = frames * u64::from(FRAME);
            let slot = table.open(stream);
            scheduler.update(&mut table, slot);
        }
        (scheduler, table)
    }

    /// Sends everything, a frame at a time; returns the numbers in order.
    fn order(scheduler: &mut Scheduler, streams: &mut Streams) -> Vec<u32> {
        let mut order = Vec::new();
        while let Some(slot) = scheduler.next() {
            order.push(streams[slot].id);
            streams[slot].available -= u64::from(FRAME);
            scheduler.sent(streams, slot, FRAME);
        }
        order
    }

    #[test]
    fn the_most_urgent_comes_first() {
        let (mut scheduler, mut streams) = opened(&[("", 1), ("u=7", 1), ("u=0", 2), ("u=3", 1)]);
        assert_eq!(order(&mut scheduler, &mut streams), [5, 5, 1, 7, 3]);
    }

    #[test]
    fn incremental_streams_share_by_frames() {
        let (mut scheduler, mut streams) = opened(&[("i", 3), ("i", 2), ("i", 1)]);
        assert_eq!(order(&mut scheduler, &mut streams), [1, 3, 5, 1, 3, 1]);
    }

    #[test]
    fn a_small_response_waits_for_one_turn_of_a_large_one() {
        let (mut scheduler, mut streams) = opened(&[("", 100), ("", 1), ("", 6)]);
        let order = order(&mut scheduler, &mut streams);
        assert_eq!(order[..13], [1, 1, 1, 1, 3, 5, 5, 5, 5, 1, 1, 1, 1]);
        assert_eq!(order.len(), 107);
    }

    #[test]
    fn a_stream_without_a_window_waits_outside() {
        let (mut scheduler, mut streams) = opened(&[("", 2), ("", 2)]);
        let first = streams.find(1).expect("it is open");
        streams[first].send_window = 0;
        scheduler.update(&mut streams, first);
        assert_eq!(order(&mut scheduler, &mut streams), [3, 3]);
        streams[first].send_window = 1;
        scheduler.update(&mut streams, first);
        assert_eq!(order(&mut scheduler, &mut streams), [1, 1]);
    }

    /// Under any sequence of changes, all ready streams are in their queues, and each once.
    #[test]
    fn queues_hold_all_ready_streams() {
        let mut random = testkit::random::part(1, 10);
        let (mut scheduler, mut streams) = opened(&[]);
        let mut id = 1;
        for _ in 0..20_000 {
            let slots: Vec<Slot> = streams.all().collect();
            let slot = slots.get(random.usize(..=slots.len())).copied();
            match (random.u8(..6), slot) {
                (_, None) if slots.len() < 20 => {
                    let slot = streams.open(Stream::new(id, true, 0, 1));
                    streams[slot].available = 1;
                    scheduler.update(&mut streams, slot);
                    id += 2;
                }
                (0, Some(slot)) => {
                    scheduler.remove(&mut streams, slot);
                    streams.close(slot, ClosedBy::Us);
                }
                (1, Some(slot)) => {
                    let priority = Priority { urgency: random.u8(..8), is_incremental: random.bool() };
                    scheduler.set_priority(&mut streams, slot, priority);
                }
                (2, Some(slot)) => scheduler.sent(&mut streams, slot, random.u32(..TURN_BYTES)),
                (_, Some(slot)) => {
                    streams[slot].send_window = random.i32(-1..2);
                    scheduler.update(&mut streams, slot);
                }
                _ => {}
            }
            let mut queued = Vec::new();
            for queue in &scheduler.queues {
                let mut next = queue.first;
                while let Some(slot) = next {
                    queued.push(slot);
                    let after = streams[slot].links.expect("it is queued").after;
                    assert!(after.is_some() || queue.last == Some(slot));
                    next = after;
                }
            }
            let mut ready: Vec<Slot> = streams.all().filter(|slot| streams[*slot].is_ready()).collect();
            queued.sort_unstable();
            ready.sort_unstable();
            assert_eq!(queued, ready);
        }
    }
}
