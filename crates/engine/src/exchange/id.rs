//! Ids of exchanges.

/// Names an exchange, and no later one in its place: index and generation. The tag of its handler's task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExchangeId(pub(crate) u64);

impl ExchangeId {
    /// The id of an exchange that isn't in the table.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn index(self) -> usize {
        self.0 as u32 as usize
    }
}
