//! One visit of the churn: a connection with ten requests that ends in one of many ways, every answer compared byte for byte.

use std::net::SocketAddr;

use crate::harness::answer::Fault;
use crate::harness::client::{Client, request, request_with};
use crate::harness::random::Random;

/// Requests on one connection.
const REQUESTS: usize = 10;

/// A page whose answer is known, byte for byte apart from the date.
#[derive(Debug)]
pub(super) struct Page {
    target: String,
    body: Vec<u8>,
    /// The head on a connection that stays.
    staying: String,
    /// The head on a connection that ends.
    closing: String,
}

/// What one visit, or many, came to.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    /// Requests sent.
    pub(super) sent: u64,
    /// Answers read whole and found right.
    pub(super) right: u64,
    /// Requests whose answer the client did not want any more.
    pub(super) given_up: u64,
    /// Visits by their ending, in the order of [`ENDINGS`].
    pub(super) endings: [u64; ENDINGS.len()],
    /// What went wrong.
    pub(super) wrong: Vec<String>,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client closes after the last answer.
    ClientCloses,
    /// The requests go one by one; the client closes.
    OneByOne,
    /// The last request says `Connection: close`.
    ServerCloses,
    /// The client shuts its sending side right after the requests and reads all answers.
    HalfClose,
    /// The client resets in the middle of the last answer.
    Reset,
    /// The client closes in the middle of a request head.
    Abandons,
}

/// Every ending with its name in the report; one of the list is drawn for each visit, so a weight is a repetition.
pub(super) const ENDINGS: [(Ending, &str, u64); 6] = [
    (Ending::ClientCloses, "client closes", 3),
    (Ending::OneByOne, "one by one, client closes", 1),
    (Ending::ServerCloses, "Connection: close", 2),
    (Ending::HalfClose, "half-close", 2),
    (Ending::Reset, "reset in the middle of an answer", 1),
    (Ending::Abandons, "closed in the middle of a head", 1),
];

impl Page {
    /// Asks twice and keeps the answer as the one that every later one has to equal, after checking it against the file.
    pub(super) fn learn(address: SocketAddr, target: &str, body: Vec<u8>) -> Result<Self, String> {
        let fetch = |fields: &str| -> Result<(String, Vec<u8>), Fault> {
            let mut client = Client::open(address)?;
            let answer = client.exchange(&request_with("GET", target, fields), false)?;
            if answer.head.status != 200 || answer.head.announces_close() == fields.is_empty() {
                return Err(Fault::Malformed(answer.head.text));
            }
            Ok((without_date(&answer.head.text), answer.body))
        };
        let explain = |fault: Fault| format!("first answer for {target}: {fault}");
        let (staying, first) = fetch("").map_err(explain)?;
        let (closing, second) = fetch("Connection: close\r\n").map_err(explain)?;
        if first != body || second != body {
            return Err(format!("first answer for {target}: not the bytes of the file"));
        }
        Ok(Self { target: target.to_owned(), body, staying, closing })
    }
}

/// The head with the value of `Date` blanked out: the only part that may differ between two answers.
fn without_date(head: &str) -> String {
    let blank = |line: &str| {
        let is_date = line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("date:"));
        if is_date { "date:".to_owned() } else { line.to_owned() }
    };
    head.split("\r\n").map(blank).collect::<Vec<_>>().join("\r\n")
}

impl Tally {
    /// Adds another tally.
    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.right += other.right;
        self.given_up += other.given_up;
        for (mine, theirs) in self.endings.iter_mut().zip(other.endings) {
            *mine += theirs;
        }
        self.wrong.extend(other.wrong);
    }
}

/// Visits the pages of one server.
#[derive(Debug)]
pub(super) struct Visitor<'a> {
    /// Where the server listens.
    pub(super) address: SocketAddr,
    /// Pages for whole answers.
    pub(super) pages: &'a [Page],
    /// A page too large for one piece, for the reset in its middle.
    pub(super) large: &'a Page,
    /// Draws pages and endings.
    pub(super) random: Random,
}

