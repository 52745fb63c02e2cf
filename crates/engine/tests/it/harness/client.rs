//! A client: the bytes sent and received, and the expected responses.

use shearwater_engine::io::sim::SimPeer;

use super::response::{Expected, ExpectedResponse, Verdict, show};
use super::unit::Unit;

/// A client of the simulated network.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) peer: SimPeer,
    /// Bytes that the network has accepted from it.
    pub(crate) sent: usize,
    pub(crate) got: Vec<u8>,
}

/// The way in which the client's side of a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The client becomes silent; time passes.
    Silence,
    /// The client sends a FIN and continues reading.
    Finish,
    /// The server is drained: unfinished requests are cut off.
    Cut,
    /// The client disconnects.
    Gone,
}

impl Client {
    pub(crate) fn new(peer: SimPeer) -> Self {
        Self { peer, sent: 0, got: Vec::new() }
    }

    /// Sends, and counts the bytes that the network accepts.
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

    /// Asserts that it has received exactly these responses.
    #[track_caller]
    pub(crate) fn assert_got(&mut self, responses: &[ExpectedResponse]) {
        let mut expected = Expected::default();
        responses.iter().for_each(|response| expected.push(response));
        self.assert_expected(&expected);
    }

    #[track_caller]
    pub(crate) fn assert_expected(&mut self, expected: &Expected) {
        let verdict = expected.compare(self.read());
        let at = if let Verdict::Differs { at } = verdict { at } else { self.got.len() };
        assert_eq!(verdict, Verdict::Equal, "got {}", show(&self.got, at));
    }

    /// Asserts that the server has closed the connection with a FIN, not a reset.
    #[track_caller]
    pub(crate) fn assert_closed(&mut self) {
        self.read();
        assert!(!self.peer.saw_reset(), "a reset");
        assert!(self.peer.saw_fin(), "no FIN");
    }
}

/// Returns the expected responses to a client that has sent the first `sent` bytes of `units`.
pub(crate) fn expected(units: &[Unit], sent: usize, end: End) -> Expected {
    let mut expected = Expected::default();
    let mut left = sent;
    for unit in units {
        if unit.goes_on_at.is_some_and(|at| left >= at) {
            expected.push_go_on();
        }
        if left < unit.decided_at {
            let unfinished = match end {
                End::Silence if left > 0 => ExpectedResponse::timeout(),
                End::Finish if left > 0 => ExpectedResponse::incomplete(),
                _ => return expected,
            };
            expected.push(&if is_head(&unit.bytes[..left]) { unfinished.bodyless() } else { unfinished });
            return expected;
        }
        expected.push(&unit.response);
        if unit.is_last {
            return expected;
        }
        left -= unit.bytes.len();
    }
    expected
}

/// Returns the possible output for a client of a draining worker: any number of its responses, the last of
/// which says so; then a rejection as too slow or incomplete.
pub(crate) fn drained(units: &[Unit], sent: usize) -> Vec<Expected> {
    let mut responded = Expected::default();
    let mut allowed = Vec::new();
    let mut left = sent;
    for unit in units {
        if unit.goes_on_at.is_some_and(|at| left >= at) {
            allowed.extend(with_tails(&responded, unit));
            responded.push_go_on();
        }
        allowed.extend(with_tails(&responded, unit));
        if left < unit.decided_at {
            return allowed;
        }
        let mut last = responded.clone();
        last.push(&unit.response.clone().last());
        allowed.push(last);
        responded.push(&unit.response);
        if unit.is_last {
            return allowed;
        }
        left -= unit.bytes.len();
    }
    allowed.push(responded);
    allowed
}

/// Returns the possible output if `unit` is unfinished: the responses so far, and a rejection.
fn with_tails(responded: &Expected, unit: &Unit) -> Vec<Expected> {
    let mut tails = vec![ExpectedResponse::timeout(), ExpectedResponse::incomplete()];
    if is_head(&unit.bytes) {
        tails.extend(tails.clone().into_iter().map(ExpectedResponse::bodyless));
    }
    let with = |tail: &ExpectedResponse| {
        let mut expected = responded.clone();
        expected.push(tail);
        expected
    };
    std::iter::once(responded.clone()).chain(tails.iter().map(with)).collect()
}

/// Returns true if the method was sent, and is `HEAD`.
pub(crate) fn is_head(sent: &[u8]) -> bool {
    sent.starts_with(b"HEAD ") || sent.starts_with(b"\r\nHEAD ")
}
