//! Bounds of a completion driver: to be named on every system, for the program that chooses.

use crate::limits;

/// Bounds of one completion driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringOptions {
    /// Connections held at once, those closed but not yet reported included. When it is reached accepting pauses itself.
    pub connections_max: usize,
    /// The most that one `Received` lends; the driver may choose less.
    pub recv_buffer_bytes: usize,
    /// Whether one entry may receive again and again, where the kernel can bound it (the report of the probe says whether). Without,
    /// each receive is an entry of its own.
    pub multishot: bool,
}

impl Default for UringOptions {
    fn default() -> Self {
        Self { connections_max: 1 << 20, recv_buffer_bytes: limits::RECV_BUFFER_BYTES, multishot: true }
    }
}
