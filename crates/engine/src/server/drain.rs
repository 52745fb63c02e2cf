//! A worker's lifecycle: serving, draining (no new connections, but responses to everything received), ending.

/// State of a worker's lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// Serving.
    Serving,
    /// Responding to received requests until this time.
    Draining { until_ms: u64 },
    /// All connections are closed; the driver's `Closed` events are pending.
    Ending,
}

/// State of accepting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepting {
    /// Accepting connections.
    Open,
    /// Emptying or closing the listeners.
    Stopping,
    /// The listeners are closed.
    Stopped,
}
