//! `[limits]`: what is held back from clients.

use shearwater::Limits;
use shearwater_config as config;

/// Puts the section into the server's limits.
pub(crate) fn apply(section: &config::Limits, limits: &mut Limits) {
    limits.head_bytes_max = size(u64::from(section.head_bytes_max));
    limits.target_bytes_max = size(u64::from(section.target_bytes_max));
    limits.fields_max = usize::from(section.fields_max);
    limits.body_bytes_max = section.body_bytes_max;
    limits.buffered_bytes_max = section.buffered_bytes_max.map_or(limits.buffered_bytes_max, size);
    limits.connections_per_address_max = section.connections_per_address_max;
    limits.requests_per_connection_max = section.requests_per_connection_max;
    limits.body_bytes_per_second_min = section.body_bytes_per_second_min;
    limits.send_bytes_per_second_min = section.send_bytes_per_second_min;
    limits.linger_bytes_max = section.linger_bytes_max;
}

/// A size in memory: what is larger than all memory is no bound.
pub(super) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
