//! Opens what connections receive, within a turn's bounds.

use std::io;
use std::mem;

use super::connection::{Connection, Phase, Waits, broken};
use super::holders::hold_more;
use super::session::{Failure, RECORD_WIRE_BYTES_MAX, Session, Step};
use super::{Provider, Secure};
use crate::limits::{SECURE_HANDSHAKE_BYTES_MAX, SECURE_RECORDS_PER_TURN_MAX, SECURE_REPLY_BYTES_MAX};
use crate::{Driver, Event, ListenerId, ReadEnd, SendError, Token};

/// Place of the bytes of a `Received`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Lent {
    /// Those that the driver below lends, unchanged.
    #[default]
    Below,
    /// The first of them.
    Start(usize),
    /// The first of the worker's own buffer.
    Scratch(usize),
}

/// Bytes in which records are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Below,
    Scratch,
}

/// Result of opening records.
#[derive(Debug)]
struct Opening {
    /// Bytes used up.
    consumed: usize,
    /// Bytes of content, moved to the front.
    content: usize,
    /// The handshake is complete.
    is_secured: bool,
    stop: Stop,
}

/// Reason to stop opening.
#[derive(Debug, Clone, Copy)]
enum Stop {
    NeedMore,
    Turn,
    Costly,
    Closed,
    Failed(Failure),
}

/// Opens records at the front of `wire`: at most `records`, and `costly` costly steps. Moves their content together.
fn open_records(
    session: &mut impl Session,
    wire: &mut [u8],
    reply: &mut Vec<u8>,
    records: &mut usize,
    costly: &mut usize,
) -> Opening {
    let (mut at, mut content, mut is_secured) = (0, 0, false);
    let stop = loop {
        if *records == 0 && at < wire.len() {
            break Stop::Turn;
        }
        *records = records.saturating_sub(1);
        let opened = session.open(&mut wire[at..], reply);
        let from = at;
        at += opened.consumed;
        match opened.step {
            Step::NeedMore => break Stop::NeedMore,
            Step::Handled => {}
            Step::Secured => is_secured = true,
            Step::Costly if *costly == 0 => break Stop::Costly,
            Step::Costly => *costly -= 1,
            Step::Plain(range) => {
                let len = range.len();
                wire.copy_within(from + range.start..from + range.end, content);
                content += len;
            }
            Step::Closed => break Stop::Closed,
            Step::Failed(failure) => break Stop::Failed(failure),
        }
    };
    Opening { consumed: at, content, is_secured, stop }
}

/// Returns whether these bytes and `more` after them are a part of one record, so that nothing can be opened.
fn is_part(bytes: &[u8], more: usize) -> bool {
    let [20..=24, 3, _, high, low, ..] = *bytes else { return false };
    let record = 5 + usize::from(u16::from_be_bytes([high, low]));
    record <= RECORD_WIRE_BYTES_MAX && bytes.len() + more < record
}

impl<D: Driver, P: Provider> Secure<D, P> {
    /// Starts a session (X1).
    pub(super) fn begin_session(&mut self, token: Token, listener: ListenerId, unread: &[u8]) {
        debug_assert!(self.find(token).is_none(), "{token:?} is secured already");
        let mut conn = Box::new(Connection::new(token, self.provider.accept(listener)));
        self.counters.connections += 1;
        if !unread.is_empty() {
            conn.wire_received = unread.len() as u64;
            hold_more(&mut self.counters, &mut conn, unread);
            self.wait_for_turn(&mut conn);
            self.budget.ready = self.ready.len();
        }
        self.conns.grow_to(token.slot());
        self.put(conn);
    }

    /// Opens the bytes that the driver below lends. Returns whether they are a plain connection's.
    pub(super) fn received(&mut self, token: Token) -> bool {
        let Some(mut conn) = self.take(token) else { return true };
        let lent = self.inner.lent();
        let len = lent.len();
        conn.wire_received += len as u64;
        if !conn.is_open() {
            // Discarded: nothing is opened any more.
        } else if conn.waits != Waits::No || is_part(&conn.partial, len) {
            hold_more(&mut self.counters, &mut conn, lent);
        } else if conn.partial.is_empty() {
            self.open(&mut conn, Source::Below, false);
        } else {
            self.scratch.clear();
            self.scratch.extend_from_slice(&conn.partial);
            self.scratch.extend_from_slice(lent);
            self.open(&mut conn, Source::Scratch, true);
        }
        self.put(conn);
        false
    }

