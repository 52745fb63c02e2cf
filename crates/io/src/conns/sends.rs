//! The sends in flight: outputs, how far they have got, and how they ended.

use crate::{Output, SendError};

/// One send in flight: from `send` until its `Sent` is taken.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) output: Output,
    /// Bytes that the kernel has taken.
    pub(crate) done: u64,
    /// How it ended; `None` while it goes on.
    pub(crate) result: Option<Result<(), SendError>>,
}

/// A slab of sends. Its length is that of the busiest moment, at most one per connection.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    sends: Vec<Sending>,
    free: Vec<u32>,
}

impl Sends {
    /// Takes an output in.
    pub(crate) fn insert(&mut self, output: Output) -> u32 {
        let sending = Sending { output, done: 0, result: None };
        if let Some(index) = self.free.pop() {
            self.sends[index as usize] = sending;
            return index;
        }
        self.sends.push(sending);
        // One per connection at most, and connections are numbered by u32.
        (self.sends.len() - 1) as u32
    }

    /// The send of an index that `insert` gave; `None` for `slots::NONE`.
    pub(crate) fn get(&self, index: u32) -> Option<&Sending> {
        self.sends.get(index as usize)
    }

    /// The send of an index that `insert` gave; `None` for `slots::NONE`.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Sending> {
        self.sends.get_mut(index as usize)
    }

    /// Ends a send: the output comes out. Each index once.
    pub(crate) fn remove(&mut self, index: u32) -> (Output, Result<(), SendError>) {
        let sending = &mut self.sends[index as usize];
        self.free.push(index);
        let result = sending.result.take().unwrap_or(Err(SendError::Cancelled));
        (std::mem::take(&mut sending.output), result)
    }
}
