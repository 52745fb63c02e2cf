//! One connection that does what its script says, step by step, so that a thread can have many of them side by side.

use std::io::Read;
use std::net::SocketAddr;

use super::expected::{Awaited, wrong};
use super::script::{Ending, Round, Script};
use super::tally::Tally;
use crate::harness::answer::Fault;
use crate::harness::client::Client;

/// How many bytes one read asks for.
const READ_SIZE: usize = 256 * 1024;

/// A connection and what it still expects.
#[derive(Debug)]
pub(super) struct Visit<'a> {
    client: Client,
    script: Script<'a>,
    awaited: Awaited<'a>,
}

/// The buffer that the visits of a thread read into, one after the other.
#[derive(Debug)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    /// A buffer.
    pub(super) fn new() -> Self {
        Self(vec![0; READ_SIZE])
    }
}

impl<'a> Visit<'a> {
    /// Connects.
    pub(super) fn open(address: SocketAddr, script: Script<'a>) -> Result<Self, Fault> {
        Ok(Self { client: Client::open(address)?, script, awaited: Awaited::default() })
    }

    /// How many rounds it has.
    pub(super) fn rounds(&self) -> usize {
        self.script.rounds.len()
    }

    /// Sends round number `number`, and ends the sending side after the last one where the script says so.
    pub(super) fn send(&mut self, number: usize, tally: &mut Tally) -> Result<(), Fault> {
        let Round { bytes, cuts, answers } = &self.script.rounds[number];
        let mut from = 0;
        for &cut in cuts {
            self.client.send(&bytes[from..cut])?;
            from = cut;
        }
        self.client.send(&bytes[from..])?;
        answers.iter().for_each(|answer| self.awaited.push(answer));
        tally.sent += answers.len() as u64;
        if number + 1 == self.script.rounds.len() {
            tally.sent += u64::from(self.script.ending.asks_one_more());
            if matches!(self.script.ending, Ending::HalfClose(_)) {
                self.client.finish_sending()?;
            }
        }
        Ok(())
    }

    /// Reads until all answers of the rounds sent so far have come.
    pub(super) fn read(&mut self, buffer: &mut Buffer, tally: &mut Tally) -> Result<(), Fault> {
        if self.script.ending.asks_one_more() {
            // They are read with that last one.
            return Ok(());
        }
        while !self.awaited.is_over() {
            self.read_some(buffer, tally)?;
        }
        Ok(())
    }

    /// Does what the script says at the end.
    pub(super) fn end(mut self, buffer: &mut Buffer, tally: &mut Tally) -> Result<(), Fault> {
        match self.script.ending {
            Ending::Closes => Ok(()),
            Ending::Ended => self.client.end(),
            Ending::HalfClose(last) => {
                let rest = self.read_to_end(buffer, tally)?;
                let right = last.iter().any(|answer| answer.is(&rest));
                tally.right += u64::from(right);
                if right { Ok(()) } else { Err(wrong("another last answer than the one expected", &rest)) }
            }
            Ending::Resets(answer, wanted) => {
                if let Some(answer) = answer {
                    self.awaited.push(answer);
                    tally.given_up += 1;
                    self.read_part(wanted, buffer, tally)?;
                }
                self.client.reset()
            }
        }
    }

    /// All answers of the rounds, and what comes after them until the end of the connection.
    fn read_to_end(&mut self, buffer: &mut Buffer, tally: &mut Tally) -> Result<Vec<u8>, Fault> {
        let mut rest = Vec::new();
        loop {
            let received = self.receive(buffer, tally)?;
            if received.is_empty() {
                return Ok(rest);
            }
            let (mine, more) = received.split_at(self.awaited.missing().min(received.len()));
            tally.right += self.awaited.take(mine)?;
            rest.extend_from_slice(more);
            if rest.len() > READ_SIZE {
                return Err(wrong("an endless last answer", &rest));
            }
        }
    }

    /// All answers of the rounds, and at least `wanted` bytes of the one after them.
    fn read_part(&mut self, wanted: usize, buffer: &mut Buffer, tally: &mut Tally) -> Result<(), Fault> {
        while self.awaited.count() > 1 || (self.awaited.count() == 1 && self.awaited.come() < wanted) {
            self.read_some(buffer, tally)?;
        }
        // Who wanted nearly all of the last answer may have got all of it.
        let whole = u64::from(self.awaited.is_over());
        tally.given_up -= whole;
        Ok(())
    }

