//! One connection that follows its script, and the counts of many.

use std::collections::VecDeque;
use std::io::Read;
use std::thread;
use std::time::Duration;

use testkit::{Client, Error};

use super::exchanges::{Exchange, Host, Site};
use super::script::{Ending, KINDS, Kind, Round, Script};
use crate::expected::Expected;

/// Bytes of one read.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// A slow client sends its request in so many pieces, and reads the response in as many.
const SLOW_PIECES: usize = 40;
/// Its pause after each: the request takes 2 s, a fifth of what a head may take.
const SLOW_PAUSE: Duration = Duration::from_millis(50);

/// Counts of connections.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests sent whole.
    pub(super) sent: u64,
    /// Responses that arrived whole and right.
    pub(super) right: u64,
    /// Requests whose response the client didn't wait for.
    pub(super) abandoned: u64,
    pub(super) connections: u64,
    /// Bytes compared.
    pub(super) bytes: u64,
    /// Connections by their place in [`KINDS`].
    pub(super) kinds: [u64; KINDS.len()],
    pub(super) errors: Vec<String>,
}

impl Tally {
    pub(super) fn add(mut self, other: Self) -> Self {
        self.sent += other.sent;
        self.right += other.right;
        self.abandoned += other.abandoned;
        self.connections += other.connections;
        self.bytes += other.bytes;
        self.kinds.iter_mut().zip(other.kinds).for_each(|(mine, theirs)| *mine += theirs);
        self.errors.extend(other.errors);
        self
    }

    /// Connections that sent a part of a request at their end.
    pub(super) fn parts(&self) -> u64 {
        self.of(&[Kind::PartOfHead, Kind::PartOfBody, Kind::ResetAtOnce])
    }

    /// Connections that may have ended before the server accepted them.
    pub(super) fn reset_at_once(&self) -> u64 {
        self.of(&[Kind::ResetAtOnce])
    }

    fn of(&self, kinds: &[Kind]) -> u64 {
        let counts = KINDS.iter().zip(self.kinds).filter(|((kind, _, _), _)| kinds.contains(kind));
        counts.map(|(_, count)| count).sum()
    }

    /// Makes a connection by a script.
    pub(super) fn visit(&mut self, site: &Site, script: Script<'_>, buffer: &mut [u8]) {
        let kind = script.kind;
        let result = Client::connect(site.address(script.host)).and_then(|client| {
            self.connections += 1;
            self.kinds[kind] += 1;
            Visit { client, awaited: Awaited::default(), buffer, tally: self }.run(script)
        });
        self.errors.extend(result.err().map(|error| format!("{}: {error}", KINDS[kind].1)));
    }

    /// Sends one request and reads its response in small pieces.
    pub(super) fn visit_slowly(
        &mut self,
        site: &Site,
        (host, exchange): (Host, &Exchange),
        buffer: &mut [u8],
    ) {
        let result = Client::connect(site.address(host)).and_then(|client| {
            self.connections += 1;
            self.sent += 1;
            let most = exchange.response.len().div_ceil(SLOW_PIECES).min(buffer.len());
            let buffer = &mut buffer[..most];
            let mut visit = Visit { client, awaited: Awaited::default(), buffer, tally: self };
            visit.awaited.responses.push_back(&exchange.response);
            for piece in exchange.request.chunks(exchange.request.len().div_ceil(SLOW_PIECES)) {
                visit.client.send(piece)?;
                thread::sleep(SLOW_PAUSE);
            }
            while visit.awaited.count() > 0 {
                visit.read()?;
                thread::sleep(SLOW_PAUSE);
            }
            Ok(())
        });
        self.errors.extend(result.err().map(|error| format!("slow: {error}")));
    }
}

/// The responses that are still to arrive on a connection.
#[derive(Debug, Default)]
struct Awaited<'a> {
    responses: VecDeque<&'a Expected>,
    /// Bytes of the first one that have arrived.
    arrived: usize,
}

impl Awaited<'_> {
    fn count(&self) -> usize {
        self.responses.len()
    }

    /// Bytes that are still to arrive.
    fn missing(&self) -> usize {
        self.responses.iter().map(|response| response.len()).sum::<usize>() - self.arrived
    }

    /// Compares received bytes. Returns the number of responses that are complete with them.
    fn take(&mut self, mut received: &[u8]) -> Result<u64, Error> {
        let mut complete = 0;
        while !received.is_empty() {
            let Some(first) = self.responses.front() else {
                return wrong("bytes after the last response", received);
            };
            let (now, later) = received.split_at(received.len().min(first.len() - self.arrived));
            if !first.matches(self.arrived, now) {
                return wrong("not the expected response", received);
            }
            self.arrived += now.len();
            received = later;
            if self.arrived == first.len() {
                self.responses.pop_front();
                self.arrived = 0;
                complete += 1;
            }
        }
        Ok(complete)
    }
}

