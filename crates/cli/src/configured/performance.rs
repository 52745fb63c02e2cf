//! `[performance]`: how long connections may wait, and how much is read and written at once.

use shearwater::{Limits, Timeouts};
use shearwater_config::Performance;

/// Puts the section into the server's limits and timeouts. How many connections there may be is for the server as a whole.
pub(crate) fn apply(performance: &Performance, limits: &mut Limits, timeouts: &mut Timeouts) {
    timeouts.first_head_ms = u64::from(performance.connection_timeout) * 1000;
    timeouts.idle_ms = u64::from(performance.keep_alive_timeout) * 1000;
    limits.receive_bytes = super::limits::size(u64::from(performance.request_buffer_size));
    limits.output_bytes_max = u64::from(performance.response_buffer_size);
}