    /// Opens what the next connection that waits has, and returns whether one had. Costly steps come in order.
    pub(super) fn open_next(&mut self) -> bool {
        while self.budget.ready > 0
            && let Some(token) = self.ready.pop_front()
        {
            self.budget.ready -= 1;
            if self.open_waiting(token, Waits::Turn) {
                return true;
            }
        }
        while self.budget.costly > 0
            && let Some(token) = self.costly.pop_front()
        {
            if self.open_waiting(token, Waits::Costly) {
                self.counters.costly_waiting -= 1;
                return true;
            }
            self.costly_dead = self.costly_dead.saturating_sub(1);
        }
        false
    }

    fn open_waiting(&mut self, token: Token, waits: Waits) -> bool {
        let Some(mut conn) = self.take(token) else { return false };
        let is_waiting = conn.waits == waits;
        if is_waiting {
            conn.waits = Waits::No;
            self.budget.costly -= usize::from(waits == Waits::Costly);
            self.scratch.clear();
            self.scratch.extend_from_slice(&conn.partial);
            self.open(&mut conn, Source::Scratch, false);
        }
        self.put(conn);
        is_waiting
    }

    /// Opens records, keeps the rest, and queues the events. `was_announced` if a part of the first record was.
    fn open(&mut self, conn: &mut Connection<P::Session>, source: Source, was_announced: bool) {
        if conn.records_turn != self.turn {
            (conn.records_turn, conn.records) = (self.turn, SECURE_RECORDS_PER_TURN_MAX);
        }
        let wire = match source {
            Source::Below => self.inner.lent_mut(),
            Source::Scratch => &mut self.scratch[..],
        };
        let Connection { session, reply, records, .. } = conn;
        let opening = open_records(session, wire, reply, records, &mut self.budget.costly);
        let rest = match opening.stop {
            Stop::NeedMore | Stop::Turn | Stop::Costly => wire[opening.consumed..].to_vec(),
            Stop::Closed | Stop::Failed(_) => Vec::new(),
        };
        self.hold(conn, rest);
        if opening.is_secured {
            self.note_secured(conn);
        }
        if opening.content > 0 {
            self.delivery = match source {
                Source::Below => Lent::Start(opening.content),
                Source::Scratch => Lent::Scratch(opening.content),
            };
            self.events.push_back(Event::Received { token: conn.token });
        }
        let is_new = !was_announced || opening.content > 0;
        let is_deaf = conn.reply.len() > SECURE_REPLY_BYTES_MAX;
        let stop = if is_deaf { Stop::Failed(Failure::Other) } else { opening.stop };
        self.note_stop(conn, stop, is_new);
        if opening.content > 0 && !conn.reply.is_empty() && conn.flight.is_none() {
            // The worker's response of this turn takes it along.
            self.replying.push(conn.token);
        } else {
            self.flush(conn);
        }
        self.update_pause(conn);
    }

    fn note_secured(&mut self, conn: &mut Connection<P::Session>) {
        conn.phase = Phase::Secured;
        if let Some(facts) = conn.session.facts() {
            self.counters.note_handshake(facts.version, facts.is_resumed);
        }
        self.events.push_back(Event::Secured { token: conn.token, result: Ok(()) });
    }

    fn note_stop(&mut self, conn: &mut Connection<P::Session>, stop: Stop, is_new: bool) {
        let token = conn.token;
        match stop {
            Stop::NeedMore => {
                let most = match conn.phase {
                    Phase::Handshake => SECURE_HANDSHAKE_BYTES_MAX,
                    _ => RECORD_WIRE_BYTES_MAX,
                };
                if conn.partial.len() > most {
                    return self.fail(conn, Failure::BadRecord);
                }
                if let Some(end) = conn.end.take() {
                    return self.note_end(conn, end);
                }
                if is_new && !conn.partial.is_empty() && conn.phase == Phase::Secured {
                    self.events.push_back(Event::Receiving { token });
                }
            }
            Stop::Turn => self.wait_for_turn(conn),
            Stop::Costly => {
                conn.waits = Waits::Costly;
                self.counters.costly_queued += 1;
                self.counters.costly_waiting += 1;
                self.costly.push_back(token);
            }
            Stop::Closed => {
                (conn.was_clean, conn.has_ended) = (true, true);
                self.events.push_back(Event::ReadClosed { token, end: ReadEnd::Eof });
            }
            Stop::Failed(failure) => self.fail(conn, failure),
        }
    }

    fn wait_for_turn(&mut self, conn: &mut Connection<P::Session>) {
        conn.waits = Waits::Turn;
        self.ready.push_back(conn.token);
    }

