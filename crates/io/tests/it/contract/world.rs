//! A harness with a log of all events. Every event passes through [`World::step`], which checks the
//! invariants.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use shearwater_io::limits::RECV_AFTER_PAUSE_MAX;
use shearwater_io::{
    AcceptError, CloseKind, Driver, Event, FileSlice, Item, ListenerId, Output, ReadEnd, SendError, Shared,
    SharedFile, Token,
};

use testkit::random;

use super::{Harness, PeerId, PeerState, Setup};

/// Maximum turns of a test's wait.
const TURNS_MAX: usize = 200_000;
/// Maximum events of a turn; more count as endless.
const EVENTS_PER_TURN_MAX: usize = 100_000;

/// An event without its contents, which are in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    Accepted(Token),
    AcceptFailed(AcceptError),
    ListenerFailed(ListenerId, i32),
    AcceptStopped,
    Received(Token, usize),
    FinReceived(Token),
    ReadClosed(Token, Ended),
    Sent(Token, SentAs),
    Closed(Token),
    Woken,
}

/// The end of receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Eof,
    Broken,
}

/// The result of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentAs {
    Whole,
    Broken,
    FileShort,
    FileChanged,
    FileUnreadable,
    Cancelled,
}

/// The log of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLog {
    pub listener: ListenerId,
    pub received: Vec<u8>,
    pub fin_received: bool,
    pub ended: Option<Ended>,
    pub sent: Vec<SentAs>,
    /// The output returned last.
    pub output: Output,
    pub closed: bool,
    in_flight: Option<Contents>,
    closing: bool,
    paused: bool,
    after_pause: usize,
}

/// Contents of an output, to compare at its return.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    bytes: Vec<u8>,
    items: Vec<(usize, u64)>,
}

impl Contents {
    fn of(output: &Output) -> Self {
        let items = output.items().iter().map(|(at, item)| (*at, item.len())).collect();
        Self { bytes: output.bytes().to_vec(), items }
    }
}

/// A harness and its log.
pub(crate) struct World<H: Harness> {
    pub harness: H,
    pub accepted: Vec<Token>,
    pub notes: Vec<Note>,
    pages: HashMap<Token, ConnectionLog>,
    setup: Setup,
}

impl<H: Harness> World<H> {
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    pub(crate) fn with(setup: Setup) -> Self {
        let harness = H::new(setup);
        Self { harness, accepted: Vec::new(), notes: Vec::new(), pages: HashMap::new(), setup }
    }

    /// Returns a world with one accepted connection.
    pub(crate) fn connected() -> (Self, PeerId, Token) {
        let mut world = Self::new();
        let (peer, token) = world.connect();
        (world, peer, token)
    }

    pub(crate) fn driver(&mut self) -> &mut H::Driver {
        self.harness.driver()
    }

    pub(crate) fn page(&self, token: Token) -> &ConnectionLog {
        &self.pages[&token]
    }

    /// Connects a peer to the first listener and takes turns until it is accepted.
    pub(crate) fn connect(&mut self) -> (PeerId, Token) {
        let before = self.accepted.len();
        let peer = self.harness.connect(0);
        self.until("the connection is accepted", |world| world.accepted.len() > before);
        (peer, self.accepted[before])
    }

    /// Returns the turn's next event, after logging it.
    pub(crate) fn step(&mut self) -> Option<Note> {
        let event = self.driver().next()?;
        let note = self.write_down(event);
        self.notes.push(note);
        Some(note)
    }

    fn write_down(&mut self, event: Event) -> Note {
        match event {
            Event::Accepted { token, listener } => self.note_accepted(token, listener),
            Event::AcceptFailed { error } => Note::AcceptFailed(error),
            Event::ListenerFailed { listener, errno } => Note::ListenerFailed(listener, errno),
            Event::AcceptStopped => {
                assert!(!self.notes.contains(&Note::AcceptStopped), "A4: stopped twice");
                Note::AcceptStopped
            }
            Event::Received { token } => self.note_received(token),
            Event::FinReceived { token } => self.note_fin_received(token),
            Event::ReadClosed { token, end } => self.note_read_closed(token, &end),
            Event::Sent { token, output, result } => self.note_sent(token, output, &result),
            Event::Closed { token } => self.note_closed(token),
            Event::Woken => Note::Woken,
        }
    }

