//! Seals outputs and sends them by the driver below: short ones at once, others in rounds.

use std::io::IoSlice;
use std::mem;

use super::connection::{Connection, Flight, Phase, Sending, broken};
use super::session::{Failure, RECORD_BYTES_MAX, Session};
use super::{Provider, Secure};
use crate::limits::{SEAL_ROUND_BYTES, SECURE_SPARE_BYTES_MAX};
use crate::{CloseKind, Driver, Event, Item, Output, Piece, SendError, Token};

/// Slices of memory sealed by one call.
const GATHER_MAX: usize = 32;

/// Content of a full record: also the least cost of a round, and that of outputs which a turn doesn't count.
const RECORD: u64 = RECORD_BYTES_MAX as u64;

type SendResult = Result<(), SendError>;

/// Empty outputs for the next sends.
#[derive(Debug, Default)]
pub(super) struct Spare {
    outputs: Vec<Output>,
    bytes: usize,
}

impl Spare {
    fn get(&mut self) -> Output {
        let output = self.outputs.pop().unwrap_or_default();
        self.bytes -= output.capacity();
        output
    }

    pub(super) fn put(&mut self, mut output: Output) {
        let bytes = output.capacity();
        if bytes > 0 && self.bytes + bytes <= SECURE_SPARE_BYTES_MAX {
            output.clear(bytes);
            self.bytes += output.capacity();
            self.outputs.push(output);
        }
    }
}

/// Outputs of sends that count as done, until the driver below must have found otherwise (S7).
#[derive(Debug, Default)]
pub(super) struct Silent {
    /// Those of this turn and of the one before, each with its records' bytes.
    now: Vec<(Token, Output, u64)>,
    before: Vec<(Token, Output, u64)>,
}

impl Silent {
    /// Drops the outputs that are settled. Returns whether others are not.
    pub(super) fn end_turn(&mut self, spare: &mut Spare) -> bool {
        if self.now.is_empty() && self.before.is_empty() {
            return false;
        }
        self.before.drain(..).for_each(|(_, output, _)| spare.put(output));
        mem::swap(&mut self.now, &mut self.before);
        !self.before.is_empty()
    }

    /// Removes the outputs of a connection. Returns them as one, with their records' bytes.
    fn take(&mut self, token: Token) -> Option<(Output, u64)> {
        let mut taken: Option<(Output, u64)> = None;
        for list in [&mut self.before, &mut self.now] {
            for (_, output, wire) in list.extract_if(.., |(silent, _, _)| *silent == token) {
                match &mut taken {
                    None => taken = Some((output, wire)),
                    Some((joined, bytes)) => {
                        joined.append(output);
                        *bytes += wire;
                    }
                }
            }
        }
        taken
    }
}

/// Seals the memory of an output from `from` on, up to the next file. Returns its bytes.
fn seal_memory(
    session: &mut impl Session,
    output: &Output,
    from: u64,
    most: u64,
    wire: &mut Vec<u8>,
) -> Result<u64, Failure> {
    let mut slices = [IoSlice::new(&[]); GATHER_MAX];
    let (mut count, mut len) = (0, 0);
    for piece in output.pieces(from).take(GATHER_MAX) {
        let Piece::Bytes(bytes) = piece else { break };
        let left = usize::try_from(most - len).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(left)];
        slices[count] = IoSlice::new(bytes);
        count += 1;
        len += bytes.len() as u64;
        if len == most {
            break;
        }
    }
    session.seal(&slices[..count], wire)?;
    Ok(len)
}

impl<D: Driver, P: Provider> Secure<D, P> {
    /// Seals a short output and sends it. Returns whether that is done (S7). Otherwise the output is moved out if the
    /// send has begun.
    pub(super) fn try_at_once(
        &mut self,
        conn: &mut Connection<P::Session>,
        output: &mut Output,
        is_awaited: impl FnOnce() -> bool,
    ) -> bool {
        assert!(conn.sending.is_none(), "a second send in flight on {:?}", conn.token);
        let Some((mut wire, flight)) = self.seal_whole(conn, output) else { return false };
        let mut is_silent = false;
        let is_done = self.inner.send_at_once(conn.token, &mut wire, || {
            let is_awaited = is_awaited();
            is_silent = !is_awaited;
            is_awaited
        });
        self.spare.put(wire);
        if !is_done {
            conn.flight = Some(flight);
            let output = mem::take(output);
            conn.sending = Some(Box::new(Sending { sealed: output.len(), ..Sending::new(output) }));
            return false;
        }
        conn.wire_taken += flight.wire;
        if is_silent {
            let output = mem::replace(output, self.spare.get());
            self.silent.now.push((conn.token, output, flight.wire));
            conn.silent_turn = self.turn;
        }
        true
    }

