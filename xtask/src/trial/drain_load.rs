//! The clients of the drain: keep-alive connections that ask again and again until the server says that it ends.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::harness::answer::Fault;
use crate::harness::client::{Client, request};

/// What the good route answers.
pub(super) const GOOD_BODY: &[u8] = b"Hello, world\n";

/// What the trial tells its clients.
#[derive(Debug, Default)]
pub(super) struct Moment {
    /// When the signal was about to be sent: whatever was written before has to be answered.
    pub(super) signalled: OnceLock<Instant>,
    /// Set with it: no new requests.
    pub(super) stop: AtomicBool,
}

impl Moment {
    /// Notes that the signal is about to be sent.
    pub(super) fn strike(&self) {
        self.signalled.get_or_init(Instant::now);
        self.stop.store(true, Ordering::Release);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// True if a request written at that time has no claim to an answer.
    fn is_too_late(&self, written: Instant) -> bool {
        self.signalled.get().is_some_and(|signalled| written >= *signalled)
    }
}

/// What became of some connections.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests with a right to an answer.
    pub(super) due: u64,
    /// Those of them that got the right one, whole.
    pub(super) right: u64,
    /// Connections whose last answer said `Connection: close`, and that ended right after it.
    pub(super) announced: u64,
    /// Connections that ended while nothing was outstanding.
    pub(super) idle: u64,
    /// Connections that ended under a request written after the signal.
    pub(super) too_late: u64,
    /// What went wrong.
    pub(super) wrong: Vec<String>,
}

impl Tally {
    /// Adds another tally.
    pub(super) fn add(&mut self, other: Self) {
        self.due += other.due;
        self.right += other.right;
        self.announced += other.announced;
        self.idle += other.idle;
        self.too_late += other.too_late;
        self.wrong.extend(other.wrong);
    }

    /// All connections that ended as they may.
    pub(super) fn ended_well(&self) -> u64 {
        self.announced + self.idle + self.too_late
    }
}

/// Asks on `count` connections at once, round after round, until the moment has come and every connection has ended.
pub(super) fn load(address: SocketAddr, count: usize, moment: &Moment) -> Tally {
    let mut tally = Tally::default();
    let mut open = Vec::new();
    for _ in 0..count {
        match Client::open(address) {
            Ok(client) => open.push(client),
            Err(fault) => tally.wrong.push(format!("connect: {fault}")),
        }
    }
    let bytes = request("GET", "/");
    while !open.is_empty() && !moment.stopped() {
        let sent = send_round(open, &bytes, moment, &mut tally);
        open = answer_round(sent, moment, &mut tally);
    }
    for mut client in open {
        match client.end() {
            Ok(()) => tally.idle += 1,
            Err(fault) => tally.wrong.push(format!("idle connection: {fault}")),
        }
    }
    tally
}

fn send_round(open: Vec<Client>, bytes: &[u8], moment: &Moment, tally: &mut Tally) -> Vec<(Client, Instant)> {
    let mut sent = Vec::with_capacity(open.len());
    for mut client in open {
        match client.send(bytes) {
            Ok(()) => sent.push((client, Instant::now())),
            Err(_) if moment.stopped() => tally.too_late += 1,
            Err(fault) => tally.wrong.push(format!("sending before the signal: {fault}")),
        }
    }
    sent
}

fn answer_round(sent: Vec<(Client, Instant)>, moment: &Moment, tally: &mut Tally) -> Vec<Client> {
    let mut open = Vec::with_capacity(sent.len());
    for (mut client, written) in sent {
        let outcome = one_answer(&mut client);
        let too_late = moment.is_too_late(written);
        tally.due += u64::from(!too_late);
        match outcome {
            Ok(closes) => {
                tally.right += u64::from(!too_late);
                if closes { tally.announced += 1 } else { open.push(client) }
            }
            Err(_) if too_late => tally.too_late += 1,
            Err(fault) => tally.wrong.push(format!("request written before the signal: {fault}")),
        }
    }
    open
}

/// Reads one good answer; true if it announced the end of the connection and the end came.
pub(super) fn one_answer(client: &mut Client) -> Result<bool, Fault> {
    one_answer_of(client, GOOD_BODY)
}

/// Reads one answer with this body; true if it announced the end of the connection and the end came.
pub(super) fn one_answer_of(client: &mut Client, body: &[u8]) -> Result<bool, Fault> {
    let answer = client.answer(false)?;
    if answer.head.status != 200 || answer.body != body {
        let length = answer.body.len();
        return Err(Fault::Malformed(format!("status {} and {length} body bytes", answer.head.status)));
    }
    let closes = answer.head.announces_close();
    if closes {
        client.end()?;
    }
    Ok(closes)
}