    fn note_accepted(&mut self, token: Token, listener: ListenerId) -> Note {
        assert!(token.slot() < self.setup.connections_max, "K1: {token:?} is no dense slot");
        let same_slot = self.pages.iter().filter(|(other, _)| other.slot() == token.slot());
        for (other, page) in same_slot {
            assert!(page.closed, "K1: {token:?} uses the slot of {other:?}, which is not closed");
            assert_ne!(other.generation(), token.generation(), "K1: the same generation again");
        }
        self.pages.insert(token, ConnectionLog { listener, ..ConnectionLog::default() });
        self.accepted.push(token);
        Note::Accepted(token)
    }

    /// Returns the log of a connection that may have events other than the last two.
    fn open_page(&mut self, token: Token) -> &mut ConnectionLog {
        let page = self.pages.get_mut(&token).expect("A1: an event before Accepted");
        assert!(!page.closed && !page.closing, "C2: an event of {token:?} after its close");
        page
    }

    fn note_received(&mut self, token: Token) -> Note {
        let lent = self.driver().lent().to_vec();
        let most = self.setup.recv_buffer_bytes;
        assert!(!lent.is_empty() && lent.len() <= most, "R2: {} bytes lent of at most {most}", lent.len());
        let page = self.open_page(token);
        assert_eq!(page.ended, None, "R4: bytes after the end");
        if page.paused {
            page.after_pause += lent.len();
            assert!(
                page.after_pause <= RECV_AFTER_PAUSE_MAX,
                "R3: {} bytes after the pause",
                page.after_pause
            );
        }
        page.received.extend_from_slice(&lent);
        Note::Received(token, lent.len())
    }

    fn note_fin_received(&mut self, token: Token) -> Note {
        let page = self.open_page(token);
        assert!(page.paused, "R6: a FIN that ReadClosed reports");
        assert!(!page.fin_received, "R6: the FIN came twice");
        assert_eq!(page.ended, None, "R6: a FIN after the end");
        page.fin_received = true;
        Note::FinReceived(token)
    }

    fn note_read_closed(&mut self, token: Token, end: &ReadEnd) -> Note {
        let page = self.open_page(token);
        assert_eq!(page.ended, None, "R4: the end came twice");
        let ended = if matches!(end, ReadEnd::Eof) { Ended::Eof } else { Ended::Broken };
        page.ended = Some(ended);
        Note::ReadClosed(token, ended)
    }

    fn note_sent(&mut self, token: Token, output: Output, result: &Result<(), SendError>) -> Note {
        let page = self.pages.get_mut(&token).expect("S1: a Sent before Accepted");
        assert!(!page.closed, "C2: Sent after Closed");
        let contents = page.in_flight.take().expect("S1: a Sent that nobody is waiting for");
        assert_eq!(contents, Contents::of(&output), "S1: the output has changed");
        let sent = match result {
            Ok(()) => SentAs::Whole,
            Err(SendError::Broken(_)) => SentAs::Broken,
            Err(SendError::FileShort) => SentAs::FileShort,
            Err(SendError::FileChanged) => SentAs::FileChanged,
            Err(SendError::FileUnreadable(_)) => SentAs::FileUnreadable,
            Err(SendError::Cancelled) => SentAs::Cancelled,
        };
        assert!(sent != SentAs::Cancelled || page.closing, "C2: cancelled without a close");
        page.sent.push(sent);
        page.output = output;
        Note::Sent(token, sent)
    }

    fn note_closed(&mut self, token: Token) -> Note {
        let page = self.pages.get_mut(&token).expect("C2: Closed before Accepted");
        assert!(page.closing, "C4: Closed without a close");
        assert!(!page.closed, "C2: closed twice");
        assert!(page.in_flight.is_none(), "C2: Closed before the outstanding Sent");
        page.closed = true;
        Note::Closed(token)
    }

