//! The queue of slots that are ready to be polled.

use std::collections::VecDeque;
use std::fmt;

/// Order of ready tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Order {
    /// Oldest first.
    #[default]
    Fifo,
    /// Newest first, whose memory is warm; after [`Options::lifo_run_max`](crate::Options::lifo_run_max) of
    /// them the oldest one.
    Lifo,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "fifo",
            Self::Lifo => "lifo",
        })
    }
}

/// Ready slots.
pub(crate) struct Ready {
    queue: VecDeque<u32>,
    order: Order,
    lifo_run_max: u32,
    /// Tasks taken from the back since the last from the front.
    run: u32,
}

impl Ready {
    pub(crate) fn new(order: Order, lifo_run_max: u32) -> Self {
        Self { queue: VecDeque::new(), order, lifo_run_max, run: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn push(&mut self, slot: u32) {
        self.queue.push_back(slot);
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        match self.order {
            Order::Lifo if self.run < self.lifo_run_max => {
                self.run += 1;
                self.queue.pop_back()
            }
            Order::Lifo | Order::Fifo => {
                self.run = 0;
                self.queue.pop_front()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_waking_and_the_runs_of_lifo() {
        for (order, lifo_run_max, expected) in [
            (Order::Fifo, 3, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
            (Order::Lifo, 3, [8, 7, 6, 0, 5, 4, 3, 1, 2]),
            (Order::Lifo, 0, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ] {
            let mut ready = Ready::new(order, lifo_run_max);
            (0..9).for_each(|slot| ready.push(slot));
            assert_eq!(std::iter::from_fn(|| ready.take()).collect::<Vec<_>>(), expected, "{order}");
        }
    }

    #[test]
    fn lifo_starves_no_task() {
        let mut ready = Ready::new(Order::Lifo, 3);
        (0..10).for_each(|slot| ready.push(slot));
        let mut old = Vec::new();
        for newcomer in 100..140 {
            ready.push(newcomer);
            old.extend(ready.take().filter(|slot| *slot < 10));
        }
        assert_eq!(old, (0..10).collect::<Vec<_>>(), "every fourth turn takes the oldest");
    }
}