    /// Seals a whole output, after the reply that is due. Returns `None` if it must be sealed in rounds or later.
    fn seal_whole(&mut self, conn: &mut Connection<P::Session>, output: &Output) -> Option<(Output, Flight)> {
        let len = output.len();
        let counted = if len > RECORD { len } else { 0 };
        let is_long = counted > SEAL_ROUND_BYTES.min(self.budget.sealed_at_once) || output.has_file();
        let is_free = conn.phase == Phase::Secured && conn.flight.is_none() && conn.sending.is_none();
        if is_long || !is_free || conn.is_closing {
            return None;
        }
        let mut wire = self.spare.get();
        let bytes = wire.bytes_mut();
        let reply = conn.take_reply(bytes);
        let mut sealed = 0;
        while sealed < len {
            match seal_memory(&mut conn.session, output, sealed, len - sealed, bytes) {
                Ok(count) => sealed += count,
                // It recurs in the send that begins now.
                Err(_) => return None,
            }
        }
        self.budget.sealed_at_once -= counted;
        let wire_len = bytes.len() as u64;
        Some((wire, Flight { reply, wire: wire_len }))
    }

    /// Starts a send whose end is reported (S1).
    pub(super) fn begin_send(&mut self, conn: &mut Connection<P::Session>, output: Output) {
        assert!(conn.sending.is_none(), "a second send in flight on {:?}", conn.token);
        debug_assert!(!conn.is_closing, "send to {:?}, which is closed", conn.token);
        if conn.is_closing {
            return;
        }
        if let Some((wire, flight)) = self.seal_whole(conn, &output) {
            conn.sending = Some(Box::new(Sending { sealed: output.len(), ..Sending::new(output) }));
            conn.flight = Some(flight);
            return self.inner.send(conn.token, wire);
        }
        let sending = Sending::new(output);
        if conn.phase == Phase::Secured {
            conn.sending = Some(Box::new(sending));
            self.enqueue(conn);
        } else {
            let error = SendError::Broken(broken(Failure::Other));
            self.end_send(conn, sending, Err(error));
        }
    }

    /// Queues a long send, unless the driver below still has a send.
    pub(super) fn enqueue(&mut self, conn: &mut Connection<P::Session>) {
        if conn.flight.is_none() && !mem::replace(&mut conn.is_queued, true) {
            self.sends.push_back(conn.token);
        }
    }

    /// Queues the event of a send's end.
    pub(super) fn end_send(&mut self, conn: &Connection<P::Session>, sending: Sending, result: SendResult) {
        let event = self.sent_event(conn, sending, result);
        // After the turn's other events: a worker that always sends again would never end the turn.
        self.later.push(event);
    }

    fn sent_event(&mut self, conn: &Connection<P::Session>, sending: Sending, result: SendResult) -> Event {
        if result.is_err() {
            self.failed = Some((conn.token, sending.done));
        }
        Event::Sent { token: conn.token, output: sending.output, result }
    }

    /// Takes the next round of the long send that has waited longest. Returns false if none may continue in this turn.
    pub(super) fn seal_next(&mut self) -> bool {
        if self.budget.sealed < RECORD {
            return false;
        }
        let Some(token) = self.sends.pop_front() else { return false };
        let Some(mut conn) = self.take(token) else { return true };
        conn.is_queued = false;
        if conn.flight.is_none()
            && !conn.is_closing
            && let Some(mut sending) = conn.sending.take()
        {
            self.seal_round(&mut conn, &mut sending);
            let is_over = conn.flight.is_none() && !sending.is_fetching && sending.is_sealed();
            if is_over {
                let result = sending.failure.take().map_or(Ok(()), Err);
                let event = self.sent_event(&conn, *sending, result);
                self.events.push_back(event);
            } else {
                let is_waiting = sending.is_fetching;
                conn.sending = Some(sending);
                if !is_waiting {
                    self.enqueue(&mut conn);
                }
            }
        }
        self.put(conn);
        true
    }

