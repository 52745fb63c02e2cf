//! Connections of a driver of the real kernel: slots, sends in flight, and pending work.
//!
//! Shared by the readiness and the completion driver, which differ only in how they learn of events.

mod push;
mod queue;
mod sends;
mod slots;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{SendFlags, Shutdown, shutdown};

use crate::limits::SEND_QUANTUM_BYTES;
use crate::{Detached, Event, Output, ReadEnd, SendError, Token, Waker, socket};
use push::{Push, PushContext, push, pushed, send_bytes};
use queue::{Completion, Work};

#[cfg(target_os = "linux")]
pub(crate) use push::GATHER_MAX;
pub(crate) use queue::FairQueue;
pub(crate) use sends::{Sending, Slab};
#[cfg(target_os = "linux")]
pub(crate) use slots::{DETACHING, IN_RING, SILENT};
pub(crate) use slots::{Flags, NONE, Slot, SlotState, Slots};

/// Outcome of a push by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The send with this index has ended.
    Ended(u32),
    /// The socket is full.
    Full,
    /// It continues in a later turn.
    Share,
    /// It continues when a fetch from disk is complete.
    Fetching,
}

/// The connections of one driver. `X` is the driver's data per connection.
#[derive(Debug)]
pub(crate) struct Connections<X> {
    pub(crate) slots: Slots<X>,
    pub(crate) sends: Slab<Sending>,
    pub(crate) work: Work,
    /// A send by hand that completed as it began; its `Sent` is next. Other sends are in `sends`.
    just_sent: Option<(Token, Output)>,
    /// The last send that failed, and its bytes (S6).
    failed: Option<(Token, u64)>,
    /// Detached connections to report, at most once each.
    detached: VecDeque<(Token, io::Result<Detached>)>,
    context: PushContext,
}