    /// Waits at most `timeout_ms` and takes all events of the turn; returns their number.
    pub(crate) fn turn(&mut self, timeout_ms: u64) -> usize {
        self.wait(timeout_ms);
        self.rest_of_turn()
    }

    /// Takes the turn's remaining events.
    pub(crate) fn rest_of_turn(&mut self) -> usize {
        let mut events = 0;
        while self.step().is_some() {
            events += 1;
            assert!(events < EVENTS_PER_TURN_MAX, "T2: the turn does not end");
        }
        let live = self.pages.values().filter(|page| !page.closed).count();
        assert_eq!(self.driver().connections(), live, "connections() counts those not yet Closed");
        events
    }

    /// Waits at most `timeout_ms`.
    pub(crate) fn wait(&mut self, timeout_ms: u64) {
        let before = self.driver().now_ms();
        self.driver().wait(Some(Duration::from_millis(timeout_ms))).expect("T1: the driver can wait");
        assert!(self.driver().now_ms() >= before, "T3: the clock went back");
    }

    /// Takes turns until `done`.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let start = self.driver().now_ms();
        let patience = self.harness.patience().as_millis() as u64;
        for _ in 0..TURNS_MAX {
            if done(self) {
                return;
            }
            assert!(self.driver().now_ms() - start <= patience, "not within {patience} ms: {what}");
            self.turn(5);
        }
        panic!("not within {TURNS_MAX} turns: {what}");
    }

    /// Takes some turns in which nothing needs to happen.
    pub(crate) fn idle(&mut self) {
        for _ in 0..10 {
            self.turn(2);
        }
    }

    /// Takes turns and reads from the peer until it has `len` more bytes.
    pub(crate) fn peer_gets(&mut self, peer: PeerId, len: usize) -> Vec<u8> {
        let mut got = Vec::new();
        self.until("the peer gets its bytes", |world| {
            world.harness.read(peer, len - got.len(), &mut got);
            got.len() == len
        });
        got
    }

    /// Takes turns and reads until the peer's receiving side has ended; returns its state and the bytes
    /// before.
    pub(crate) fn peer_ends(&mut self, peer: PeerId) -> (PeerState, Vec<u8>) {
        let mut got = Vec::new();
        let mut state = PeerState::Open;
        self.until("the peer's receiving side ends", |world| {
            state = world.harness.read(peer, 1 << 20, &mut got);
            state != PeerState::Open
        });
        (state, got)
    }

    /// Takes turns and writes until the peer has written all of `bytes`.
    pub(crate) fn peer_writes(&mut self, peer: PeerId, bytes: &[u8]) {
        let mut done = 0;
        self.until("the peer gets its bytes off", |world| {
            done += world.harness.write(peer, &bytes[done..]);
            done == bytes.len()
        });
    }

    pub(crate) fn send(&mut self, token: Token, output: Output) {
        let page = self.pages.get_mut(&token).expect("the connection is there");
        page.in_flight = Some(Contents::of(&output));
        self.driver().send(token, output);
    }

    /// Sends; returns whether all was sent at once, leaving the output. A `Sent` after that is an error.
    pub(crate) fn send_at_once(&mut self, token: Token, output: &mut Output) -> bool {
        self.send_for(token, output, true)
    }

    /// Sends with or without awaiting the end.
    pub(crate) fn send_for(&mut self, token: Token, output: &mut Output, is_awaited: bool) -> bool {
        let contents = Contents::of(output);
        let at_once = self.driver().send_at_once(token, output, || is_awaited);
        let page = self.pages.get_mut(&token).expect("the connection is there");
        assert!(page.in_flight.is_none(), "one send at a time");
        if at_once {
            assert_eq!(Contents::of(output), contents, "the output is unchanged");
        } else {
            assert!(output.is_empty(), "the output was moved");
            page.in_flight = Some(contents);
        }
        at_once
    }

    pub(crate) fn is_sending(&self, token: Token) -> bool {
        self.page(token).in_flight.is_some()
    }

    pub(crate) fn close(&mut self, token: Token, kind: CloseKind) {
        self.pages.get_mut(&token).expect("the connection is there").closing = true;
        self.driver().close(token, kind);
    }

    /// Closes a connection, and takes turns until it is closed.
    pub(crate) fn close_and_wait(&mut self, token: Token) {
        self.close(token, CloseKind::Normal);
        self.until("the connection is closed", |world| world.page(token).closed);
    }

    pub(crate) fn recv_pause(&mut self, token: Token) {
        let page = self.pages.get_mut(&token).expect("the connection is there");
        page.paused = true;
        self.driver().recv_pause(token);
    }

    pub(crate) fn recv_resume(&mut self, token: Token) {
        let page = self.pages.get_mut(&token).expect("the connection is there");
        page.paused = false;
        page.after_pause = 0;
        self.driver().recv_resume(token);
    }

    /// Counts the matching events.
    pub(crate) fn count(&self, like: impl Fn(&Note) -> bool) -> usize {
        self.notes.iter().filter(|note| like(note)).count()
    }
}

