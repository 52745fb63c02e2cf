//! Orders to client processes and their counts, a line of JSON each.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use testkit::Response;

use super::plan::Share;

/// A client process's connections.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) server: SocketAddr,
    pub(super) share: Share,
    pub(super) request: String,
    pub(super) expected: ExpectedResponse,
    /// Time after which the server closes an idle connection.
    pub(super) keep_alive_ms: u32,
}

/// The response that each request must have, to the byte, but for its date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExpectedResponse {
    bytes: Vec<u8>,
    /// Bytes that may differ.
    date: (usize, usize),
}

/// Work of a client process. It reports when an order is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Opens all connections, each with one request, at most so many a second and so many at once.
    Open { per_second: u32, pending_max: u32 },
    /// Sends requests on random idle connections.
    Ask { per_second: u32, millis: u32 },
    /// Closes all connections.
    Close,
}

/// Counts of one client process, or of all together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Orders done.
    pub(super) done: u32,
    /// Connections that are open after a correct response.
    pub(super) held: u64,
    /// Correct responses.
    pub(super) responses: u64,
    /// Longest time to one, from the connect or the request.
    pub(super) slowest_ms: u32,
    /// Idle connections that the server closed after its timeout.
    pub(super) expired: u64,
    /// Longest delay of these after the timeout.
    pub(super) latest_expiry_ms: u32,
    /// Failed connections by reason.
    pub(super) failures: BTreeMap<String, u64>,
}

impl Counts {
    pub(super) fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Adds another process's.
    pub(super) fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.held += other.held;
        self.responses += other.responses;
        self.slowest_ms = self.slowest_ms.max(other.slowest_ms);
        self.expired += other.expired;
        self.latest_expiry_ms = self.latest_expiry_ms.max(other.latest_expiry_ms);
        for (reason, count) in &other.failures {
            *self.failures.entry(reason.clone()).or_default() += count;
        }
    }
}

impl ExpectedResponse {
    pub(super) fn of(response: &Response) -> Self {
        let head = response.head.text();
        let date = head.to_ascii_lowercase().find("\r\ndate:").map_or((0, 0), |start| {
            let length = head[start + 2..].find("\r\n").unwrap_or(0);
            (start + 2, start + 2 + length)
        });
        Self { bytes: [head.as_bytes(), &response.body].concat(), date }
    }

    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if `piece` is what the response has from `start`.
    pub(super) fn matches(&self, start: usize, piece: &[u8]) -> bool {
        let Some(expected) = self.bytes.get(start..start + piece.len()) else { return false };
        let same = |from: usize, to: usize| {
            let [from, to] = [from, to].map(|at| at.saturating_sub(start).min(piece.len()));
            expected[from..to] == piece[from..to]
        };
        same(start, self.date.0.max(start)) && same(self.date.1.max(start), start + piece.len())
    }
}

#[cfg(test)]
mod tests {
    use testkit::Head;

    use super::*;

    fn response(date: &str) -> Response {
        let head = format!("HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 5\r\n\r\n");
        Response { head: Head::parse(head.as_bytes()).expect("a head"), body: b"hello".to_vec() }
    }

    #[test]
    fn responses_match_whatever_their_date_and_pieces() {
        let expected = ExpectedResponse::of(&response("Mon, 01"));
        let later = ExpectedResponse::of(&response("Tue, 02")).bytes;
        for start in 0..later.len() {
            for end in start..=later.len() {
                assert!(expected.matches(start, &later[start..end]), "{start}..{end}");
            }
        }
    }

    #[test]
    fn any_other_byte_differs() {
        let expected = ExpectedResponse::of(&response("Mon, 01"));
        let (from, to) = expected.date;
        assert_eq!(&expected.bytes[from..to], b"Date: Mon, 01");
        for at in (0..from).chain(to..expected.length()) {
            let mut bytes = expected.bytes.clone();
            bytes[at] ^= 1;
            assert!(!expected.matches(0, &bytes), "{at}");
            assert!(!expected.matches(at, &bytes[at..]), "{at}");
        }
        assert!(!expected.matches(1, &expected.bytes), "longer");
    }

    #[test]
    fn counts_of_processes_add_up() {
        let one = Counts {
            done: 1,
            held: 3,
            responses: 4,
            slowest_ms: 7,
            expired: 1,
            latest_expiry_ms: 2,
            failures: [("recv: reset".to_owned(), 2)].into(),
        };
        let mut all = Counts::default();
        all.add(&one);
        all.add(&Counts { slowest_ms: 3, ..one.clone() });
        assert_eq!((all.held, all.responses, all.failed(), all.slowest_ms), (6, 8, 4, 7));
    }
}
