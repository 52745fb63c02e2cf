//! What a connection does, drawn beforehand: rounds of bytes to send with the answers to expect, and an ending.

use super::catalogue::Catalogue;
use super::exchange::{Exchange, Form};
use super::expected::Expected;
use super::kind::Kind;
use crate::harness::random::Random;

/// The most requests of one round; their heads fit into a socket's buffer.
const ROUND_MAX: u64 = 32;
/// Rounds of a connection that is kept long.
const LONG_ROUNDS: usize = 20;
/// The most rounds of one request each.
const SINGLE_ROUNDS_MAX: u64 = 5;
/// A request in pieces has at most so many.
const PIECES_MAX: u64 = 4;

/// Which of the two servers is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// The program, which serves files.
    Program,
    /// The example, which takes bodies.
    Example,
}

/// Bytes to send, and the answers to wait for then.
#[derive(Debug, Default)]
pub(super) struct Round<'a> {
    /// What is sent.
    pub(super) bytes: Vec<u8>,
    /// Where it is cut: each piece is sent by itself.
    pub(super) cuts: Vec<usize>,
    /// The answers to it.
    pub(super) answers: Vec<&'a Expected>,
}

/// How a connection ends, after the last round.
#[derive(Debug)]
pub(super) enum Ending<'a> {
    /// The client closes.
    Closes,
    /// The server ends it after the last answer.
    Ended,
    /// The client ends its side right after the last bytes. The last answer is one of two: the server has seen the end or not.
    HalfClose([&'a Expected; 2]),
    /// The client resets as soon as so many bytes of one more answer have come.
    Resets(Option<&'a Expected>, usize),
}

impl Ending<'_> {
    /// True if the last round has one request more than answers to wait for.
    pub(super) fn asks_one_more(&self) -> bool {
        matches!(self, Self::HalfClose(_) | Self::Resets(Some(_), _))
    }
}

/// A whole connection.
#[derive(Debug)]
pub(super) struct Script<'a> {
    /// Whom it visits.
    pub(super) host: Host,
    /// What is sent.
    pub(super) rounds: Vec<Round<'a>>,
    /// Its end.
    pub(super) ending: Ending<'a>,
}

/// Draws scripts out of a catalogue.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    /// What may be asked for.
    pub(super) catalogue: &'a Catalogue,
    /// What is refused by the program, and by the example.
    pub(super) bad: [&'a [Form]; 2],
    /// Draws.
    pub(super) random: Random,
}

impl<'a> Round<'a> {
    fn ask(&mut self, form: &'a Form) {
        self.bytes.extend_from_slice(&form.request);
        self.answers.push(&form.answer);
    }
}