impl<X: SlotState> Connections<X> {
    /// `waker` wakes the driver.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            slots: Slots::new(),
            sends: Slab::default(),
            work: Work::default(),
            just_sent: None,
            failed: None,
            detached: VecDeque::new(),
            context: PushContext::new(waker),
        }
    }

    /// Returns the open connection that a send is for (S2, K2).
    #[cfg(target_os = "linux")]
    pub(crate) fn sender(&mut self, token: Token) -> Option<&mut Slot<X>> {
        sender(&mut self.slots, token, self.just_sent.as_ref())
    }

    /// Begins a turn: moves deferred work into it.
    pub(crate) fn begin_turn(&mut self, now_ms: u64) {
        self.work.begin_turn();
        self.context.ahead.now_ms = now_ms;
    }

    /// Returns whether there is work that needs no event of the kernel.
    pub(crate) fn has_work(&self) -> bool {
        self.just_sent.is_some() || !self.detached.is_empty() || !self.work.is_empty()
    }

    /// Sends by hand; returns whether all of it is done (S7). Most responses are plain bytes that fit the
    /// socket's buffer.
    pub(crate) fn send_at_once(&mut self, token: Token, output: &mut Output) -> bool {
        let mut done = 0;
        let len = output.len();
        if let Some(slot) = sender(&mut self.slots, token, self.just_sent.as_ref())
            && output.items().is_empty()
            && len <= SEND_QUANTUM_BYTES
            && let Some(fd) = slot.fd.as_ref()
        {
            // An error recurs below.
            done = send_bytes(fd.as_fd(), output.bytes(), SendFlags::empty()).unwrap_or(0);
            self.context.taken_bytes += done;
            if done == len {
                return true;
            }
        }
        self.begin_by_hand(token, Sending::new(std::mem::take(output), done));
        false
    }

    /// Starts a send by hand (S1): a short one in memory at once, others by the queue. Its end is reported.
    /// Returns whether the socket is full.
    pub(crate) fn send_by_hand(&mut self, token: Token, output: Output) -> bool {
        self.begin_by_hand(token, Sending::new(output, 0))
    }

    fn begin_by_hand(&mut self, token: Token, mut sending: Sending) -> bool {
        let Self { slots, sends, work, just_sent, context, .. } = self;
        let Some(slot) = sender(slots, token, just_sent.as_ref()) else { return false };
        if sending.output.has_file() || !work.takes_at_once(sending.left()) {
            slot.send = sends.insert(sending);
            slot.flags.set(Flags::WRITABLE);
            work.sends.enqueue(token, &mut slot.flags);
            return false;
        }
        let Some(fd) = slot.fd.as_ref() else { return false };
        let Push { end, .. } = push(None, fd, &mut sending, SEND_QUANTUM_BYTES, context);
        if end.is_ok() && just_sent.is_none() && !work.after_sent {
            *just_sent = Some((token, sending.output));
            return false;
        }
        slot.send = sends.insert(sending);
        let Some(sending) = sends.get_mut(slot.send) else { return false };
        let pushed = pushed(end, slot, sending);
        match pushed {
            Pushed::Ended(send) => work.complete(token, send, &mut slot.flags),
            Pushed::Share => work.sends.enqueue(token, &mut slot.flags),
            Pushed::Full | Pushed::Fetching => {}
        }
        pushed == Pushed::Full
    }

    /// Continues the next queued send that can and for which the turn has budget left, after `prepare`. The
    /// caller reports its end.
    #[inline]
    pub(crate) fn push_next(&mut self, prepare: impl FnOnce()) -> Option<(Token, Pushed)> {
        let first = self.work.sends.first()?;
        self.push_from(first, prepare)
    }

    fn push_from(&mut self, mut token: Token, prepare: impl FnOnce()) -> Option<(Token, Pushed)> {
        let Self { slots, sends, work, context, .. } = self;
        loop {
            let Some(slot) = slots.open_mut(token) else {
                work.sends.remove_first();
                token = work.sends.first()?;
                continue;
            };
            let sending = sends.get_mut(slot.send).filter(|sending| sending.result.is_none());
            let (Some(sending), Some(fd), true) = (sending, slot.fd.as_ref(), slot.flags.can_send()) else {
                work.sends.retire(&mut slot.flags);
                token = work.sends.first()?;
                continue;
            };
            let share = work.share(sending.left());
            if share == 0 {
                if work.is_spent() {
                    work.sends.end_turn();
                    return None;
                }
                // Shorter ones after it may fit: they need not wait for many long ones.
                work.sends.retire(&mut slot.flags);
                work.sends.pass_over(token, &mut slot.flags);
                token = work.sends.first()?;
                continue;
            }
            prepare();
            let keeps = sending.wants.as_ref().is_some_and(|wants| wants.is_kept());
            let fetch_for = (keeps || !slot.flags.has(Flags::FETCHED)).then_some(token);
            let Push { cost, end } = push(fetch_for, fd, sending, share, context);
            work.cost += cost;
            work.sends.retire(&mut slot.flags);
            slot.flags.clear(Flags::WRITABLE.and(Flags::FETCHED));
            let pushed = pushed(end, slot, sending);
            if pushed == Pushed::Share {
                work.sends.enqueue(token, &mut slot.flags);
            }
            return Some((token, pushed));
        }
    }

    /// Resumes sends whose fetch is complete.
    pub(crate) fn note_fetched(&mut self) {
        while let Some(token) = self.context.ahead.next_fetched() {
            if let Some(slot) = self.slots.open_mut(token).filter(|slot| slot.flags.has(Flags::FETCHING)) {
                slot.flags.clear(Flags::FETCHING);
                slot.flags.set(Flags::WRITABLE.and(Flags::FETCHED));
                self.work.sends.enqueue(token, &mut slot.flags);
            }
        }
    }

    /// Sets whether receiving is paused (R3).
    pub(crate) fn set_paused(&mut self, token: Token, paused: bool) {
        match self.slots.open_mut(token) {
            Some(slot) if paused => slot.flags.set(Flags::PAUSED),
            Some(slot) => slot.flags.clear(Flags::PAUSED),
            None => debug_assert!(false, "recv_pause or recv_resume of {token:?}, which is not open"),
        }
    }

    /// Returns the bytes of the send in flight that the kernel has accepted (S6).
    pub(crate) fn progress(&self, token: Token) -> u64 {
        if let Some((just, output)) = &self.just_sent
            && *just == token
        {
            return output.len();
        }
        let sending = self.slots.open(token).and_then(|slot| self.sends.get(slot.send));
        let failed = || self.failed.filter(|(failed, _)| *failed == token).map_or(0, |(_, done)| done);
        sending.map_or_else(failed, |sending| sending.done)
    }

    /// Counts bytes that the kernel has accepted, as reported by a completion.
    #[cfg(target_os = "linux")]
    pub(crate) fn note_taken(&mut self, bytes: u64) {
        self.context.taken_bytes += bytes;
    }

    /// Returns the bytes that the kernel has accepted since the start (S11).
    pub(crate) const fn bytes_taken(&self) -> u64 {
        self.context.taken_bytes
    }

    /// Returns the bytes accepted by the kernel and not acknowledged by the peer (S8).
    pub(crate) fn unacknowledged(&self, token: Token) -> Option<u64> {
        let fd = self.slots.open(token).and_then(|slot| slot.fd.as_ref())?;
        socket::unacknowledged(fd)
    }

    /// Returns whether the send in flight waits for a fetch (S9).
    pub(crate) fn waits_for_disk(&self, token: Token) -> bool {
        self.slots.open(token).is_some_and(|slot| slot.flags.has(Flags::FETCHING))
    }

    /// Shuts down the sending side (C1).
    pub(crate) fn end_writing(&self, token: Token) {
        let Some(slot) = self.slots.open(token) else {
            debug_assert!(false, "shutdown_write of {token:?}, which is not open");
            return;
        };
        debug_assert!(
            !is_sending(slot, token, self.just_sent.as_ref()),
            "shutdown_write of {token:?} while it sends"
        );
        debug_assert!(slot.send != SILENT, "shutdown_write of {token:?} before its send is settled");
        if let Some(fd) = &slot.fd {
            // It fails only on a broken connection, which the receiving side reports.
            let _ = shutdown(fd, Shutdown::Write);
        }
    }

    /// Cancels the send with this index on close, if it is still in flight.
    pub(crate) fn cut_off(&mut self, token: Token, send: u32) {
        if let Some(sending) = self.sends.get_mut(send)
            && sending.result.is_none()
        {
            sending.result = Some(Err(SendError::Cancelled));
            self.work.cancelled(token, send);
        }
    }

    /// Returns the descriptor if the connection can be detached (C5).
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if it is not open.
    pub(crate) fn check_detach(&self, token: Token) -> io::Result<&OwnedFd> {
        let Some(slot) = self.slots.open(token) else {
            debug_assert!(false, "detach of {token:?}, which is not open");
            return Err(io::ErrorKind::NotConnected.into());
        };
        assert!(!is_sending(slot, token, self.just_sent.as_ref()), "detach of {token:?} while it sends");
        // An entry may name the descriptor, which the program may close at once.
        assert!(slot.send != SILENT, "detach of {token:?} before its send is settled");
        slot.fd.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Detaches the descriptor (C5).
    pub(crate) fn hand_out(&mut self, token: Token, unread: Vec<u8>) -> io::Result<Detached> {
        let descriptor = self.slots.detach(token).ok_or(io::ErrorKind::NotConnected)?;
        Ok(Detached { descriptor, unread })
    }

    /// Reports the end of a detach.
    pub(crate) fn note_detached(&mut self, token: Token, result: io::Result<Detached>) {
        self.detached.push_back((token, result));
    }

    /// Closes a detached connection; returns false for any other.
    pub(crate) fn close_handed_out(&mut self, token: Token) -> bool {
        self.detached.retain(|(detached, _)| *detached != token);
        let was_detached = self.slots.end_detached(token);
        debug_assert!(was_detached, "close of {token:?}, which is not open");
        if was_detached {
            self.work.closed(token, Flags::default());
        }
        was_detached
    }

    /// Returns the peer's address.
    pub(crate) fn peer(&self, token: Token) -> io::Result<SocketAddr> {
        let fd = self.slots.open(token).and_then(|slot| slot.fd.as_ref());
        socket::peer(fd.ok_or(io::ErrorKind::NotConnected)?)
    }

    /// Returns the next event that a verb caused; these come first.
    pub(crate) fn next_completion(&mut self) -> Option<Event> {
        if let Some((token, output)) = self.just_sent.take() {
            self.work.after_sent = true;
            return Some(Event::Sent { token, output, result: Ok(()) });
        }
        if let Some((token, result)) = self.detached.pop_front() {
            return Some(Event::Detached { token, result });
        }
        self.work.completions.pop_front().map(|completion| self.event_of(completion))
    }

    /// Returns `Woken` once per wake-up.
    pub(crate) fn next_woken(&mut self) -> Option<Event> {
        // Not `then_some`, which would drop an event each time.
        if std::mem::take(&mut self.work.woken) { Some(Event::Woken) } else { None }
    }

    /// Returns the event of a send that has ended. From here on the connection has no send.
    pub(crate) fn sent_event(&mut self, token: Token, send: u32) -> Event {
        let (output, done, result) = self.sends.remove(send, |sending| {
            sending.wants = None;
            (std::mem::take(&mut sending.output), sending.done, sending.result.take())
        });
        self.sent(token, output, done, result.unwrap_or(Err(SendError::Cancelled)))
    }

    /// Returns the event of a send that has ended with this result, after `done` bytes.
    pub(crate) fn sent(&mut self, token: Token, output: Output, done: u64, result: SendResult) -> Event {
        self.work.after_sent = true;
        if result.is_err() {
            self.failed = Some((token, done));
        }
        if let Some(slot) = self.slots.held_mut(token) {
            slot.send = NONE;
            // `WRITABLE` may have been set since the send ended: nothing is left to resume.
            slot.flags
                .clear(Flags::SENT_DEFERRED.and(Flags::WRITABLE).and(Flags::FETCHING).and(Flags::FETCHED));
        }
        Event::Sent { token, output, result }
    }

    /// Converts a completion into its event and frees its send or slot.
    fn event_of(&mut self, completion: Completion) -> Event {
        match completion {
            Completion::Sent { token, send } => self.sent_event(token, send),
            Completion::Closed { token } => {
                self.slots.release(token);
                Event::Closed { token }
            }
        }
    }
}

