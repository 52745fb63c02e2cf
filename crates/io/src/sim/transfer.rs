//! Receiving, sending and closing.

use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;

use super::conn::{SimConnection, SimSend};
use super::kernel::Kernel;
use super::operations::OperationKind;
use super::options::Fault;
use crate::{CloseKind, Event, FileSlice, Output, Piece, ReadEnd, SendError, Token};

impl Kernel {
    pub(super) fn receive(&mut self, slot: usize, fault: Option<Fault>, lent: &mut Vec<u8>) -> Option<Event> {
        let bytes_max = self.options.recv_buffer_bytes.max(1);
        let conn = self.conn_at(slot)?;
        let most = conn.wire.borrow().readable().min(bytes_max).min(conn.receivable_max());
        let bytes = if fault == Some(Fault::Short) { self.rng.shorten(most) } else { most };
        if bytes == 0 {
            return None; // a reset destroyed them
        }
        let (turn, fin_follows) = (self.turn, self.rng.chance(self.options.fin_with_data));
        let conn = self.conn_at(slot)?;
        conn.wire.borrow_mut().server_reads(bytes, lent);
        conn.used.recvs += 1;
        if conn.paused {
            conn.after_pause_bytes += bytes;
        }
        if conn.wire.borrow().at_end() && !fin_follows {
            conn.idle_turn = turn;
        }
        let token = conn.token;
        self.trace.add_bytes(bytes);
        Some(Event::Received { token })
    }

    pub(super) fn report_end(&mut self, slot: usize) -> Option<Event> {
        let conn = self.conn_at(slot)?;
        conn.end_told = true;
        let broken = conn.wire.borrow().reset;
        let end = if broken {
            ReadEnd::Broken(Error::new(ErrorKind::ConnectionReset, "reset by the simulated peer"))
        } else {
            ReadEnd::Eof
        };
        Some(Event::ReadClosed { token: conn.token, end })
    }

    /// A reset loses what is unread, a FIN doesn't (R6).
    pub(super) fn report_end_while_paused(&mut self, slot: usize) -> Option<Event> {
        let conn = self.conn_at(slot)?;
        if conn.wire.borrow().reset {
            return self.report_end(slot);
        }
        conn.fin_told = true;
        Some(Event::FinReceived { token: conn.token })
    }

    pub(super) fn recv_pause(&mut self, token: Token) {
        let leaks = self.rng.chance(self.options.data_after_pause);
        let Some(conn) = self.conn_at(token.slot()) else { return };
        if !conn.paused {
            conn.paused = true;
            conn.after_pause_bytes = 0;
            conn.used.leaks = leaks;
        }
    }

    pub(super) fn recv_resume(&mut self, token: Token) {
        if let Some(conn) = self.conn_at(token.slot()) {
            conn.paused = false;
            self.enqueue(token.slot());
        }
    }
}

/// Bytes of a file read at once.
const FILE_READ_BYTES: usize = 64 * 1024;

impl Kernel {
    /// Sends; attempts at once.
    pub(super) fn send(&mut self, token: Token, output: Output) {
        self.begin_send(token, output);
        self.enqueue_completion(token.slot());
    }

    /// Sends, and may complete at once if the network has accepted everything and the seed chooses so, or if it
    /// has not and nobody awaits the end.
    pub(super) fn send_at_once(
        &mut self,
        token: Token,
        output: &mut Output,
        is_awaited: impl FnOnce() -> bool,
    ) -> bool {
        let (slot, turn) = (token.slot(), self.turn);
        self.begin_send(token, std::mem::take(output));
        let Some(SimSend { decided, has_joined: false, .. }) =
            self.conn_at(slot).and_then(|conn| conn.sending.as_ref())
        else {
            self.enqueue_completion(slot);
            return false;
        };
        let is_done = matches!(decided, Some(Ok(())));
        if !is_done && self.rng.chance(self.options.unsent) && !is_awaited() {
            if let Some(sending) = self.conn_at(slot).and_then(|conn| conn.sending.as_mut()) {
                sending.silent_since = Some(turn);
            }
            return true;
        }
        if is_done
            && self.rng.chance(self.options.sends_at_once)
            && let Some(conn) = self.conn_at(slot)
            && let Some(sending) = conn.sending.take()
        {
            *output = sending.output;
            return true;
        }
        self.enqueue_completion(slot);
        false
    }

    fn begin_send(&mut self, token: Token, output: Output) {
        let slot = token.slot();
        let Some(conn) = self.conn_at(slot) else { return };
        if let Some(sending) = &mut conn.sending
            && sending.silent_since.is_some()
        {
            sending.output.append(output);
            sending.has_joined = true;
            return;
        }
        assert!(conn.sending.is_none(), "clause S2: {token:?} has a send in flight already");
        conn.sending = Some(SimSend { output, ..SimSend::default() });
        let deferrable = !conn.deferred;
        let fault = self.operation(OperationKind::SendAttempt, Some(token), deferrable);
        if !self.apply_fault(slot, fault) {
            self.attempt_send(slot, fault);
        }
    }

    /// Passes to the network what it accepts now.
    pub(super) fn attempt_send(&mut self, slot: usize, fault: Option<Fault>) {
        let turn = self.turn;
        let Some(conn) = self.conn_at(slot) else { return };
        conn.enter_turn(turn);
        let Some(sending) = &conn.sending else { return };
        let left = usize::try_from(sending.output.len() - sending.taken).unwrap_or(usize::MAX);
        let room = conn.wire.borrow().room().min(left);
        let room = if fault == Some(Fault::Short) { self.rng.shorten(room) } else { room };
        let mut scratch = std::mem::take(&mut self.file_scratch);
        let Some(conn) = self.conn_at(slot) else { return };
        let taken = fill(conn, turn, room, &mut scratch);
        self.file_scratch = scratch;
        self.bytes_taken += taken as u64;
        self.trace.add_bytes(taken);
    }

