//! A harness with a log of all events. Every event passes through [`World::step`], which checks the
//! invariants.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use shearwater_io::secure::Failure;
use shearwater_io::{
    AcceptError, CloseKind, Detached, Driver, Event, ListenerId, Output, ReadEnd, SendError, Token,
};

use super::outputs::Contents;
pub(crate) use super::outputs::{block_item, file_item, file_of, mixed, pattern, plain, with_file};
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
    ListenerRemoved(ListenerId),
    AcceptStopped,
    Received(Token, usize),
    Secured(Token),
    Receiving(Token),
    FinReceived(Token),
    ReadClosed(Token, Ended),
    Unsent(Token),
    Sent(Token, SentAs),
    Detached(Token),
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
    pub secured: bool,
    pub fin_received: bool,
    pub ended: Option<Ended>,
    pub sent: Vec<SentAs>,
    /// The output returned last.
    pub output: Output,
    /// Bytes of the last send that failed (S6).
    pub failed_after: u64,
    pub closed: bool,
    in_flight: Option<Contents>,
    /// The last output that was sent at once: the driver may take that back once.
    at_once: Option<Contents>,
    closing: bool,
    detaching: bool,
    /// The result of the last detach.
    detached: Option<io::Result<Detached>>,
    paused: bool,
    after_pause: usize,
}

/// A harness and its log.
pub(crate) struct World<H: Harness> {
    pub harness: H,
    pub accepted: Vec<Token>,
    pub notes: Vec<Note>,
    pages: HashMap<Token, ConnectionLog>,
    /// Number of sockets adopted so far.
    adopted: usize,
    setup: Setup,
}

impl<H: Harness> World<H> {
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    pub(crate) fn with(setup: Setup) -> Self {
        let harness = H::new(setup);
        Self { harness, accepted: Vec::new(), notes: Vec::new(), pages: HashMap::new(), adopted: 0, setup }
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
        let token = self.accepted[before];
        self.await_secured(token);
        (peer, token)
    }

