//! `[timeouts]`: how long clients are waited for.

use shearwater::Timeouts;
use shearwater_config as config;

/// Puts the section into the server's timeouts.
pub(crate) fn apply(section: &config::Timeouts, timeouts: &mut Timeouts) {
    timeouts.head_ms = u64::from(section.head_ms);
    timeouts.body_ms = u64::from(section.body_ms);
    timeouts.body_grace_ms = u64::from(section.body_grace_ms);
    timeouts.write_ms = u64::from(section.write_ms);
    timeouts.linger_ms = u64::from(section.linger_ms);
    timeouts.drain_idle_ms = u64::from(section.drain_idle_ms);
}
