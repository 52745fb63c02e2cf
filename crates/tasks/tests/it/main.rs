//! The crate's tests: tasks, their wakes from this thread and others, panics, timers, and (where a stack can be switched) coroutines.

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
