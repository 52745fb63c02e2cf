//! The readiness driver: epoll on Linux, kqueue on macOS and the BSDs, both through mio.
//!
//! A connection is registered once, for reading and writing, edge-triggered: a request costs a share of the
//! turn's `epoll_wait`, one `recv` and one send. Flags of the slot hold readiness that is not yet used up.
//! Two queues hold a turn's work: connections to read, then long sends.

#[cfg(target_os = "linux")]
mod alarm;
mod source;
mod turn;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use mio::Interest;
use mio::unix::SourceFd;

use crate::clock::{CatchUp, Clock};
use crate::connections::{Connections, FairQueue, Flags, SlotState};
use crate::listeners::accept::{Arrival, Listeners};
#[cfg(not(target_os = "linux"))]
use crate::not_linux::alarm;
use crate::{
    AcceptError, CloseKind, Driver, Entrances, Event, Listener, ListenerId, Output, Token, Waker, limits,
    socket,
};
use alarm::Alarm;
use source::{ALARM, WAKER};

/// Name of mio's mechanism.
#[cfg(target_os = "linux")]
pub const NAME: &str = "epoll";
/// Name of mio's mechanism.
#[cfg(not(target_os = "linux"))]
pub const NAME: &str = "kqueue";

/// Options of a [`Poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollOptions {
    /// Maximum number of connections, including those closed but not yet reported. At this number accepting
    /// pauses before it takes another connection from the kernel.
    pub connections_max: usize,
    /// Size of the one receive buffer: the most that one `Received` lends.
    pub recv_buffer_bytes: usize,
}

impl Default for PollOptions {
    fn default() -> Self {
        Self { connections_max: 1 << 20, recv_buffer_bytes: limits::RECV_BUFFER_BYTES }
    }
}

/// The readiness driver of one worker.
#[derive(Debug)]
pub struct Poll {
    poll: mio::Poll,
    events: mio::Events,
    waker: Waker,
    alarm: Alarm,
    listeners: Listeners,
    conns: Connections<InPoll>,
    /// Connections to read. Served before long sends.
    reads: FairQueue,
    clock: Clock,
    catch_up: CatchUp,
    /// The last wait may have left events to the next one.
    left_some: bool,
    buffer: Box<[u8]>,
    /// Number of bytes of `buffer` that are lent.
    lent: usize,
    /// Reads of the present connection in this turn.
    recvs: usize,
    /// Bulk receives left in this turn, of connections whose last receive was one.
    bulk_recvs_left: usize,
    /// Bulk receives left in this turn, of new connections: their first heads can be large.
    first_bulk_recvs_left: usize,
}

/// A connection's state in this driver.
#[derive(Debug, Default)]
struct InPoll {
    has_received: bool,
}

impl SlotState for InPoll {}

impl Poll {
    /// Creates a driver with these listeners (made non-blocking) or entrances, which accepts from the first
    /// `wait` on.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an empty receive buffer or more listeners than
    /// [`crate::ListenerId`] counts; otherwise the kernel's error: it is out of descriptors or memory.
    pub fn new(entrances: impl Into<Entrances>, options: PollOptions) -> io::Result<Self> {
        if options.recv_buffer_bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the receive buffer has no size"));
        }
        let poll = mio::Poll::new()?;
        let waker = Waker::of_poll(poll.registry(), WAKER)?;
        let alarm = Alarm::new(poll.registry(), ALARM);
        let connections_max = options.connections_max.min(source::SLOTS_MAX);
        let listeners = Listeners::new(entrances.into(), connections_max)?;
        for (index, fd) in listeners.descriptors() {
            poll.registry().register(&mut SourceFd(&fd), source::listener(index), Interest::READABLE)?;
        }
        listeners.inbox.attach(&waker);
        let mut conns = Connections::new(waker.clone());
        conns.slots.limit = listeners.limit.clone();
        Ok(Self {
            poll,
            events: mio::Events::with_capacity(limits::EVENTS_PER_WAIT_MAX),
            conns,
            reads: FairQueue::new(Flags::READ_QUEUED),
            waker,
            alarm,
            listeners,
            clock: Clock::new(),
            catch_up: CatchUp::default(),
            left_some: false,
            buffer: vec![0; options.recv_buffer_bytes].into_boxed_slice(),
            lent: 0,
            recvs: 0,
            bulk_recvs_left: 0,
            first_bulk_recvs_left: 0,
        })
    }
}