    /// Seals up to a round of an output, and sends it.
    fn seal_round(&mut self, conn: &mut Connection<P::Session>, sending: &mut Sending) {
        let mut wire = self.spare.get();
        let bytes = wire.bytes_mut();
        let reply = conn.take_reply(bytes);
        if sending.done == 0 && sending.output.is_continued() {
            sending.guard_files(&mut self.watches);
        }
        let most = SEAL_ROUND_BYTES.min(self.budget.sealed / RECORD * RECORD);
        if let Err(failure) = self.fill_round(conn, sending, most, bytes) {
            sending.failure = Some(SendError::Broken(broken(failure)));
        }
        let sealed = sending.sealed - sending.done;
        let cost = sealed.max(RECORD);
        self.budget.sealed = self.budget.sealed.saturating_sub(cost);
        let flight = Flight { reply, wire: wire.len() };
        let left = sending.output.len() - sending.sealed;
        if left > 0 && sending.output.has_file() {
            // A client that has the head may change the file in the same turn.
            if sending.done == 0 && left > SEAL_ROUND_BYTES {
                sending.guard_files(&mut self.watches);
            } else {
                self.unguarded.push(conn.token);
            }
        }
        if wire.is_empty() {
            return self.spare.put(wire);
        }
        if self.inner.send_at_once(conn.token, &mut wire, || true) {
            conn.wire_taken += flight.wire;
            sending.done = sending.sealed;
        } else {
            conn.flight = Some(flight);
        }
        self.spare.put(wire);
    }

    fn fill_round(
        &mut self,
        conn: &mut Connection<P::Session>,
        sending: &mut Sending,
        most: u64,
        wire: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let until = (sending.sealed + most).min(sending.output.len());
        while sending.sealed < until && !has_file_before(&sending.output, sending.sealed, until) {
            let left = until - sending.sealed;
            sending.sealed += seal_memory(&mut conn.session, &sending.output, sending.sealed, left, wire)?;
        }
        if sending.sealed == until {
            return Ok(());
        }
        let mut buffer = mem::take(&mut self.copy_buffer);
        let content = buffer.content((until - sending.sealed) as usize);
        let filled = self.copy(conn.token, sending, content);
        let result =
            if filled == 0 { Ok(()) } else { conn.session.seal(&[IoSlice::new(&content[..filled])], wire) };
        self.copy_buffer = buffer;
        sending.sealed += if result.is_ok() { filled as u64 } else { 0 };
        result
    }

    /// Notes the end of a send below. Returns the worker's event if that ends its send.
    pub(super) fn sent(&mut self, token: Token, output: Output, result: SendResult) -> Option<Event> {
        let Some(mut conn) = self.take(token) else { return Some(Event::Sent { token, output, result }) };
        let taken = if result.is_ok() { output.len() } else { self.inner.send_progress(token) };
        self.spare.put(output);
        let event = self.end_flight(&mut conn, taken, result);
        self.flush(&mut conn);
        self.put(conn);
        event
    }

    fn end_flight(
        &mut self,
        conn: &mut Connection<P::Session>,
        taken: u64,
        result: SendResult,
    ) -> Option<Event> {
        conn.wire_taken += taken;
        let done = conn.progress(taken);
        conn.flight = None;
        let mut sending = conn.sending.take()?;
        sending.done = done;
        let result = match result {
            Err(error) => Err(error),
            Ok(()) => match sending.failure.take() {
                Some(error) => Err(error),
                None if sending.done == sending.output.len() => Ok(()),
                None if conn.is_closing => Err(SendError::Cancelled),
                None if conn.phase != Phase::Secured => Err(SendError::Broken(broken(Failure::Other))),
                None => {
                    conn.sending = Some(sending);
                    self.enqueue(conn);
                    return None;
                }
            },
        };
        Some(self.sent_event(conn, *sending, result))
    }

    /// Takes back sends that counted as done. Returns false if they were the driver's own (S7, X8).
    pub(super) fn note_unsent(&mut self, token: Token) -> bool {
        let Some(mut conn) = self.take(token) else { return true };
        let mut wire = conn.flight.map_or(0, |flight| flight.wire);
        let silent = self.silent.take(token);
        let is_worker = silent.is_some();
        if let Some((mut output, silent_wire)) = silent {
            conn.wire_taken = conn.wire_taken.saturating_sub(silent_wire);
            wire += silent_wire;
            let mut sealed = output.len();
            if let Some(sending) = conn.sending.take() {
                sealed += sending.sealed;
                output.append(sending.output);
            }
            conn.sending = Some(Box::new(Sending { sealed, ..Sending::new(output) }));
        }
        conn.flight = Some(Flight { reply: 0, wire });
        self.put(conn);
        is_worker
    }

