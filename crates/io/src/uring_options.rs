//! Options of a completion driver, defined on every system.

use crate::limits;

/// Options of a completion driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringOptions {
    /// Maximum number of connections, including those closed but not yet reported. Accepting pauses at this
    /// number.
    pub connections_max: usize,
    /// Maximum bytes that one `Received` lends; the driver may choose less.
    pub recv_buffer_bytes: usize,
    /// Makes receives multishot if the kernel can bound them, as the probe reports. Otherwise each
    /// receive is an entry.
    pub multishot: bool,
}

impl Default for UringOptions {
    fn default() -> Self {
        Self { connections_max: 1 << 20, recv_buffer_bytes: limits::RECV_BUFFER_BYTES, multishot: true }
    }
}