type SendResult = Result<(), SendError>;

/// See [`Connections::sender`].
fn sender<'a, X: SlotState>(
    slots: &'a mut Slots<X>,
    token: Token,
    just_sent: Option<&(Token, Output)>,
) -> Option<&'a mut Slot<X>> {
    let Some(slot) = slots.open_mut(token) else {
        debug_assert!(false, "send to {token:?}, which is not open");
        return None;
    };
    assert!(!is_sending(slot, token, just_sent), "a second send in flight on {token:?}");
    Some(slot)
}

/// Returns whether a connection's `Sent` is still to be reported.
fn is_sending<X>(slot: &Slot<X>, token: Token, just_sent: Option<&(Token, Output)>) -> bool {
    slot.is_sending() || just_sent.is_some_and(|(just, _)| *just == token)
}

/// Returns the final event of a connection's receiving side. A send that met the reset first has consumed the
/// kernel's error: an apparent FIN is then a reset.
pub(crate) fn read_closed<X>(token: Token, slot: &mut Slot<X>, error: Option<io::Error>) -> Event {
    slot.flags.set(Flags::READ_CLOSED);
    let end = match error {
        Some(error) => ReadEnd::Broken(error),
        None if slot.flags.has(Flags::BROKEN) => ReadEnd::Broken(io::ErrorKind::ConnectionReset.into()),
        None => ReadEnd::Eof,
    };
    Event::ReadClosed { token, end }
}