/// Waits for the first connection of a driver. A wait may return without an event (T1).
pub(crate) fn first_accepted(driver: &mut impl Driver) -> Token {
    for _ in 0..TURNS_MAX {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        if let Some(Event::Accepted { token, .. }) = driver.next() {
            return token;
        }
    }
    panic!("nobody comes");
}

/// Returns an output of plain bytes.
pub(crate) fn plain(bytes: &[u8]) -> Output {
    let mut output = Output::new();
    output.bytes_mut().extend_from_slice(bytes);
    output
}

/// Returns bytes in which no two nearby sections are equal.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    random::bytes(&mut random::part(seed, 0), len)
}

/// Returns an open, unlinked file with these contents.
pub(crate) fn file_of(contents: &[u8]) -> Rc<SharedFile> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("shearwater-io-{}-{number}", std::process::id()));
    let mut options = File::options();
    let mut file = options.read(true).write(true).create_new(true).open(&path).expect("a file can be made");
    std::fs::remove_file(&path).expect("and its name removed");
    file.write_all(contents).expect("and written");
    Rc::new(SharedFile::new(file))
}

/// Returns a range of a file as an item.
pub(crate) fn file_item(file: &Rc<SharedFile>, offset: u64, len: u64) -> Item {
    Item::File(FileSlice { file: Rc::clone(file), offset, len })
}

/// Returns an output of some bytes and a range of a file.
pub(crate) fn with_file(head: &[u8], file: &Rc<SharedFile>, offset: u64, len: u64) -> Output {
    let mut output = plain(head);
    output.push(file_item(file, offset, len));
    output
}

/// Returns a shared block as an item.
pub(crate) fn block_item(block: &[u8]) -> Item {
    Item::Shared(Shared::Block(Rc::new(block.into())))
}

/// Returns an output of all kinds of items, of about `pieces` times 100 KB, and its bytes.
pub(crate) fn mixed(pieces: u64) -> (Output, Vec<u8>) {
    let contents = pattern(700_000, 7);
    let file = file_of(&contents);
    let mut output = Output::new();
    let mut wanted = Vec::new();
    for piece in 0..pieces {
        let head = pattern(200 + piece as usize * 13, piece);
        output.bytes_mut().extend_from_slice(&head);
        wanted.extend_from_slice(&head);
        if piece % 3 == 1 {
            let block = pattern(90_000, piece + 1000);
            output.push(block_item(&block));
            wanted.extend_from_slice(&block);
        } else {
            let from = piece as usize * 1001 % 400_000;
            output.push(file_item(&file, from as u64, 130_000));
            wanted.extend_from_slice(&contents[from..from + 130_000]);
        }
    }
    output.bytes_mut().extend_from_slice(b"the end");
    wanted.extend_from_slice(b"the end");
    (output, wanted)
}
