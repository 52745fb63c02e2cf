//! Sends in flight: outputs, progress and results.

use std::sync::Arc;

use crate::limits::SPARE_SENDS_MAX;
use crate::{Output, SendError};

/// One send in flight: from `send` until its `Sent` is taken.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) output: Output,
    /// Bytes that the kernel has accepted.
    pub(crate) done: u64,
    /// Result; `None` while it is in flight.
    pub(crate) result: Option<Result<(), SendError>>,
    /// Kept while this send wants its fetch: nothing is fetched for a closed connection.
    pub(crate) wants: Option<Arc<()>>,
    /// True if the socket holds back partial segments until this send has ended.
    pub(crate) corked: bool,
}

impl Sending {
    /// Creates a send of which nothing is accepted yet.
    pub(crate) fn new(output: Output) -> Self {
        Self { output, done: 0, result: None, wants: None, corked: false }
    }

    /// Returns the bytes that the kernel hasn't accepted.
    pub(crate) fn left(&self) -> u64 {
        self.output.len() - self.done
    }
}

/// A slab of sends. Its length is the maximum in flight since it was last empty, at most one per connection.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    sends: Vec<Sending>,
    free: Vec<u32>,
}

impl Sends {
    /// Adds a send and returns its index.
    pub(crate) fn insert(&mut self, sending: Sending) -> u32 {
        if let Some(index) = self.free.pop() {
            self.sends[index as usize] = sending;
            return index;
        }
        self.sends.push(sending);
        // One per connection at most, and connections are numbered by `u32`.
        (self.sends.len() - 1) as u32
    }

    /// Returns the send with this index; `None` for `slots::NONE`.
    pub(crate) fn get(&self, index: u32) -> Option<&Sending> {
        self.sends.get(index as usize)
    }

    /// Returns the send with this index; `None` for `slots::NONE`.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Sending> {
        self.sends.get_mut(index as usize)
    }

    /// Removes a send and returns its output. Each index once.
    pub(crate) fn remove(&mut self, index: u32) -> (Output, Result<(), SendError>) {
        let sending = &mut self.sends[index as usize];
        self.free.push(index);
        let result = sending.result.take().unwrap_or(Err(SendError::Cancelled));
        let output = std::mem::take(&mut sending.output);
        sending.wants = None;
        if self.free.len() == self.sends.len() && self.sends.len() > SPARE_SENDS_MAX {
            *self = Self::default();
        }
        (output, result)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Output, SPARE_SENDS_MAX, Sending, Sends};

    #[test]
    fn a_fetch_is_wanted_until_its_send_has_ended() {
        let mut sends = Sends::default();
        let wants = Arc::new(());
        let wanted = Arc::downgrade(&wants);
        let index = sends.insert(Sending { wants: Some(wants), ..Sending::new(Output::new()) });
        assert_eq!(wanted.strong_count(), 1);
        drop(sends.remove(index));
        assert_eq!(wanted.strong_count(), 0, "though its slot is kept");
    }

    #[test]
    fn the_places_of_a_busier_moment_are_freed_when_it_is_over() {
        let mut sends = Sends::default();
        for count in [SPARE_SENDS_MAX, 3 * SPARE_SENDS_MAX] {
            let indices: Vec<_> = (0..count).map(|_| sends.insert(Sending::new(Output::new()))).collect();
            assert_eq!(sends.sends.len(), count);
            for index in indices {
                assert!(sends.get(index).is_some());
                assert!(sends.remove(index).1.is_err(), "it has no result");
            }
            assert_eq!(sends.sends.len(), if count > SPARE_SENDS_MAX { 0 } else { count });
        }
        assert_eq!((sends.sends.capacity(), sends.free.capacity()), (0, 0));
    }
}