/// Returns the event of a FIN or an error while receiving is paused (R6). `reported` is the flag of a reported
/// FIN.
pub(crate) fn ended_while_paused<X>(
    token: Token,
    slot: &mut Slot<X>,
    reported: Flags,
    has_failed: bool,
) -> Option<Event> {
    // Read without need, `SO_ERROR` also returns errors that the connection has survived.
    let error = slot.fd.as_ref().filter(|_| has_failed).and_then(socket::take_error);
    if error.is_some() || slot.flags.has(Flags::BROKEN) {
        return Some(read_closed(token, slot, error));
    }
    let is_new = !slot.flags.has(reported);
    slot.flags.set(reported);
    is_new.then_some(Event::FinReceived { token })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::rc::Rc;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::{Connections, Pushed};
    use crate::limits::FETCH_CHECK_BYTES_MIN;
    use crate::{Event, FileSlice, Item, Output, SharedFile, Token, Waker};

    /// Begins a send of a file that counts as uncached, up to its fetch.
    fn fetching() -> (Connections<()>, Token, mpsc::Receiver<()>, TcpListener) {
        let (woken, wakes) = mpsc::sync_channel(1);
        let mut conns = Connections::new(Waker::new(move || {
            let _ = woken.send(());
        }));
        conns.context.ahead.find_nothing();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let peer = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        peer.set_nonblocking(true).expect("it can");
        let token = conns.slots.insert(peer.into());
        let file = Rc::new(SharedFile::new(crate::test_file(FETCH_CHECK_BYTES_MIN)));
        let mut output = Output::new();
        output.push(Item::File(FileSlice { file, offset: 0, len: FETCH_CHECK_BYTES_MIN }));
        assert!(!conns.send_by_hand(token, output), "it waits for its share of the turn");
        conns.begin_turn(0);
        let pushed = conns.push_next(|| {});
        assert_eq!(pushed, Some((token, Pushed::Fetching)), "it waits for the file instead of the socket");
        assert!(conns.waits_for_disk(token) && conns.progress(token) == 0);
        (conns, token, wakes, listener)
    }

    /// Otherwise a file system without a page cache would stall the send for good.
    #[test]
    fn sends_a_fetched_range_without_another_check() {
        let (mut conns, token, wakes, _listener) = fetching();
        wakes.recv_timeout(Duration::from_secs(20)).expect("it was fetched");
        conns.begin_turn(1);
        conns.note_fetched();
        assert!(!conns.waits_for_disk(token));
        let pushed = conns.push_next(|| {});
        assert!(matches!(pushed, Some((_, Pushed::Ended(_) | Pushed::Full))), "{pushed:?}");
        assert!(conns.progress(token) > 0);
    }

    /// Otherwise the disk would be read for closed connections.
    #[test]
    fn a_fetch_is_wanted_until_its_send_has_ended() {
        let (mut conns, token, ..) = fetching();
        let send = conns.slots.open(token).expect("it is open").send;
        let wants = &conns.sends.get(send).expect("a send").wants;
        let wants = Arc::downgrade(wants.as_ref().expect("it waits for a fetch"));
        assert_eq!(wants.strong_count(), 1);
        conns.cut_off(token, send);
        assert!(matches!(conns.next_completion(), Some(Event::Sent { result: Err(_), .. })));
        assert_eq!(wants.strong_count(), 0, "though its slot is kept");
    }
}
