//! How far a worker has come: serving, draining, ending.

/// How far a worker has come towards its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// It serves.
    Serving,
    /// It answers what it has received, until this time.
    Draining { until_ms: u64 },
    /// It has closed everything and waits for the driver to say so.
    Ending,
}

/// Whether connections are being accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepting {
    /// Yes.
    Open,
    /// No more: the listeners are being emptied or closed.
    Stopping,
    /// The listeners are closed.
    Stopped,
}
