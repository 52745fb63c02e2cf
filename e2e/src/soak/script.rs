//! The kinds of connections, and what each sends and expects.

use testkit::random::Rng;

use super::exchanges::{Exchange, Host, Site};
use crate::expected::Expected;

/// Requests of one round at most; their heads fit into a socket's buffer.
const ROUND_MAX: usize = 32;
/// Rounds of a connection that is kept long.
const LONG_ROUNDS: usize = 20;
const SINGLE_ROUNDS_MAX: usize = 5;
/// Cuts of one round at most.
const CUTS_MAX: usize = 3;

/// A kind of connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pipelined,
    OneByOne,
    KeptLong,
    Single,
    ServerCloses,
    HalfClose,
    ResetInResponse,
    ResetAtOnce,
    NothingSent,
    PartOfHead,
    PartOfBody,
    Bodies,
    Refused,
    Medium,
    Large,
}

/// Every kind with its name in the report and its share of the connections.
pub(super) const KINDS: [(Kind, &str, u64); 15] = [
    (Kind::Pipelined, "pipelined, client closes", 180),
    (Kind::OneByOne, "one by one, client closes", 80),
    (Kind::KeptLong, "kept for 640 requests", 1),
    (Kind::Single, "one request with Connection: close", 200),
    (Kind::ServerCloses, "pipelined, the last with Connection: close", 80),
    (Kind::HalfClose, "pipelined, client half-closes", 80),
    (Kind::ResetInResponse, "reset in a large response", 10),
    (Kind::ResetAtOnce, "reset before a whole head", 50),
    (Kind::NothingSent, "nothing sent", 30),
    (Kind::PartOfHead, "closed in a head", 50),
    (Kind::PartOfBody, "closed in a body", 30),
    (Kind::Bodies, "requests with bodies, in pieces", 120),
    (Kind::Refused, "refused", 80),
    (Kind::Medium, "a file of 100 KB or 1 MB", 8),
    (Kind::Large, "a file of 4 MiB", 2),
];

/// Bytes to send, cut into pieces, and the responses to read then.
#[derive(Debug, Default)]
pub(super) struct Round<'a> {
    pub(super) bytes: Vec<u8>,
    pub(super) cuts: Vec<usize>,
    pub(super) responses: Vec<&'a Expected>,
}

/// The end of a connection, after the last round.
#[derive(Debug)]
pub(super) enum Ending<'a> {
    ClientCloses,
    ServerCloses,
    /// The client shuts down its sending side. The last response is one of two: the server has seen the end or not.
    HalfClose([&'a Expected; 2]),
    /// The client resets.
    Reset,
    /// The client resets after so many bytes of one more response.
    ResetIn(&'a Expected, usize),
}

/// A whole connection.
#[derive(Debug)]
pub(super) struct Script<'a> {
    pub(super) kind: usize,
    pub(super) host: Host,
    pub(super) rounds: Vec<Round<'a>>,
    pub(super) ending: Ending<'a>,
}

/// Draws scripts.
pub(super) struct Writer<'a> {
    pub(super) site: &'a Site,
    pub(super) random: Rng,
}

impl<'a> Round<'a> {
    fn of(exchange: &'a Exchange) -> Self {
        let mut round = Self::default();
        round.add(exchange);
        round
    }

    fn add(&mut self, exchange: &'a Exchange) {
        self.bytes.extend_from_slice(&exchange.request);
        self.responses.push(&exchange.response);
    }
}