impl Visitor<'_> {
    /// One connection from beginning to end; what happened goes into `tally`.
    pub(super) fn visit(&mut self, tally: &mut Tally) {
        let index = self.draw_ending();
        let (ending, name, _) = ENDINGS[index];
        tally.endings[index] += 1;
        let outcome = match ending {
            Ending::ClientCloses => self.pipelined(tally, false),
            Ending::HalfClose => self.pipelined(tally, true),
            Ending::OneByOne => self.one_by_one(tally),
            Ending::ServerCloses => self.server_closes(tally),
            Ending::Reset => self.reset(tally),
            Ending::Abandons => self.abandon(tally),
        };
        if let Err(fault) = outcome {
            tally.wrong.push(format!("{name}: {fault}"));
        }
    }

    fn draw_ending(&mut self) -> usize {
        let total: u64 = ENDINGS.iter().map(|(_, _, weight)| weight).sum();
        let mut drawn = self.random.below(total);
        let hit = ENDINGS.iter().position(|(_, _, weight)| {
            let inside = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            inside
        });
        hit.unwrap_or(0)
    }

    fn draw_pages(&mut self, count: usize) -> Vec<usize> {
        (0..count).map(|_| self.random.below(self.pages.len() as u64) as usize).collect()
    }

    fn requests(&self, drawn: &[usize]) -> Vec<u8> {
        drawn.iter().flat_map(|&page| request("GET", &self.pages[page].target)).collect()
    }

    fn pipelined(&mut self, tally: &mut Tally, half_close: bool) -> Result<(), Fault> {
        let drawn = self.draw_pages(REQUESTS);
        let mut client = Client::open(self.address)?;
        client.send(&self.requests(&drawn))?;
        tally.sent += REQUESTS as u64;
        if half_close {
            client.finish_sending()?;
        }
        for (number, &page) in drawn.iter().enumerate() {
            let may_close = half_close && number + 1 == drawn.len();
            check(&mut client, &self.pages[page], true, may_close)?;
            tally.right += 1;
        }
        if half_close { client.end() } else { Ok(()) }
    }

    fn one_by_one(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let mut client = Client::open(self.address)?;
        for page in self.draw_pages(REQUESTS) {
            client.send(&self.requests(&[page]))?;
            tally.sent += 1;
            check(&mut client, &self.pages[page], true, false)?;
            tally.right += 1;
        }
        Ok(())
    }

    fn server_closes(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let drawn = self.draw_pages(REQUESTS);
        let (staying, last) = drawn.split_at(REQUESTS - 1);
        let mut bytes = self.requests(staying);
        bytes.extend(request_with("GET", &self.pages[last[0]].target, "Connection: close\r\n"));
        let mut client = Client::open(self.address)?;
        client.send(&bytes)?;
        tally.sent += REQUESTS as u64;
        for &page in staying {
            check(&mut client, &self.pages[page], true, false)?;
            tally.right += 1;
        }
        check(&mut client, &self.pages[last[0]], false, true)?;
        tally.right += 1;
        client.end()
    }

    fn reset(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let drawn = self.draw_pages(REQUESTS - 1);
        let mut bytes = self.requests(&drawn);
        bytes.extend(request("GET", &self.large.target));
        let mut client = Client::open(self.address)?;
        client.send(&bytes)?;
        tally.sent += REQUESTS as u64;
        let read = self.random.below(REQUESTS as u64) as usize;
        for &page in &drawn[..read] {
            check(&mut client, &self.pages[page], true, false)?;
            tally.right += 1;
        }
        tally.given_up += (REQUESTS - read) as u64;
        if read == drawn.len() {
            self.read_part_of_large(&mut client)?;
        }
        client.reset()
    }

    /// The head and some of the body, compared with the file.
    fn read_part_of_large(&mut self, client: &mut Client) -> Result<(), Fault> {
        let head = client.head()?;
        if without_date(&head.text) != self.large.staying {
            return Err(Fault::Malformed(head.text));
        }
        let wanted = 1 + self.random.below(self.large.body.len() as u64 / 2);
        let mut read = 0;
        let mut same = true;
        while read < wanted {
            let from = read as usize;
            let compare = &mut |bytes: &[u8]| same &= self.large.body[from..].starts_with(bytes);
            read += client.some(wanted - read, compare)?;
        }
        if same { Ok(()) } else { Err(Fault::Malformed("other bytes in the large body".to_owned())) }
    }

    /// Some whole requests with their answers, then a part of a head and the end.
    fn abandon(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let drawn = self.draw_pages(REQUESTS - 1);
        let mut bytes = self.requests(&drawn);
        let last = request("GET", "/never-finished");
        let cut = 1 + self.random.below(last.len() as u64 - 2) as usize;
        bytes.extend(&last[..cut]);
        let mut client = Client::open(self.address)?;
        client.send(&bytes)?;
        tally.sent += drawn.len() as u64;
        for &page in &drawn {
            check(&mut client, &self.pages[page], true, false)?;
            tally.right += 1;
        }
        Ok(())
    }
}

/// Reads one answer and compares it with the page's.
fn check(client: &mut Client, page: &Page, may_stay: bool, may_close: bool) -> Result<(), Fault> {
    let answer = client.answer(false)?;
    let head = without_date(&answer.head.text);
    let head_ok = (may_stay && head == page.staying) || (may_close && head == page.closing);
    if !head_ok {
        return Err(Fault::Malformed(format!("unexpected head for {}: {:?}", page.target, answer.head.text)));
    }
    if answer.body != page.body {
        return Err(Fault::Malformed(format!("other bytes in the body of {}", page.target)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::without_date;

    #[test]
    fn only_the_date_is_blanked() {
        let head = "HTTP/1.1 200 OK\r\nDATE: Thu, 01 Jan 1970 00:00:00 GMT\r\nETag: \"x\"\r\n\r\n";
        assert_eq!(without_date(head), "HTTP/1.1 200 OK\r\ndate:\r\nETag: \"x\"\r\n\r\n");
    }
}
