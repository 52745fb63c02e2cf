//! The kinds of connections, and what each sends and expects.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use testkit::random::Rng;

use super::exchanges::{Exchange, Pair, SoakServers};
use crate::script::{Ending, Reading, Round, Script};

/// A slow client sends its request in so many parts, and reads the response in as many.
const SLOW_PARTS: usize = 40;
/// Its pause after each: the request takes 2 s, a fifth of what a head may take.
const SLOW_PAUSE: Duration = Duration::from_millis(50);
/// Name of slow connections in the report.
const SLOW: &str = "slow";

/// Requests that a connection sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pool {
    Short,
    Medium,
    Large,
    /// Requests with bodies, to the server of handlers.
    Posts,
}

/// The last request of a connection, sent with the last round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    /// One with `Connection: close`.
    Close,
    /// One before the client shuts down its sending side.
    HalfClose,
    /// One that is refused.
    Refused,
    /// A part of one.
    Part,
    /// One for the large file, whose response the client leaves with a reset.
    Left,
}

/// A kind of connection.
#[derive(Debug)]
pub(super) struct ConnectionKind {
    pub(super) name: &'static str,
    /// Share of the connections.
    share: u64,
    from: Pool,
    /// Rounds: the least and the most.
    rounds: (usize, usize),
    /// Requests of a round: the least and the most. The heads of a round fit into a socket's buffer.
    requests: (usize, usize),
    last: Last,
    ending: Ending,
}

#[rustfmt::skip]
pub(super) const KINDS: &[ConnectionKind] = &[
    kind("pipelined, client closes", 180, Pool::Short, (1, 1), (1, 32), Last::Nothing, Ending::Closes),
    kind("one by one, in parts, client closes", 80, Pool::Short, (1, 5), (1, 1), Last::Nothing, Ending::Closes),
    kind("kept for 640 requests", 1, Pool::Short, (20, 20), (32, 32), Last::Nothing, Ending::Closes),
    kind("one request with Connection: close", 200, Pool::Short, (0, 0), (0, 0), Last::Close, Ending::ServerCloses),
    kind("pipelined, the last with Connection: close", 80, Pool::Short, (1, 1), (1, 32), Last::Close, Ending::ServerCloses),
    kind("pipelined, client half-closes", 80, Pool::Short, (1, 1), (1, 32), Last::HalfClose, Ending::ServerCloses),
    kind("reset in a large response", 10, Pool::Short, (1, 1), (1, 32), Last::Left, Ending::Resets),
    kind("reset at once", 25, Pool::Short, (0, 0), (0, 0), Last::Nothing, Ending::Resets),
    kind("reset in a head", 25, Pool::Short, (1, 1), (1, 32), Last::Part, Ending::Resets),
    kind("nothing sent", 30, Pool::Short, (0, 0), (0, 0), Last::Nothing, Ending::Closes),
    kind("closed in a head", 50, Pool::Short, (1, 1), (1, 32), Last::Part, Ending::Closes),
    kind("closed in a body", 30, Pool::Posts, (0, 0), (0, 0), Last::Part, Ending::Closes),
    kind("requests with bodies, in parts", 120, Pool::Posts, (1, 5), (1, 1), Last::Nothing, Ending::Closes),
    kind("refused after a pipeline", 40, Pool::Short, (1, 1), (1, 32), Last::Refused, Ending::ServerCloses),
    kind("refused by the server of handlers", 40, Pool::Posts, (0, 0), (0, 0), Last::Refused, Ending::ServerCloses),
    kind("a file of 100 KB or 1 MB", 8, Pool::Medium, (1, 1), (1, 1), Last::Nothing, Ending::Closes),
    kind("a file of 4 MiB", 2, Pool::Large, (1, 1), (1, 1), Last::Nothing, Ending::Closes),
    kind(SLOW, 0, Pool::Short, (1, 1), (1, 1), Last::Nothing, Ending::Closes),
];

const fn kind(
    name: &'static str,
    share: u64,
    from: Pool,
    rounds: (usize, usize),
    requests: (usize, usize),
    last: Last,
    ending: Ending,
) -> ConnectionKind {
    ConnectionKind { name, share, from, rounds, requests, last, ending }
}

impl ConnectionKind {
    /// Returns true if requests are sent in parts: those of several rounds of one request.
    fn is_in_parts(&self) -> bool {
        self.rounds.1 > 1 && self.requests.1 == 1
    }

    /// Returns true if it ends with a part of a request.
    pub(super) fn is_partial(&self) -> bool {
        self.last == Last::Part
    }