    pub(super) fn report_unsent(&mut self, slot: usize) -> Option<Event> {
        let conn = self.conn_at(slot)?;
        conn.sending.as_mut()?.silent_since = None;
        Some(Event::Unsent { token: conn.token })
    }

    pub(super) fn report_sent(&mut self, slot: usize) -> Option<Event> {
        let conn = self.conn_at(slot)?;
        let sending = conn.sending.take()?;
        conn.used.sents += 1;
        let token = conn.token;
        let result = sending.decided?;
        if result.is_err() {
            self.failed = Some((token, sending.taken));
        }
        Some(Event::Sent { token, output: sending.output, result })
    }
}

/// Takes up to `room` bytes of the send in flight, then decides or parks it. Returns the number taken.
fn fill(conn: &mut SimConnection, turn: u64, room: usize, scratch: &mut Vec<u8>) -> usize {
    let mut file_left = conn.file_bytes_left();
    let file_before = file_left;
    let Some(sending) = conn.sending.as_mut() else { return 0 };
    let mut wire = conn.wire.borrow_mut();
    let mut taken = 0;
    // Bounded: each round takes a byte at least, or ends it.
    loop {
        let Some(piece) = sending.output.piece_at(sending.taken) else {
            sending.decided = Some(Ok(()));
            break;
        };
        if wire.reset || wire.server_finished {
            sending.decided = Some(Err(SendError::Broken(broken(wire.reset))));
            break;
        }
        let most = room - taken;
        let bytes = match &piece {
            Piece::Bytes(bytes) => Ok(&bytes[..bytes.len().min(most)]),
            Piece::File(_) if most == 0 || file_left == 0 => Ok(&[][..]),
            Piece::File(slice) => read_file(slice, most.min(clamp(file_left)), scratch),
        };
        match bytes {
            Ok([]) => {
                sending.parked_turn = turn;
                break;
            }
            Ok(bytes) => {
                wire.server_sends(bytes);
                sending.taken += bytes.len() as u64;
                taken += bytes.len();
                if matches!(piece, Piece::File(_)) {
                    file_left -= bytes.len() as u64;
                }
            }
            Err(error) => {
                sending.decided = Some(Err(error));
                break;
            }
        }
    }
    drop(wire);
    conn.used.file_bytes += file_before - file_left;
    taken
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn broken(by_reset: bool) -> Error {
    if by_reset {
        Error::new(ErrorKind::ConnectionReset, "reset by the simulated peer")
    } else {
        Error::new(ErrorKind::BrokenPipe, "sent after shutdown_write")
    }
}

/// Reads at least one byte of the slice, or returns an error.
fn read_file<'a>(slice: &FileSlice, most: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], SendError> {
    scratch.resize(FILE_READ_BYTES, 0);
    let wanted = most.min(clamp(slice.len)).min(FILE_READ_BYTES);
    match slice.file.read_at(&mut scratch[..wanted], slice.offset) {
        Ok(0) => Err(SendError::FileShort),
        Ok(bytes) if bytes as u64 == slice.len && !slice.file.is_as_promised() => Err(SendError::FileChanged),
        Ok(bytes) => Ok(&scratch[..bytes]),
        Err(error) => Err(SendError::FileUnreadable(error)),
    }
}

impl Kernel {
    pub(super) fn shutdown_write(&mut self, token: Token) {
        let Some(conn) = self.conn_at(token.slot()) else { return };
        assert!(conn.sending.is_none(), "clause C1: {token:?} has a send in flight");
        let fault = self.operation(OperationKind::Shutdown, Some(token), false);
        self.apply_fault_at_verb(token.slot(), fault);
        if let Some(conn) = self.conn_at(token.slot()) {
            conn.wire.borrow_mut().server_finished = true;
        }
        self.enqueue(token.slot());
    }

    pub(super) fn close(&mut self, token: Token, kind: CloseKind) {
        let fault = self.operation(OperationKind::Close, Some(token), false);
        self.apply_fault_at_verb(token.slot(), fault);
        let Some(conn) = self.conn_at(token.slot()) else { return };
        conn.closing = true;
        conn.detaching = false;
        if let Some(sending) = &mut conn.sending {
            sending.decided.get_or_insert(Err(SendError::Cancelled));
        }
        match kind {
            CloseKind::Normal => conn.wire.borrow_mut().server_closes(),
            CloseKind::Reset => conn.wire.borrow_mut().server_resets(),
        }
        self.enqueue_completion(token.slot());
    }

    pub(super) fn detach(&mut self, token: Token) {
        let Some(conn) = self.conn_at(token.slot()) else { return };
        assert!(conn.sending.is_none(), "clause C5: {token:?} has a send in flight");
        conn.detaching = true;
        self.enqueue_completion(token.slot());
    }

    pub(super) fn report_detached(&mut self, slot: usize) -> Option<Event> {
        let conn = self.conn_at(slot)?;
        conn.detaching = false;
        let why = Error::new(ErrorKind::Unsupported, "a simulated connection has no descriptor");
        Some(Event::Detached { token: conn.token, result: Err(why) })
    }

    pub(super) fn report_closed(&mut self, slot: usize) -> Option<Event> {
        let conn = self.remove(slot)?;
        self.failed.take_if(|(failed, _)| *failed == conn.token);
        if !conn.wire.borrow().to_peer.is_empty() {
            self.departed.push(conn.wire);
        }
        Some(Event::Closed { token: conn.token })
    }
}
