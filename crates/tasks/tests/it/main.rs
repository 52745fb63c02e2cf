//! The crate's tests: tasks, wakes from this thread and others, panics, timers, and (if stacks can be
//! switched) coroutines.

#[cfg(not(miri))]
mod coroutines;
mod helpers;
mod panics;
#[cfg(not(miri))]
mod stacks;
mod tasks;
mod threads;
mod timers;
mod wakes;
