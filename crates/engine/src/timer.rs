//! A connection's timer: its deadline, and its links in the list of its tick (see `wheel`).

/// A deadline in ticks since the worker's clock began.
pub(crate) type Tick = u32;

/// Bucket of a connection without a timer.
pub(crate) const UNLINKED: u16 = u16::MAX;

/// No neighbor.
const NONE: u32 = u32::MAX;

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
