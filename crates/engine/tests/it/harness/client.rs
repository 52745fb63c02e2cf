//! A client: what it has sent, what it has got, and what that has to be.

use shearwater_engine::io::sim::SimPeer;

use super::answer::{Answer, Expected, Verdict, show};
use super::unit::Unit;

/// One client of the simulated network.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) peer: SimPeer,
    /// Bytes that the network has taken from it.
    pub(crate) sent: usize,
    pub(crate) got: Vec<u8>,
}

/// How the client's side of a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It says no more; time goes by.
    Silence,
    /// It ends its sending side and reads on.
    Finish,
    /// The server is drained meanwhile: whatever is unfinished is cut off.
    Cut,
    /// It is gone.
    Gone,
}

impl Client {
    pub(crate) fn new(peer: SimPeer) -> Self {
        Self { peer, sent: 0, got: Vec::new() }
    }

    /// Sends; counts what the network takes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        if self.peer.write(bytes) {
            self.sent += bytes.len();
        }
    }

    pub(crate) fn read(&mut self) -> &[u8] {
        self.got.extend(self.peer.read());
        &self.got
    }

    /// Asserts that it has got exactly these answers.
    #[track_caller]
    pub(crate) fn assert_got(&mut self, answers: &[Answer]) {
        let mut expected = Expected::default();
        answers.iter().for_each(|answer| expected.push(answer));
        self.assert_expected(&expected);
    }

    #[track_caller]
    pub(crate) fn assert_expected(&mut self, expected: &Expected) {
        let verdict = expected.compare(self.read());
        let at = if let Verdict::Differs { at } = verdict { at } else { self.got.len() };
        assert_eq!(verdict, Verdict::Equal, "got {}", show(&self.got, at));
    }

    /// Asserts that the server has ended the connection in order: FIN, no reset.
    #[track_caller]
    pub(crate) fn assert_closed(&mut self) {
        self.read();
        assert!(!self.peer.saw_reset(), "a reset");
        assert!(self.peer.saw_fin(), "no FIN");
    }
}

/// What a client that has sent the first `sent` bytes of `units` has to get.
pub(crate) fn expected(units: &[Unit], sent: usize, end: End) -> Expected {
    let mut expected = Expected::default();
    let mut left = sent;
    for unit in units {
        if unit.goes_on_at.is_some_and(|at| left >= at) {
            expected.push_go_on();
        }
        if left < unit.decided_at {
            let unfinished = match end {
                End::Silence if left > 0 => Answer::timeout(),
                End::Finish if left > 0 => Answer::incomplete(),
                _ => return expected,
            };
            expected.push(&if is_head(&unit.bytes[..left]) { unfinished.bodyless() } else { unfinished });
            return expected;
        }
        expected.push(&unit.answer);
        if unit.is_last {
            return expected;
        }
        left -= unit.bytes.len();
    }
    expected
}

/// All that a client of a worker that is drained may get: any number of its answers, the last of which says that it is
/// the last; behind them, that a request was too slow or unfinished.
pub(crate) fn drained(units: &[Unit], sent: usize) -> Vec<Expected> {
    let mut answered = Expected::default();
    let mut allowed = Vec::new();
    let mut left = sent;
    for unit in units {
        if unit.goes_on_at.is_some_and(|at| left >= at) {
            allowed.extend(with_tails(&answered, unit));
            answered.push_go_on();
        }
        allowed.extend(with_tails(&answered, unit));
        if left < unit.decided_at {
            return allowed;
        }
        let mut last = answered.clone();
        last.push(&unit.answer.clone().last());
        allowed.push(last);
        answered.push(&unit.answer);
        if unit.is_last {
            return allowed;
        }
        left -= unit.bytes.len();
    }
    allowed.push(answered);
    allowed
}

/// All that a client may get if `unit` is unfinished: the answers so far, and a refusal.
fn with_tails(answered: &Expected, unit: &Unit) -> Vec<Expected> {
    let mut tails = vec![Answer::timeout(), Answer::incomplete()];
    if is_head(&unit.bytes) {
        tails.extend(tails.clone().into_iter().map(Answer::bodyless));
    }
    let with = |tail: &Answer| {
        let mut expected = answered.clone();
        expected.push(tail);
        expected
    };
    std::iter::once(answered.clone()).chain(tails.iter().map(with)).collect()
}

/// Returns true if the method was sent, and is `HEAD`.
pub(crate) fn is_head(sent: &[u8]) -> bool {
    sent.starts_with(b"HEAD ") || sent.starts_with(b"\r\nHEAD ")
}
