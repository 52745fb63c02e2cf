//! mio tokens of connections, listeners, the waker and the alarm.

use crate::{ListenerId, Token};

/// Low bits of a mio token: the slot. The others hold as much of the generation as fits.
const SLOT_BITS: u32 = if usize::BITS >= 64 { 32 } else { 24 };
const SLOT_MASK: usize = (1 << SLOT_BITS) - 1;
/// The waker's mio token.
pub(super) const WAKER: mio::Token = mio::Token(SLOT_MASK);
/// The alarm's mio token; those of the listeners are below it.
pub(super) const ALARM: mio::Token = mio::Token(SLOT_MASK - 1);
/// Bits of a generation that a mio token holds.
pub(super) const GENERATION_MASK: u32 =
    if usize::BITS >= 64 { u32::MAX } else { (1 << (usize::BITS - SLOT_BITS)) - 1 };
/// Number of slots besides the numbers of listeners, alarm and waker.
pub(super) const SLOTS_MAX: usize = ALARM.0 - 1 - ListenerId::MAX as usize;

/// Source of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSource {
    /// A connection, by slot and the low bits of its generation.
    Connection { slot: u32, generation: u32 },
    /// A listener.
    Listener(ListenerId),
    /// The waker.
    Waker,
    /// The alarm.
    Alarm,
}

/// Returns a connection's mio token.
pub(super) fn connection(token: Token) -> mio::Token {
    let generation = (token.generation() & GENERATION_MASK) as usize;
    mio::Token(token.slot() | generation << SLOT_BITS)
}

/// Returns a listener's mio token.
pub(super) fn listener(id: ListenerId) -> mio::Token {
    mio::Token(ALARM.0 - 1 - usize::from(id))
}

/// Returns the source of a mio token.
pub(super) fn source(token: mio::Token) -> EventSource {
    let slot = token.0 & SLOT_MASK;
    if slot == WAKER.0 {
        EventSource::Waker
    } else if slot == ALARM.0 {
        EventSource::Alarm
    } else if slot >= SLOTS_MAX {
        EventSource::Listener((ALARM.0 - 1 - slot) as ListenerId)
    } else {
        EventSource::Connection { slot: slot as u32, generation: (token.0 >> SLOT_BITS) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_decoded() {
        for slot in [0, 1, 4711, SLOTS_MAX as u32 - 1] {
            for generation in [0, 1, GENERATION_MASK] {
                let source = source(connection(Token::new(slot, generation)));
                assert_eq!(source, EventSource::Connection { slot, generation });
            }
        }
        for id in [0, 1, ListenerId::MAX] {
            assert_eq!(source(listener(id)), EventSource::Listener(id));
        }
        assert_eq!(source(WAKER), EventSource::Waker);
        assert_eq!(source(ALARM), EventSource::Alarm);
    }
}
