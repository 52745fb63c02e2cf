//! Bytes that a program hands to the process that takes its place, in messages of the channel between them.
//!
//! They may be secret, such as the keys of session tickets: nothing prints them, and no file or variable has them.

use std::fmt;

use shearwater_io::limits::HANDED_STATE_BYTES_MAX;

/// Beginning of a message with a part of them.
const PREFIX: &[u8] = b"state ";

/// Bytes in a message, each as two digits.
const PART_BYTES: usize = 400;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes of the program's own.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct HandedState(pub(crate) Vec<u8>);

impl fmt::Debug for HandedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandedState").field("bytes", &self.0.len()).finish_non_exhaustive()
    }
}

impl HandedState {
    /// Returns whether they are more than the other process takes.
    pub(crate) fn is_too_long(&self) -> bool {
        self.0.len() > HANDED_STATE_BYTES_MAX
    }

    /// Returns the messages that carry them.
    pub(crate) fn messages(&self) -> impl Iterator<Item = Vec<u8>> {
        self.0.chunks(PART_BYTES).map(|part| {
            let digits = part.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            PREFIX.iter().copied().chain(digits.map(|digit| DIGITS[usize::from(digit)])).collect()
        })
    }

    /// Takes a message; returns false if it is another one, malformed, or too much.
    pub(crate) fn take(&mut self, message: &[u8]) -> bool {
        let Some(digits) = message
            .strip_prefix(PREFIX)
            .filter(|digits| !digits.is_empty() && digits.len().is_multiple_of(2))
        else {
            return false;
        };
        let value = |digit: u8| DIGITS.iter().position(|known| *known == digit);
        for pair in digits.chunks_exact(2) {
            let (Some(high), Some(low)) = (value(pair[0]), value(pair[1])) else { return false };
            self.0.push((high << 4 | low) as u8);
        }
        !self.is_too_long()
    }
}

#[cfg(test)]
mod tests {
    use shearwater_io::limits::{CHANNEL_MESSAGE_BYTES_MAX, HANDED_STATE_BYTES_MAX};

    use super::{HandedState, PART_BYTES};

    #[test]
    fn any_bytes_arrive() {
        for length in [0, 1, PART_BYTES, PART_BYTES + 1, HANDED_STATE_BYTES_MAX] {
            let sent = HandedState((0..length).map(|at| at as u8).collect());
            let mut received = HandedState::default();
            for message in sent.messages() {
                assert!(message.len() < CHANNEL_MESSAGE_BYTES_MAX && !message.contains(&0));
                assert!(received.take(&message));
            }
            assert_eq!(received.0, sent.0);
        }
    }

    #[test]
    fn refuses_other_messages_and_too_much() {
        for message in
            [&b""[..], b"also", b"state", b"state ", b"state 0", b"state 0g", b"state 0A", b"state 00 "]
        {
            assert!(!HandedState::default().take(message), "{message:?}");
        }
        let mut received = HandedState(vec![0; HANDED_STATE_BYTES_MAX]);
        assert!(!received.take(b"state 00"));
        assert!(HandedState(vec![0; HANDED_STATE_BYTES_MAX + 1]).is_too_long());
    }

    #[test]
    fn bytes_are_not_printed() {
        assert_eq!(format!("{:?}", HandedState(vec![7; 3])), "HandedState { bytes: 3, .. }");
    }
}
