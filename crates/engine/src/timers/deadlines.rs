//! Deadlines: which one applies in each phase, and the action when it expires.

use crate::limits::{EVENTS_PER_EXPIRY, EXPIRIES_PER_ARRIVAL, EXPIRIES_PER_TURN_MAX, EXPIRIES_PER_TURN_MIN};

/// Unit in which send progress is kept: a `u32` of them exceeds any network's throughput within `write_ms`.
pub(crate) const RATE_UNIT_BYTES: i64 = 64;

/// Returns the number of deadlines that a turn with so many events and accepted connections may act on.
pub(crate) fn expiries_max(events: usize, arrived: usize) -> usize {
    let of_events = (events / EVENTS_PER_EXPIRY).clamp(EXPIRIES_PER_TURN_MIN, EXPIRIES_PER_TURN_MAX);
    of_events + EXPIRIES_PER_ARRIVAL * arrived
}

#[cfg(test)]
mod tests {
    use super::{
        EVENTS_PER_EXPIRY, EXPIRIES_PER_ARRIVAL, EXPIRIES_PER_TURN_MAX, EXPIRIES_PER_TURN_MIN, expiries_max,
    };

    #[test]
    fn expires_deadlines_in_proportion_to_events_and_arrivals() {
        let most = EVENTS_PER_EXPIRY * EXPIRIES_PER_TURN_MAX;
        for (events, arrived, wanted) in [
            (0, 0, EXPIRIES_PER_TURN_MIN),
            (EVENTS_PER_EXPIRY * 5, 0, 5),
            (most, 0, EXPIRIES_PER_TURN_MAX),
            (100 * most, 0, EXPIRIES_PER_TURN_MAX),
            (16, 16, EXPIRIES_PER_TURN_MIN + 16 * EXPIRIES_PER_ARRIVAL),
            (100 * most, 16, EXPIRIES_PER_TURN_MAX + 16 * EXPIRIES_PER_ARRIVAL),
        ] {
            assert_eq!(expiries_max(events, arrived), wanted, "{events} events, {arrived} accepted");
        }
    }
}