fn wrong<T>(what: &str, found: &[u8]) -> Result<T, Error> {
    let shown = String::from_utf8_lossy(&found[..found.len().min(120)]);
    Err(Error::Malformed(format!("{what}: {shown:?}")))
}

struct Visit<'a, 'b> {
    client: Client,
    awaited: Awaited<'a>,
    buffer: &'b mut [u8],
    tally: &'b mut Tally,
}

impl<'a> Visit<'a, '_> {
    fn run(mut self, script: Script<'a>) -> Result<(), Error> {
        let Script { rounds, ending, .. } = script;
        let has_one_more = matches!(ending, Ending::HalfClose(_) | Ending::ResetIn(..));
        let count = rounds.len();
        for (number, round) in rounds.into_iter().enumerate() {
            self.send(round)?;
            // The last responses are read with the one that follows them.
            while self.awaited.count() > 0 && !(has_one_more && number + 1 == count) {
                self.read()?;
            }
        }
        self.tally.sent += u64::from(has_one_more);
        match ending {
            Ending::ClientCloses => Ok(()),
            Ending::ServerCloses => self.client.end(),
            Ending::Reset => self.client.reset(),
            Ending::HalfClose(last) => {
                self.client.finish_sending()?;
                let rest = self.read_to_end()?;
                if last.iter().any(|response| response.is(&rest)) {
                    self.tally.right += 1;
                    return Ok(());
                }
                wrong("not the expected last response", &rest)
            }
            Ending::ResetIn(last, bytes) => {
                self.awaited.responses.push_back(last);
                while self.awaited.count() > 1 || (self.awaited.count() == 1 && self.awaited.arrived < bytes)
                {
                    self.read()?;
                }
                // Nearly all of the last response may have become all of it.
                self.tally.abandoned += self.awaited.count() as u64;
                self.client.reset()
            }
        }
    }

    fn send(&mut self, round: Round<'a>) -> Result<(), Error> {
        let mut from = 0;
        for &cut in round.cuts.iter().chain([&round.bytes.len()]) {
            self.client.send(&round.bytes[from..cut])?;
            from = cut;
        }
        self.tally.sent += round.responses.len() as u64;
        self.awaited.responses.extend(round.responses);
        Ok(())
    }

    fn read(&mut self) -> Result<(), Error> {
        let length = self.receive()?;
        if length == 0 {
            return Err(if self.awaited.arrived == 0 { Error::Closed } else { Error::Truncated });
        }
        self.tally.right += self.awaited.take(&self.buffer[..length])?;
        Ok(())
    }

    /// Reads all awaited responses. Returns the bytes after them, up to the end of the connection.
    fn read_to_end(&mut self) -> Result<Vec<u8>, Error> {
        let mut rest = Vec::new();
        loop {
            let length = self.receive()?;
            if length == 0 {
                return Ok(rest);
            }
            let (awaited, more) = self.buffer[..length].split_at(self.awaited.missing().min(length));
            self.tally.right += self.awaited.take(awaited)?;
            rest.extend_from_slice(more);
            if rest.len() > READ_BYTES {
                return wrong("an endless last response", &rest);
            }
        }
    }

    fn receive(&mut self) -> Result<usize, Error> {
        let length = self.client.stream().read(self.buffer)?;
        self.tally.bytes += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::Awaited;
    use crate::expected::tests::{HEAD, expected};

    #[test]
    fn compares_responses_in_any_pieces_and_in_order() {
        let (first, second) = (expected("body"), expected("size"));
        let wire = format!("{HEAD}body{HEAD}size").into_bytes();
        for piece in 1..wire.len() {
            let mut awaited = Awaited { responses: [&first, &second].into(), arrived: 0 };
            let complete: u64 = wire.chunks(piece).map(|part| awaited.take(part).unwrap()).sum();
            assert_eq!((complete, awaited.count()), (2, 0), "pieces of {piece}");
            assert!(awaited.take(b"H").is_err(), "one byte too many");
            let mut swapped = Awaited { responses: [&second, &first].into(), arrived: 0 };
            assert!(wire.chunks(piece).any(|part| swapped.take(part).is_err()), "another order");
        }
    }
}
