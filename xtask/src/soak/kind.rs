//! The kinds of connections, and how often each is drawn.

use crate::harness::random::Random;

/// What a connection is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Many requests at once; the client closes.
    Pipelined,
    /// One request after the other; the client closes.
    OneByOne,
    /// Twenty times many requests at once; the client closes.
    KeptLong,
    /// One request, with `Connection: close`.
    Alone,
    /// Many requests at once, the last with `Connection: close`.
    ServerCloses,
    /// Many requests at once, then the end of what the client sends; all answers are read.
    HalfClose,
    /// Some requests, then a reset somewhere in the answer of a large file.
    ResetInAnswer,
    /// A reset, with or without a part of a head sent.
    ResetAtOnce,
    /// Connected and closed, nothing sent.
    NothingSent,
    /// Some requests and a part of a head; closed.
    PartOfHead,
    /// A head and a part of its body; closed.
    PartOfBody,
    /// Bodies, whole and in chunks, in pieces.
    Bodies,
    /// Some requests, then one that is refused.
    Refused,
    /// A file of 100 KB or 1 MB, whole.
    Medium,
    /// A file of 4 MiB, whole.
    Large,
}

/// Every kind with its name in the report and its share: of the sum of all shares, so many are drawn.
pub(super) const KINDS: [(Kind, &str, u64); 15] = [
    (Kind::Pipelined, "pipelined", 180),
    (Kind::OneByOne, "one by one", 80),
    (Kind::KeptLong, "kept for 640 requests", 1),
    (Kind::Alone, "one request, Connection: close", 200),
    (Kind::ServerCloses, "pipelined, then Connection: close", 80),
    (Kind::HalfClose, "half-closed", 80),
    (Kind::ResetInAnswer, "reset in an answer", 10),
    (Kind::ResetAtOnce, "reset at once", 50),
    (Kind::NothingSent, "nothing sent", 30),
    (Kind::PartOfHead, "closed in a head", 50),
    (Kind::PartOfBody, "closed in a body", 30),
    (Kind::Bodies, "bodies", 120),
    (Kind::Refused, "refused", 80),
    (Kind::Medium, "file of 100 KB or 1 MB", 8),
    (Kind::Large, "file of 4 MiB", 2),
];

/// The place of a kind in [`KINDS`].
pub(super) fn index(kind: Kind) -> usize {
    KINDS.iter().position(|(other, _, _)| *other == kind).unwrap_or(0)
}

/// Draws a kind.
pub(super) fn draw(random: &mut Random) -> Kind {
    let mut drawn = random.below(KINDS.iter().map(|(_, _, share)| share).sum());
    for (kind, _, share) in KINDS {
        if drawn < share {
            return kind;
        }
        drawn -= share;
    }
    Kind::Pipelined
}

#[cfg(test)]
mod tests {
    use super::{KINDS, draw, index};
    use crate::harness::random::Random;

    #[test]
    fn every_kind_with_a_share_is_drawn_about_that_often() {
        let all: u64 = KINDS.iter().map(|(_, _, share)| share).sum();
        let mut counts = [0_u64; KINDS.len()];
        let mut random = Random::new(1);
        (0..100 * all).for_each(|_| counts[index(draw(&mut random))] += 1);
        for ((_, name, share), count) in KINDS.iter().zip(counts) {
            let expected = 100 * share;
            assert!(count.abs_diff(expected) <= expected / 3, "{name}: {count}, expected {expected}");
        }
    }
}