impl<'a> Writer<'a> {
    /// Draws a kind, and writes its script.
    pub(super) fn write(&mut self) -> Script<'a> {
        let shares: u64 = KINDS.iter().map(|(_, _, share)| share).sum();
        let mut drawn = self.random.u64(..shares);
        let kind = KINDS.iter().position(|(_, _, share)| {
            let hit = drawn < *share;
            drawn = drawn.saturating_sub(*share);
            hit
        });
        let kind = kind.unwrap_or(0);
        let (host, rounds, ending) = self.of_kind(KINDS[kind].0);
        Script { kind, host, rounds, ending }
    }

    fn of_kind(&mut self, kind: Kind) -> (Host, Vec<Round<'a>>, Ending<'a>) {
        let site = self.site;
        let round_max = self.random.usize(1..=ROUND_MAX);
        let single_rounds = self.random.usize(1..=SINGLE_ROUNDS_MAX);
        let single = Round::of;
        match kind {
            Kind::Pipelined => (Host::Files, vec![self.round(round_max)], Ending::ClientCloses),
            Kind::KeptLong => {
                (Host::Files, (0..LONG_ROUNDS).map(|_| self.round(ROUND_MAX)).collect(), Ending::ClientCloses)
            }
            Kind::OneByOne => {
                let rounds = (0..single_rounds).map(|_| {
                    let round = self.round(1);
                    self.cut(round)
                });
                (Host::Files, rounds.collect(), Ending::ClientCloses)
            }
            Kind::Bodies => {
                let rounds = (0..single_rounds).map(|_| {
                    let round = single(&self.pick(&site.posts).staying);
                    self.cut(round)
                });
                (Host::Handlers, rounds.collect(), Ending::ClientCloses)
            }
            Kind::Single => {
                (Host::Files, vec![single(&self.pick(&site.short).closing)], Ending::ServerCloses)
            }
            Kind::ServerCloses => {
                let mut round = self.round(round_max);
                round.add(&self.pick(&site.short).closing);
                (Host::Files, vec![round], Ending::ServerCloses)
            }
            Kind::HalfClose => {
                let (mut round, last) = (self.round(round_max), self.pick(&site.short));
                round.bytes.extend_from_slice(&last.staying.request);
                (
                    Host::Files,
                    vec![round],
                    Ending::HalfClose([&last.staying.response, &last.closing.response]),
                )
            }
            Kind::ResetInResponse => {
                let (mut round, large) = (self.round(round_max), &site.large.staying);
                round.bytes.extend_from_slice(&large.request);
                let wanted = self.random.usize(..large.response.len());
                (Host::Files, vec![round], Ending::ResetIn(&large.response, wanted))
            }
            Kind::ResetAtOnce if self.random.bool() => (Host::Files, Vec::new(), Ending::Reset),
            Kind::ResetAtOnce => (Host::Files, vec![self.part_of_head(round_max)], Ending::Reset),
            Kind::NothingSent => (Host::Files, Vec::new(), Ending::ClientCloses),
            Kind::PartOfHead => (Host::Files, vec![self.part_of_head(round_max)], Ending::ClientCloses),
            Kind::PartOfBody => {
                let request = &self.pick(&site.posts).staying.request;
                let bytes = request[..self.random.usize(1..request.len() - 1)].to_vec();
                (Host::Handlers, vec![Round { bytes, ..Round::default() }], Ending::ClientCloses)
            }
            Kind::Refused if self.random.bool() => {
                (Host::Handlers, vec![single(self.pick(&site.refused[1]))], Ending::ServerCloses)
            }
            Kind::Refused => {
                let mut round = self.round(round_max);
                round.add(self.pick(&site.refused[0]));
                (Host::Files, vec![round], Ending::ServerCloses)
            }
            Kind::Medium => {
                (Host::Files, vec![single(&self.pick(&site.medium).staying)], Ending::ClientCloses)
            }
            Kind::Large => (Host::Files, vec![single(&site.large.staying)], Ending::ClientCloses),
        }
    }

    /// Draws a request for a slow client: a small file, the large one, or a body.
    pub(super) fn any_exchange(&mut self) -> (Host, &'a Exchange) {
        let site = self.site;
        match self.random.u8(..3) {
            0 => (Host::Files, &self.pick(&site.short).staying),
            1 => (Host::Files, &site.large.staying),
            _ => (Host::Handlers, &self.pick(&site.posts).staying),
        }
    }

    fn pick<T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.random.usize(..from.len())]
    }

    fn round(&mut self, requests: usize) -> Round<'a> {
        let mut round = Round::default();
        (0..requests).for_each(|_| round.add(&self.pick(&self.site.short).staying));
        round
    }

    fn part_of_head(&mut self, requests: usize) -> Round<'a> {
        let (mut round, next) = (self.round(requests), &self.pick(&self.site.short).staying.request);
        round.bytes.extend_from_slice(&next[..self.random.usize(1..next.len() - 1)]);
        round
    }

    /// Cuts a round at random places, sometimes none.
    fn cut(&mut self, mut round: Round<'a>) -> Round<'a> {
        let length = round.bytes.len();
        round.cuts = (0..self.random.usize(..=CUTS_MAX)).map(|_| self.random.usize(..length)).collect();
        round.cuts.sort_unstable();
        round
    }
}