impl crate::driver::sealed::Sealed for Poll {}

impl Driver for Poll {
    fn name(&self) -> &'static str {
        NAME
    }

    fn now_ms(&self) -> u64 {
        self.clock.now_ms
    }

    fn unix_seconds(&self) -> u64 {
        self.clock.unix_seconds
    }

    fn read_clock_us(&self) -> u64 {
        self.clock.read_us()
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.begin_turn(timeout)
    }

    fn descriptor(&mut self) -> io::Result<RawFd> {
        Ok(self.poll.as_raw_fd())
    }

    fn arm(&mut self, timeout: Option<Duration>) -> io::Result<Option<Duration>> {
        // What the last wait has left makes the descriptor readable no second time.
        Ok(if self.left_some { Some(Duration::ZERO) } else { self.cover(timeout) })
    }

    fn caught_up_ms(&mut self) -> u64 {
        self.catch_up.ms()
    }

    fn rest(&mut self) -> bool {
        self.conns.slots.trim();
        true
    }

    fn next(&mut self) -> Option<Event> {
        self.next_event()
    }

    fn lent(&self) -> &[u8] {
        &self.buffer[..self.lent]
    }

    fn lent_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.lent]
    }

    fn accept_pause(&mut self) {
        self.listeners.pause();
    }

    fn accept_resume(&mut self) {
        self.listeners.resume(self.conns.slots.counted());
    }

    fn accept_stop(&mut self) {
        self.listeners.stop(self.conns.slots.counted());
    }

    fn listener_add(&mut self, listener: Listener) {
        self.add_listener(listener);
    }

    fn listener_remove(&mut self, listener: ListenerId) -> bool {
        self.listeners.remove(listener, self.clock.now_ms)
    }

    fn recv_pause(&mut self, token: Token) {
        self.set_paused(token, true);
    }

    fn recv_resume(&mut self, token: Token) {
        self.set_paused(token, false);
    }

    fn reads_later(&self, token: Token) -> bool {
        self.conns.slots.open(token).is_some_and(|slot| slot.flags.wants_recv())
    }

    fn send(&mut self, token: Token, output: Output) {
        // A full socket reports by itself when it is writable.
        self.conns.send_by_hand(token, output);
    }

    fn send_at_once(&mut self, token: Token, output: &mut Output, _: impl FnOnce() -> bool) -> bool {
        self.conns.send_at_once(token, output)
    }

    fn send_progress(&self, token: Token) -> u64 {
        self.conns.progress(token)
    }

    fn bytes_taken(&self) -> u64 {
        self.conns.bytes_taken()
    }

    fn unacknowledged(&self, token: Token) -> Option<u64> {
        self.conns.unacknowledged(token)
    }

    fn waits_for_disk(&self, token: Token) -> bool {
        self.conns.waits_for_disk(token)
    }

    fn shutdown_write(&mut self, token: Token) {
        self.conns.end_writing(token);
    }

    fn close(&mut self, token: Token, kind: CloseKind) {
        self.end_connection(token, kind);
    }

    fn detach(&mut self, token: Token) {
        self.detach_connection(token);
    }

    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Token> {
        let token = self.register(&socket)?;
        self.conns.slots.insert_adopted(socket);
        Ok(token)
    }

    fn peer(&self, token: Token) -> io::Result<SocketAddr> {
        self.conns.peer(token)
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn connections(&self) -> usize {
        self.conns.slots.used()
    }
}

/// Events to report for a connection, including urgent data where the system reports it separately.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);
/// Events to report for a connection.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE);

