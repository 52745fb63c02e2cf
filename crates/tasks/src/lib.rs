//! Tasks, timers and coroutines of a worker.
//!
//! A **task** is a future in a recycled slot of its worker: [`Tasks`] holds them, takes wakes from any thread
//! and returns the next to poll. [`Timers`] let a task sleep on a clock that the worker drives; [`yield_now`]
//! yields to other tasks. A [`Coroutine`] is a future too: straight-line code on its own stack, from
//! [`Stacks`].
//!
//! The crate knows nothing of sockets, HTTP or the time, and runs nothing by itself. In the steady state a
//! task allocates nothing.
//!
//! ```
//! use shearwater_tasks::{Options, Polled, Tasks, yield_now};
//!
//! let mut tasks = Tasks::new(Options::default(), || ());
//! let Ok(id) = tasks.spawn(0, yield_now()) else { panic!("there is room for many") };
//! assert_eq!(tasks.poll(id), Polled::Pending);
//! tasks.collect();
//! assert_eq!(tasks.next(), Some(id));
//! assert_eq!(tasks.poll(id), Polled::Ready);
//! ```
#![deny(unsafe_code)]

mod arena;
mod coroutine;
pub mod limits;
mod overflow;
mod ready;
mod stacks;
mod stored;
mod tasks;
mod timers;
mod wakes;

pub use coroutine::{Coroutine, Suspend};
pub use ready::Order;
pub use stacks::{StackOptions, Stacks};
pub use tasks::{Options, Polled, TaskId, Tasks, YieldNow, yield_now};
pub use timers::{Sleep, Timers};