    /// Ends a session that is broken. Its worker closes the connection, or continues in clear if the peer doesn't speak TLS.
    pub(super) fn fail(&mut self, conn: &mut Connection<P::Session>, failure: Failure) {
        let token = conn.token;
        self.counters.note_failure(failure);
        self.leave_queues(conn);
        conn.session.abandon();
        self.hold(conn, Vec::new());
        let phase = mem::replace(&mut conn.phase, Phase::Failed);
        if phase == Phase::Handshake {
            self.events.push_back(Event::Secured { token, result: Err(failure) });
        } else {
            conn.has_ended = true;
            let end = ReadEnd::Broken(broken(failure));
            self.events.push_back(Event::ReadClosed { token, end });
        }
        if let Some(sending) = conn.sending.take_if(|_| conn.flight.is_none()) {
            self.end_send(conn, *sending, Err(SendError::Broken(broken(failure))));
        }
        if failure == Failure::NotTls && conn.flight.is_none() {
            conn.reply = Vec::new();
            self.update_pause(conn);
            conn.phase = Phase::Plain;
        }
    }

    /// Removes a connection from the queues of those that have unopened records.
    pub(super) fn leave_queues(&mut self, conn: &mut Connection<P::Session>) {
        if mem::replace(&mut conn.waits, Waits::No) != Waits::Costly {
            return;
        }
        self.counters.costly_waiting -= 1;
        self.costly_dead += 1;
        if self.costly_dead > self.counters.costly_waiting {
            let mut costly = mem::take(&mut self.costly);
            // This connection isn't in the table now.
            costly.retain(|token| self.find(*token).is_some_and(|conn| conn.waits == Waits::Costly));
            (self.costly, self.costly_dead) = (costly, 0);
        }
    }

    /// Notes the FIN of a peer whose receiving is paused. Returns whether the worker's event follows (R6).
    pub(super) fn fin_received(&mut self, token: Token) -> bool {
        let Some(mut conn) = self.take(token) else { return true };
        conn.has_fin = true;
        let is_reported = conn.is_paused && conn.is_open() && !conn.is_fin_reported;
        conn.is_fin_reported |= is_reported;
        self.put(conn);
        is_reported
    }

    /// Notes the end of the receiving side below. Returns the worker's event, if it is one (X6).
    pub(super) fn read_closed(&mut self, token: Token, end: ReadEnd) -> Option<Event> {
        let Some(mut conn) = self.take(token) else { return Some(Event::ReadClosed { token, end }) };
        conn.is_broken_below = matches!(end, ReadEnd::Broken(_));
        if conn.has_ended {
            // It was reported.
        } else if conn.waits == Waits::No || conn.phase == Phase::Handshake && conn.is_broken_below {
            self.note_end(&mut conn, end);
        } else {
            conn.end = Some(end);
        }
        self.put(conn);
        None
    }

    /// Reports the end of the receiving side, after all that was received.
    fn note_end(&mut self, conn: &mut Connection<P::Session>, end: ReadEnd) {
        let token = conn.token;
        self.leave_queues(conn);
        if conn.phase == Phase::Handshake {
            conn.session.abandon();
        }
        self.hold(conn, Vec::new());
        let end = match end {
            ReadEnd::Eof if conn.phase == Phase::Handshake => {
                ReadEnd::Broken(io::Error::new(io::ErrorKind::UnexpectedEof, Failure::Truncated.label()))
            }
            end => end,
        };
        if conn.phase == Phase::Handshake {
            self.counters.note_failure(Failure::Truncated);
            conn.phase = Phase::Failed;
        }
        conn.has_ended = true;
        self.events.push_back(Event::ReadClosed { token, end });
    }

    /// Sets whether the worker has paused receiving (R3).
    pub(super) fn set_paused(&mut self, token: Token, is_paused: bool) {
        match self.take(token) {
            None if is_paused => self.inner.recv_pause(token),
            None => self.inner.recv_resume(token),
            Some(mut conn) => {
                conn.is_paused = is_paused;
                if is_paused && conn.has_fin && !conn.is_fin_reported && !conn.has_ended {
                    self.events.push_back(Event::FinReceived { token });
                }
                self.update_pause(&mut conn);
                self.put(conn);
            }
        }
    }

    /// Pauses the driver below while the worker does, and while the connection has unopened records.
    fn update_pause(&mut self, conn: &mut Connection<P::Session>) {
        let is_broken = conn.phase == Phase::Failed && conn.has_ended;
        let is_paused = conn.is_paused || conn.waits != Waits::No || is_broken;
        if conn.is_closing || is_paused == conn.is_paused_below {
            return;
        }
        conn.is_paused_below = is_paused;
        match is_paused {
            true => self.inner.recv_pause(conn.token),
            false => self.inner.recv_resume(conn.token),
        }
    }

    /// Returns whether a bound kept this driver from opening what it has (R7).
    pub(super) fn has_unopened(&self, token: Token) -> bool {
        self.find(token).is_some_and(|conn| conn.waits != Waits::No)
    }
}