    /// Sends the session's own records, unless the worker's send takes them along (X7), then the FIN if it is due.
    pub(super) fn flush(&mut self, conn: &mut Connection<P::Session>) {
        if conn.flight.is_some() || conn.sending.is_some() || conn.is_closing {
            return;
        }
        if !conn.reply.is_empty() {
            let mut wire = self.spare.get();
            let len = conn.take_reply(wire.bytes_mut());
            let is_done = self.inner.send_at_once(conn.token, &mut wire, || true);
            self.spare.put(wire);
            if !is_done {
                conn.flight = Some(Flight { reply: len, wire: len });
                return;
            }
            conn.wire_taken += len;
        }
        if mem::take(&mut conn.ends_writing) {
            self.inner.shutdown_write(conn.token);
        }
    }

    /// Sends the replies that no output of this turn took along.
    pub(super) fn send_replies(&mut self) {
        for token in mem::take(&mut self.replying) {
            if let Some(mut conn) = self.take(token) {
                self.flush(&mut conn);
                self.put(conn);
            }
        }
    }

    /// Ends the sending side: close_notify, then FIN (X6).
    pub(super) fn end_writing(&mut self, conn: &mut Connection<P::Session>) {
        debug_assert!(conn.sending.is_none(), "shutdown_write of {:?} while it sends", conn.token);
        self.append_close(conn);
        conn.ends_writing = true;
        self.flush(conn);
    }

    fn append_close(&mut self, conn: &mut Connection<P::Session>) {
        if conn.phase == Phase::Secured && !mem::replace(&mut conn.has_sent_close, true) {
            conn.session.close_notify(&mut conn.reply);
        }
    }

    /// Prepares the close of a connection by the driver below, with a close_notify if it can still be sent.
    pub(super) fn begin_close(&mut self, conn: &mut Connection<P::Session>, kind: CloseKind) {
        let token = conn.token;
        self.leave_queues(conn);
        self.hold(conn, Vec::new());
        if conn.phase == Phase::Handshake {
            self.counters.note_failure(Failure::TimedOut);
        }
        let is_sent = |event: &mut Event| matches!(event, Event::Sent { token: sent, .. } if *sent == token);
        self.events.extend(self.later.extract_if(.., is_sent));
        if conn.flight.is_none() {
            if let Some(mut sending) = conn.sending.take() {
                let error = sending.failure.take().unwrap_or(SendError::Cancelled);
                let event = self.sent_event(conn, *sending, Err(error));
                self.events.push_back(event);
            } else if kind == CloseKind::Normal && !conn.is_broken_below {
                self.append_close(conn);
                if !conn.reply.is_empty() {
                    let mut wire = self.spare.get();
                    conn.take_reply(wire.bytes_mut());
                    // Its result doesn't matter any more.
                    if !self.inner.send_at_once(token, &mut wire, || false) {
                        conn.flight = Some(Flight { reply: 0, wire: 0 });
                    }
                    self.spare.put(wire);
                }
            }
        }
        conn.reply = Vec::new();
    }
}

/// Returns whether an output has a range of a file that begins before `until`, from `from` on.
fn has_file_before(output: &Output, from: u64, until: u64) -> bool {
    if !output.items().iter().any(|(_, item)| matches!(item, Item::File(_))) {
        return false;
    }
    let mut at = from;
    for piece in output.pieces(from) {
        match piece {
            Piece::File(_) => return at < until,
            Piece::Bytes(bytes) => at += bytes.len() as u64,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{SECURE_SPARE_BYTES_MAX, Spare};
    use crate::Output;

    #[test]
    fn keeps_a_bounded_amount_of_memory() {
        let mut spare = Spare::default();
        for _ in 0..100 {
            let mut output = Output::new();
            output.bytes_mut().extend_from_slice(&[1; 70_000]);
            spare.put(output);
            assert!(spare.bytes <= SECURE_SPARE_BYTES_MAX);
        }
        let kept = spare.outputs.len();
        assert_eq!(kept, SECURE_SPARE_BYTES_MAX / 70_000);
        for _ in 0..kept {
            assert!(spare.get().is_empty());
        }
        assert_eq!((spare.bytes, spare.get().capacity()), (0, 0));
    }
}