impl Poll {
    /// Returns the next new connection, or event of accepting.
    pub(super) fn next_accept(&mut self) -> Option<Event> {
        loop {
            match self.listeners.next(self.conns.slots.counted())? {
                Arrival::Connection(fd, listener) => return Some(self.admit(fd, listener)),
                Arrival::Event(event) => return Some(event),
                Arrival::Removed(listener) => {
                    self.deregister(&listener);
                    return Some(Event::ListenerRemoved { listener: listener.id() });
                }
                Arrival::Closed(listener) => self.deregister(&listener),
            }
        }
    }

    /// Deregisters a listener that is about to be closed.
    ///
    /// Closing isn't enough while another worker or process has a descriptor of the same socket: its connections would wake
    /// this driver.
    fn deregister(&self, listener: &Listener) {
        // A failure means that it is deregistered.
        drop(self.poll.registry().deregister(&mut SourceFd(&listener.as_raw_fd())));
    }

    /// Accepts from one more listener; a failure is reported as an event.
    fn add_listener(&mut self, listener: Listener) {
        let fd = listener.as_raw_fd();
        let Ok(index) = self.listeners.add(listener) else { return };
        let source = source::listener(index);
        if let Err(error) = self.poll.registry().register(&mut SourceFd(&fd), source, Interest::READABLE) {
            self.listeners.fail_listener(index, error.raw_os_error().unwrap_or_default());
        }
    }

    /// Registers a new connection, once.
    fn admit(&mut self, fd: OwnedFd, listener: ListenerId) -> Event {
        if self.register(&fd).is_err() {
            self.listeners.put_back(fd, listener);
            return self.listeners.fail(AcceptError::Memory);
        }
        let token = self.conns.slots.insert(fd);
        Event::Accepted { token, listener }
    }

    /// Registers the socket of the connection that is inserted next. Returns its token.
    fn register(&self, socket: &OwnedFd) -> io::Result<Token> {
        let token = self.conns.slots.next_token();
        if token.slot() >= source::SLOTS_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let socket = socket.as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&socket), source::connection(token), INTERESTS)?;
        Ok(token)
    }
}

impl Poll {
    pub(super) fn end_connection(&mut self, token: Token, kind: CloseKind) {
        let Some(slot) = self.conns.slots.open_mut(token) else {
            self.conns.close_handed_out(token);
            return;
        };
        let fd = slot.fd.take();
        let (send, flags) = (slot.send, slot.flags);
        self.conns.cut_off(token, send);
        self.conns.work.closed(token, flags);
        if let (Some(fd), CloseKind::Reset) = (&fd, kind) {
            socket::reset_on_close(fd);
        }
    }

    pub(super) fn detach_connection(&mut self, token: Token) {
        let Ok(raw) = self.conns.check_detach(token).map(AsRawFd::as_raw_fd) else { return };
        let deregistered = self.poll.registry().deregister(&mut SourceFd(&raw));
        // All received bytes were delivered: the rest is still in the kernel.
        let detached = deregistered.and_then(|()| self.conns.hand_out(token, Vec::new()));
        self.conns.note_detached(token, detached);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::{Driver, Event, Poll, PollOptions};

    /// After an upgrade the new process has the same socket.
    #[test]
    fn connections_of_another_process_wake_no_stopped_driver() {
        let theirs = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = theirs.local_addr().expect("an address");
        let ours = || theirs.try_clone().expect("a descriptor");
        let mut driver = Poll::new(vec![ours(), ours()], PollOptions::default()).expect("a driver");
        driver.accept_stop();
        loop {
            driver.wait(Some(Duration::ZERO)).expect("it waits");
            if std::iter::from_fn(|| driver.next()).any(|event| matches!(event, Event::AcceptStopped)) {
                break;
            }
        }
        let _client = TcpStream::connect(address).expect("it listens");
        poll(&mut [PollFd::new(&theirs, PollFlags::IN)], None).expect("a connection");
        driver.poll.poll(&mut driver.events, Some(Duration::ZERO)).expect("it waits");
        assert!(driver.events.is_empty());
    }
}