    fn read_some(&mut self, buffer: &mut Buffer, tally: &mut Tally) -> Result<(), Fault> {
        let received = self.receive(buffer, tally)?;
        if received.is_empty() {
            return Err(if self.awaited.come() == 0 { Fault::Closed } else { Fault::Truncated });
        }
        tally.right += self.awaited.take(received)?;
        Ok(())
    }

    fn receive<'b>(&self, buffer: &'b mut Buffer, tally: &mut Tally) -> Result<&'b [u8], Fault> {
        let length = self.client.stream().read(&mut buffer.0)?;
        tally.bytes += length as u64;
        Ok(&buffer.0[..length])
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};

    use super::{Buffer, Visit};
    use crate::harness::answer::Fault;
    use crate::soak::expected::Expected;
    use crate::soak::script::{Ending, Host, Round, Script};
    use crate::soak::tally::Tally;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 4\r\n\r\n";

    fn answer(body: &str) -> Expected {
        Expected::new(HEAD, body.as_bytes()).expect("an answer")
    }

    /// A server for one connection and one request, which answers what it is told and closes.
    fn server(says: String) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            let mut request = [0; 4];
            stream.read_exact(&mut request)?;
            stream.write_all(says.as_bytes())
        });
        address
    }

    /// Sends one request, expects `answers`, and ends so.
    fn visit(says: &str, answers: Vec<&Expected>, ending: Ending<'_>) -> (Result<(), Fault>, Tally) {
        let round = Round { bytes: b"GET!".to_vec(), cuts: vec![1, 3], answers };
        let script = Script { host: Host::Program, rounds: vec![round], ending };
        let mut tally = Tally::default();
        let outcome = go_through(server(says.to_owned()), script, &mut tally);
        (outcome, tally)
    }

    fn go_through(address: SocketAddr, script: Script<'_>, tally: &mut Tally) -> Result<(), Fault> {
        let mut buffer = Buffer::new();
        let mut visit = Visit::open(address, script)?;
        visit.send(0, tally)?;
        visit.read(&mut buffer, tally)?;
        visit.end(&mut buffer, tally)
    }

    #[test]
    fn only_the_right_bytes_and_the_right_end_are_right() {
        let expected = answer("body");
        let good = format!("{HEAD}body");
        let (outcome, tally) = visit(&good, vec![&expected], Ending::Ended);
        assert_eq!((outcome, tally.sent, tally.right), (Ok(()), 1, 1));
        for bad in
            [format!("{HEAD}bodY"), format!("{good}x"), good[..good.len() - 1].to_owned(), String::new()]
        {
            let (outcome, _) = visit(&bad, vec![&expected], Ending::Ended);
            assert!(outcome.is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_half_closed_one_gets_all_answers_and_one_of_two_last_ones() {
        let [first, staying, closing] = [answer("body"), answer("stay"), answer("shut")];
        for (last, right) in [("stay", true), ("shut", true), ("othr", false), ("", false)] {
            let says =
                if last.is_empty() { format!("{HEAD}body") } else { format!("{HEAD}body{HEAD}{last}") };
            let (outcome, tally) = visit(&says, vec![&first], Ending::HalfClose([&staying, &closing]));
            assert_eq!((outcome.is_ok(), tally.sent), (right, 2), "{last}");
            assert_eq!(tally.right, 1 + u64::from(right), "{last}");
        }
    }

    #[test]
    fn who_resets_has_compared_what_came_until_then() {
        let (first, large) = (answer("body"), answer("more"));
        let wanted = large.len() / 2;
        let (outcome, tally) =
            visit(&format!("{HEAD}body{HEAD}"), vec![&first], Ending::Resets(Some(&large), wanted));
        assert_eq!((outcome, tally.right, tally.given_up), (Ok(()), 1, 1));
        let (outcome, _) =
            visit(&format!("{HEAD}bodyHTTP/1.1 404"), vec![&first], Ending::Resets(Some(&large), wanted));
        assert!(outcome.is_err());
    }
}