impl<'a> Writer<'a> {
    /// Writes what a connection of this kind does.
    pub(super) fn write(&mut self, kind: Kind) -> Script<'a> {
        let (host, rounds, ending) = match kind {
            Kind::Pipelined => (Host::Program, vec![self.round()], Ending::Closes),
            Kind::KeptLong => (Host::Program, self.long_rounds(), Ending::Closes),
            Kind::OneByOne => (Host::Program, self.single_rounds(), Ending::Closes),
            Kind::Alone => (Host::Program, vec![self.closing(Round::default())], Ending::Ended),
            Kind::ServerCloses => self.server_closes(),
            Kind::HalfClose => self.half_close(),
            Kind::ResetInAnswer => self.reset_in_answer(),
            Kind::ResetAtOnce => (Host::Program, self.nothing_or_part(), Ending::Resets(None, 0)),
            Kind::NothingSent => (Host::Program, Vec::new(), Ending::Closes),
            Kind::PartOfHead => (Host::Program, vec![self.part_of_head()], Ending::Closes),
            Kind::PartOfBody => (Host::Example, vec![self.part_of_body()], Ending::Closes),
            Kind::Bodies => (Host::Example, self.bodies(), Ending::Closes),
            Kind::Refused => self.refused(),
            Kind::Medium => (Host::Program, vec![self.medium()], Ending::Closes),
            Kind::Large => (Host::Program, vec![self.large()], Ending::Closes),
        };
        Script { host, rounds, ending }
    }

    fn pick<T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.random.below(from.len() as u64) as usize]
    }

    fn short(&mut self) -> &'a Exchange {
        let catalogue = self.catalogue;
        self.pick(&catalogue.short)
    }

    /// One to [`ROUND_MAX`] requests at once.
    fn round(&mut self) -> Round<'a> {
        let count = 1 + self.random.below(ROUND_MAX);
        self.round_of(count)
    }

    fn round_of(&mut self, count: u64) -> Round<'a> {
        let mut round = Round::default();
        (0..count).for_each(|_| round.ask(&self.short().staying));
        round
    }

    fn long_rounds(&mut self) -> Vec<Round<'a>> {
        (0..LONG_ROUNDS).map(|_| self.round_of(ROUND_MAX)).collect()
    }

    fn single_rounds(&mut self) -> Vec<Round<'a>> {
        let count = 1 + self.random.below(SINGLE_ROUNDS_MAX);
        (0..count)
            .map(|_| {
                let round = self.round_of(1);
                self.in_pieces(round)
            })
            .collect()
    }

    /// Now and then a round is cut at random places.
    fn in_pieces(&mut self, mut round: Round<'a>) -> Round<'a> {
        let pieces = self.random.below(PIECES_MAX);
        let length = round.bytes.len() as u64;
        round.cuts = (0..pieces).map(|_| self.random.below(length) as usize).collect();
        round.cuts.sort_unstable();
        round
    }

    /// The round with one more request, which asks for the end.
    fn closing(&mut self, mut round: Round<'a>) -> Round<'a> {
        round.ask(&self.short().closing);
        round
    }

    fn server_closes(&mut self) -> (Host, Vec<Round<'a>>, Ending<'a>) {
        let round = self.round();
        (Host::Program, vec![self.closing(round)], Ending::Ended)
    }

    fn half_close(&mut self) -> (Host, Vec<Round<'a>>, Ending<'a>) {
        let mut round = self.round();
        let last = self.short();
        round.bytes.extend_from_slice(&last.staying.request);
        (Host::Program, vec![round], Ending::HalfClose([&last.staying.answer, &last.closing.answer]))
    }

    fn reset_in_answer(&mut self) -> (Host, Vec<Round<'a>>, Ending<'a>) {
        let large = &self.catalogue.large.staying;
        let mut round = self.round();
        round.bytes.extend_from_slice(&large.request);
        let wanted = self.random.below(large.answer.len() as u64) as usize;
        (Host::Program, vec![round], Ending::Resets(Some(&large.answer), wanted))
    }

    fn nothing_or_part(&mut self) -> Vec<Round<'a>> {
        if self.random.below(2) == 0 { Vec::new() } else { vec![self.part_of_head()] }
    }

    fn part_of_head(&mut self) -> Round<'a> {
        let mut round = self.round();
        let next = &self.short().staying.request;
        let cut = 1 + self.random.below(next.len() as u64 - 2) as usize;
        round.bytes.extend_from_slice(&next[..cut]);
        round
    }

    fn part_of_body(&mut self) -> Round<'a> {
        let catalogue = self.catalogue;
        let next = &self.pick(&catalogue.posts).staying.request;
        let cut = 1 + self.random.below(next.len() as u64 - 2) as usize;
        Round { bytes: next[..cut].to_vec(), ..Round::default() }
    }

    fn bodies(&mut self) -> Vec<Round<'a>> {
        let catalogue = self.catalogue;
        let count = 1 + self.random.below(SINGLE_ROUNDS_MAX);
        let mut rounds = Vec::new();
        for _ in 0..count {
            let mut round = Round::default();
            round.ask(&self.pick(&catalogue.posts).staying);
            rounds.push(self.in_pieces(round));
        }
        rounds
    }

    fn refused(&mut self) -> (Host, Vec<Round<'a>>, Ending<'a>) {
        if self.random.below(2) == 0 {
            let bad = self.bad[1];
            let mut round = Round::default();
            round.ask(self.pick(bad));
            return (Host::Example, vec![round], Ending::Ended);
        }
        let bad = self.bad[0];
        let mut round = self.round();
        round.ask(self.pick(bad));
        (Host::Program, vec![round], Ending::Ended)
    }

    fn medium(&mut self) -> Round<'a> {
        let catalogue = self.catalogue;
        let mut round = Round::default();
        round.ask(&self.pick(&catalogue.medium).staying);
        round
    }

    fn large(&self) -> Round<'a> {
        let mut round = Round::default();
        round.ask(&self.catalogue.large.staying);
        round
    }
}

#[cfg(test)]
mod tests {
    use super::Writer;
    use crate::harness::random::Random;
    use crate::soak::catalogue::Catalogue;
    use crate::soak::exchange::{Exchange, Form};
    use crate::soak::expected::Expected;
    use crate::soak::kind::{KINDS, Kind};

    const HEAD: &str = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 4\r\n\r\n";
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: soak.test\r\n\r\n";

    fn form() -> Form {
        let answer = Expected::new(HEAD, b"body").expect("an answer");
        Form { request: REQUEST.to_vec(), answer }
    }

    fn exchange() -> Exchange {
        Exchange { staying: form(), closing: form() }
    }

    /// As many requests as answers, and one more or a part of one where the ending says so.
    #[test]
    fn every_kind_asks_for_what_it_expects() {
        let [short, medium, posts] = [3, 1, 2].map(|count| (0..count).map(|_| exchange()).collect());
        let catalogue = Catalogue { short, medium, large: exchange(), posts };
        let bad = [form()];
        let mut writer = Writer { catalogue: &catalogue, bad: [&bad, &bad], random: Random::new(1) };
        for (kind, name, _) in KINDS {
            for _ in 0..200 {
                let script = writer.write(kind);
                let bytes: usize = script.rounds.iter().map(|round| round.bytes.len()).sum();
                let answers: usize = script.rounds.iter().map(|round| round.answers.len()).sum();
                let one_more = usize::from(script.ending.asks_one_more());
                assert_eq!(bytes / REQUEST.len(), answers + one_more, "{name}");
                let part = matches!(kind, Kind::PartOfHead | Kind::PartOfBody | Kind::ResetAtOnce);
                assert!(part || bytes.is_multiple_of(REQUEST.len()), "{name}: a part of a request");
                for round in &script.rounds {
                    assert!(round.cuts.is_sorted(), "{name}: cuts out of order");
                    assert!(round.cuts.iter().all(|&cut| cut < round.bytes.len()), "{name}: a cut beyond");
                }
            }
        }
    }
}