    /// Takes turns until a connection may be used: at once if it isn't to be secured, or has ended.
    fn await_secured(&mut self, token: Token) {
        let is_ready = |page: &ConnectionLog| page.secured || page.ended.is_some();
        if H::secures() && !is_ready(self.page(token)) {
            self.until("it is secured", |world| is_ready(world.page(token)));
        }
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
            Event::ListenerRemoved { listener } => Note::ListenerRemoved(listener),
            Event::AcceptStopped => {
                assert!(!self.notes.contains(&Note::AcceptStopped), "A4: stopped twice");
                Note::AcceptStopped
            }
            Event::Received { token } => self.note_received(token),
            Event::Secured { token, result } => self.note_secured(token, result),
            Event::Receiving { token } => {
                assert!(self.open_page(token).secured, "X5: before the handshake");
                Note::Receiving(token)
            }
            Event::FinReceived { token } => self.note_fin_received(token),
            Event::ReadClosed { token, end } => self.note_read_closed(token, &end),
            Event::Unsent { token } => self.note_unsent(token),
            Event::Sent { token, output, result } => self.note_sent(token, output, &result),
            Event::Detached { token, result } => self.note_detached(token, result),
            Event::Closed { token } => self.note_closed(token),
            Event::Woken => Note::Woken,
        }
    }

    fn note_accepted(&mut self, token: Token, listener: ListenerId) -> Note {
        let slots_max = self.setup.connections_max + self.adopted;
        assert!(token.slot() < slots_max, "K1: {token:?} is no dense slot");
        let same_slot = self.pages.iter().filter(|(other, _)| other.slot() == token.slot());
        for (other, page) in same_slot {
            assert!(page.closed, "K1: {token:?} uses the slot of {other:?}, which is not closed");
            assert_ne!(other.generation(), token.generation(), "K1: the same generation again");
        }
        self.pages.insert(token, ConnectionLog { listener, ..ConnectionLog::default() });
        self.accepted.push(token);
        if H::secures() {
            self.driver().secure(token, listener, &[]);
        }
        Note::Accepted(token)
    }

    /// Adopts one end of a socket pair; returns the other, in non-blocking mode.
    pub(crate) fn adopt(&mut self) -> (UnixStream, Token) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        theirs.set_nonblocking(true).expect("a socket");
        (theirs, self.adopt_socket(ours))
    }

    pub(crate) fn adopt_socket(&mut self, socket: UnixStream) -> Token {
        socket.set_nonblocking(true).expect("a socket");
        let token = self.driver().adopt(socket.into()).expect("it is adopted");
        self.adopted += 1;
        self.pages.insert(token, ConnectionLog { secured: true, ..ConnectionLog::default() });
        token
    }

    /// Returns the log of a connection that may have events other than the last two.
    fn open_page(&mut self, token: Token) -> &mut ConnectionLog {
        let page = self.pages.get_mut(&token).expect("A1: an event before Accepted");
        assert!(!page.closed && !page.closing, "C2: an event of {token:?} after its close");
        assert!(!page.detaching, "C5: an event of {token:?} after its detach");
        page
    }

    fn note_secured(&mut self, token: Token, result: Result<(), Failure>) -> Note {
        let page = self.open_page(token);
        assert!(!page.secured && page.received.is_empty(), "X1: secured once and first");
        assert_eq!((page.ended, result), (None, Ok(())));
        page.secured = true;
        assert!(self.driver().session(token).is_some(), "X1: its facts are known");
        Note::Secured(token)
    }

    fn note_received(&mut self, token: Token) -> Note {
        let lent = self.driver().lent().to_vec();
        let most = H::lent_max(self.setup);
        assert!(!lent.is_empty() && lent.len() <= most, "R2: {} bytes lent of at most {most}", lent.len());
        let page = self.open_page(token);
        assert_eq!(page.ended, None, "R4: bytes after the end");
        assert!(page.secured || !H::secures(), "X1: bytes before Secured");
        if page.paused {
            page.after_pause += lent.len();
            assert!(
                page.after_pause <= H::after_pause_max(),
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

    pub(crate) fn note_unsent(&mut self, token: Token) -> Note {
        let page = self.pages.get_mut(&token).expect("A1: an event before Accepted");
        assert!(!page.closed && !page.detaching, "S7: Unsent after Closed or a detach");
        assert_eq!(page.ended, None, "S7: the end came before Unsent");
        let sent = page.at_once.take().expect("S7: Unsent without a send at once");
        page.in_flight = Some(sent.then(&page.in_flight.take().unwrap_or_default()));
        Note::Unsent(token)
    }

    fn note_sent(&mut self, token: Token, output: Output, result: &Result<(), SendError>) -> Note {
        let page = self.pages.get_mut(&token).expect("S1: a Sent before Accepted");
        assert!(!page.closed, "C2: Sent after Closed");
        let contents = page.in_flight.take().expect("S1: a Sent that nobody is waiting for");
        page.at_once = None;
        assert!(Contents::of(&output) == contents, "S1: the output has changed");
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
        if result.is_err() && !page.closing {
            let failed_after = self.driver().send_progress(token);
            self.pages.get_mut(&token).expect("the page from above").failed_after = failed_after;
        }
        Note::Sent(token, sent)
    }

    fn note_detached(&mut self, token: Token, result: io::Result<Detached>) -> Note {
        let page = self.pages.get_mut(&token).expect("C5: Detached before Accepted");
        assert!(page.detaching && !page.closing, "C5: Detached without a detach");
        page.detaching = result.is_ok();
        let before = page.detached.replace(result);
        assert!(!matches!(before, Some(Ok(_))), "C5: detached twice");
        Note::Detached(token)
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
        self.harness.pump();
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
        self.await_secured(token);
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
        self.await_secured(token);
        let contents = Contents::of(output);
        let at_once = self.driver().send_at_once(token, output, || is_awaited);
        let page = self.pages.get_mut(&token).expect("the connection is there");
        assert!(page.in_flight.is_none(), "one send at a time");
        if at_once {
            let left = Contents::of(output);
            assert!(left == contents || output.is_empty(), "S7: the output is unchanged or another one");
            page.at_once = Some(contents);
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

    /// Detaches a connection, without waiting for the result.
    pub(crate) fn begin_detach(&mut self, token: Token) {
        let page = self.pages.get_mut(&token).expect("the connection is there");
        page.detaching = true;
        self.driver().detach(token);
    }

    /// Detaches a connection, and takes turns until it is.
    pub(crate) fn detach(&mut self, token: Token) -> io::Result<Detached> {
        self.begin_detach(token);
        self.detached(token)
    }

    /// Takes turns until a connection is detached.
    pub(crate) fn detached(&mut self, token: Token) -> io::Result<Detached> {
        self.until("it is detached", |world| world.page(token).detached.is_some());
        let page = self.pages.get_mut(&token).expect("the connection is there");
        page.detached.take().expect("a result")
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

    /// Checks the number of all bytes that the kernel has accepted (S11); those of records add to it.
    pub(crate) fn assert_taken(&mut self, content: u64) {
        let taken = self.driver().bytes_taken();
        assert!(taken == content || H::secures() && taken > content, "{taken} of {content}");
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

/// Detaches a connection of a driver without other events.
pub(crate) fn detach(driver: &mut impl Driver, token: Token) -> Detached {
    driver.detach(token);
    for _ in 0..TURNS_MAX {
        while let Some(event) = driver.next() {
            if let Event::Detached { result, .. } = event {
                return result.expect("the connection is detached");
            }
        }
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
    }
    panic!("it is never detached");
}