    /// Returns true if its connections may end before the server accepts them.
    pub(super) fn is_short(&self) -> bool {
        self.ending == Ending::Resets && self.last != Last::Left
    }
}

/// Draws connections.
pub(super) struct Writer<'a> {
    pub(super) servers: &'a SoakServers,
    pub(super) random: Rng,
}

impl<'a> Writer<'a> {
    /// Draws a kind, and writes its script.
    pub(super) fn write(&mut self) -> (SocketAddr, Arc<Script>) {
        let shares: u64 = KINDS.iter().map(|kind| kind.share).sum();
        let mut drawn = self.random.u64(..shares);
        let is_drawn = |kind: &&ConnectionKind| {
            let is_drawn = drawn < kind.share;
            drawn = drawn.saturating_sub(kind.share);
            is_drawn
        };
        let kind = KINDS.iter().find(is_drawn).unwrap_or(&KINDS[0]);
        let script = self.script(kind);
        (self.address(kind.from), Arc::new(script))
    }

    fn script(&mut self, kind: &'static ConnectionKind) -> Script {
        let mut script =
            Script { name: kind.name, ending: kind.ending, rounds: Vec::new(), ..Script::new("") };
        let (mut rounds, pool) = (Vec::new(), self.pool(kind.from));
        for _ in 0..self.random.usize(kind.rounds.0..=kind.rounds.1) {
            let count = self.random.usize(kind.requests.0..=kind.requests.1);
            let exchanges: Vec<&Exchange> = (0..count).map(|_| &self.pick(pool).staying).collect();
            rounds.push(exchanges);
        }
        let (mut last, mut end) = (rounds.pop().unwrap_or_default(), Vec::new());
        match kind.last {
            Last::Nothing => {}
            Last::Close => last.push(&self.pick(pool).closing),
            Last::Refused => {
                last.push(self.pick(&self.servers.refused[usize::from(kind.from == Pool::Posts)]));
            }
            Last::HalfClose => {
                let Pair { staying, closing } = self.pick(pool);
                end.clone_from(&staying.request);
                script.half_close = true;
                // The server has seen the end or not.
                script.last = Some([staying, closing].map(|exchange| Arc::clone(&exchange.response)));
            }
            Last::Part => {
                let request = &self.pick(pool).staying.request;
                end.extend_from_slice(&request[..self.random.usize(1..request.len() - 1)]);
            }
            Last::Left => {
                let before: usize = last.iter().map(|exchange| exchange.response.len()).sum();
                let large = &self.servers.large[0].staying;
                script.leaves_after_bytes = Some((before + self.random.usize(..large.response.len())) as u64);
                last.push(large);
            }
        }
        rounds.push(last);
        let count = rounds.len();
        for (number, exchanges) in rounds.into_iter().enumerate() {
            let mut bytes: Vec<u8> =
                exchanges.iter().flat_map(|exchange| exchange.request.iter().copied()).collect();
            if number + 1 == count {
                bytes.append(&mut end);
            }
            let part = if kind.is_in_parts() {
                self.random.usize(1 + bytes.len() / 4..=bytes.len())
            } else {
                bytes.len()
            };
            let responses = exchanges.iter().map(|exchange| Arc::clone(&exchange.response)).collect();
            script.rounds.push(Round::new(bytes, responses).in_parts(part, Duration::ZERO));
        }
        script
    }

    /// Writes a slow client's script: a small file, the large one, or a body.
    pub(super) fn write_slow(&mut self) -> (SocketAddr, Arc<Script>) {
        let from = [Pool::Short, Pool::Large, Pool::Posts][self.random.usize(..3)];
        let Exchange { request, response } = &self.pick(self.pool(from)).staying;
        let round = Round::new(request.as_slice(), vec![Arc::clone(response)]);
        let rounds = vec![round.in_parts(request.len().div_ceil(SLOW_PARTS), SLOW_PAUSE)];
        let reading = Reading::Slowly { bytes: response.len().div_ceil(SLOW_PARTS), every: SLOW_PAUSE };
        let script = Script { name: SLOW, rounds, reading, ending: Ending::Closes, ..Script::new("") };
        (self.address(from), Arc::new(script))
    }

    fn pool(&self, pool: Pool) -> &'a [Pair] {
        match pool {
            Pool::Short => &self.servers.short,
            Pool::Medium => &self.servers.medium,
            Pool::Large => &self.servers.large,
            Pool::Posts => &self.servers.posts,
        }
    }

    fn address(&self, pool: Pool) -> SocketAddr {
        let SoakServers { files, handlers, .. } = self.servers;
        if pool == Pool::Posts { handlers.address() } else { files.address() }
    }

    fn pick<T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.random.usize(..from.len())]
    }
}
