//! Tunnels of upgraded connections with TLS: the program gets one end of a socket pair, and the worker copies between the
//! other end and the client.

use std::io;
use std::os::unix::net::UnixStream;

use shearwater_io::{CloseKind, Driver, Output, ReadEnd, SendError, Token};

use crate::connection::Flag;
use crate::limits::TUNNEL_BYTES_MAX;
use crate::observe::record::ExchangeEnd;
use crate::server::drain::{Accepting, Lifecycle};
use crate::service::Service;
use crate::upgrade::Taker;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Returns true if events of a connection belong to its tunnel.
    #[inline(always)]
    pub(crate) fn is_joined(&self, token: Token) -> bool {
        D::SECURES && self.tunnels.has(token) || self.state.http2.tunnels.has(token)
    }

    /// Hands a secured connection over: its bytes, by a socket pair.
    #[cold]
    pub(crate) fn open_tunnel(&mut self, client: Token, taker: Taker, unread: Vec<u8>) {
        let Ok((program, descriptor)) = self.adopt_pair() else {
            // No descriptor or slot is left. The `101` was sent.
            return self.broken(client);
        };
        self.tunnels.open(client, program);
        let conn = self.state.table.get(client);
        conn.join();
        let (is_paused, has_ended) = (conn.has(Flag::Paused), conn.has(Flag::ReadClosed));
        conn.unset(Flag::Paused);
        self.reconcile(client);
        if is_paused {
            self.driver.recv_resume(client);
        }
        if has_ended {
            self.flow_ended(client, &ReadEnd::Eof);
        }
        self.give_out(client, taker, descriptor.into(), unread);
    }

    /// Returns the token of one end of a new socket pair, and the other end.
    pub(crate) fn adopt_pair(&mut self) -> io::Result<(Token, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        Ok((self.driver.adopt(ours.into())?, theirs))
    }

    /// Passes received bytes on.
    #[cold]
    pub(crate) fn forward(&mut self, from: Token) {
        let Some((source, to, end)) = self.tunnels.both(from) else { return self.program_sent(from) };
        if source.has_ended {
            return;
        }
        let bytes = self.driver.lent();
        if end.in_flight == 0 {
            let mut output = self.state.outputs.take();
            output.bytes_mut().extend_from_slice(bytes);
            return self.send_through(to, output);
        }
        end.pending.bytes_mut().extend_from_slice(bytes);
        debug_assert!(end.held() <= TUNNEL_BYTES_MAX, "{} bytes wait in a tunnel", end.held());
        let (held, added) = (end.held() + source.held(), bytes.len());
        let client = if source.is_client { from } else { to };
        if !std::mem::replace(&mut source.is_paused, true) {
            self.driver.recv_pause(from);
        }
        self.note_held(added, 0);
        if self.state.busy.is_full() && !self.state.make_memory_room_for(client, held) {
            self.state.count_full_buffers();
            self.shut_as(client, CloseKind::Reset, ExchangeEnd::Evicted);
        }
    }

    /// Sends to an end that has no send in flight.
    fn send_through(&mut self, to: Token, mut output: Output) {
        let len = output.bytes().len();
        if self.driver.send_at_once(to, &mut output, || true) {
            self.state.outputs.recycle(output);
            self.note_carried(to, len as u64);
            return self.flushed(to);
        }
        self.note_held(len, 0);
        let Some(end) = self.tunnels.get(to) else { return };
        end.in_flight = len;
        if end.is_left {
            self.bound_send(to);
        }
    }

    /// Continues after a send.
    #[cold]
    pub(crate) fn forwarded(&mut self, to: Token, output: Output, result: &Result<(), SendError>) {
        if self.state.http2.tunnels.has(to) {
            return self.sent_to_program(to, output, result);
        }
        self.state.outputs.recycle(output);
        let sent = result.is_err().then(|| self.driver.send_progress(to));
        let Some(end) = self.tunnels.get(to) else { return };
        let (len, pending) = (std::mem::take(&mut end.in_flight), std::mem::take(&mut end.pending));
        let is_client = end.is_client;
        self.note_held(0, len + pending.bytes().len());
        self.note_carried(to, sent.unwrap_or(len as u64));
        if is_client {
            self.state.table.get(to).end_send();
        }
        match result {
            Ok(()) if !pending.is_empty() => self.send_through(to, pending),
            Err(_) if is_client => self.broken(to),
            // After an error the program has closed its end, and later sends fail, too. What it has sent still comes.
            _ => self.flushed(to),
        }
    }

    /// Continues with the source of an end that was sent everything.
    fn flushed(&mut self, to: Token) {
        let Some((_, from, source)) = self.tunnels.both(to) else { return };
        if source.has_ended {
            return self.pass_end(to);
        }
        if std::mem::take(&mut source.is_paused) {
            self.driver.recv_resume(from);
        }
    }

    /// Notes that an end sends nothing more.
    #[cold]
    pub(crate) fn flow_ended(&mut self, from: Token, how: &ReadEnd) {
        let Some((source, to, end)) = self.tunnels.both(from) else { return self.program_ended(from, how) };
        source.has_ended = true;
        let (is_client, is_flushed) = (source.is_client, end.in_flight == 0);
        if is_client {
            self.state.table.get(from).set(Flag::ReadClosed);
        }
        match how {
            ReadEnd::Broken(_) if is_client => self.broken(from),
            ReadEnd::Broken(_) => self.shut(to, CloseKind::Reset),
            ReadEnd::Eof if is_flushed => self.pass_end(to),
            ReadEnd::Eof => {}
        }
    }

    /// Ends the sending side of an end that was sent everything, and the tunnel if nothing more can come.
    fn pass_end(&mut self, to: Token) {
        let Some((end, from, source)) = self.tunnels.both(to) else { return };
        let was_shut = std::mem::replace(&mut end.is_shut, true);
        if end.has_ended && source.is_shut || end.is_left {
            let client = if end.is_client { to } else { from };
            return self.finish_tunnel(client);
        }
        if !was_shut {
            self.driver.shutdown_write(to);
        }
    }

    /// Ends a tunnel whose client was sent everything.
    fn finish_tunnel(&mut self, client: Token) {
        let has_ended = self.tunnels.get(client).is_none_or(|end| end.has_ended);
        let is_paused = self.tunnels.get(client).is_some_and(|end| end.is_paused);
        if has_ended {
            return self.shut(client, CloseKind::Normal);
        }
        self.close_tunnel(client);
        if is_paused {
            self.driver.recv_resume(client);
        }
        self.state.table.get(client).linger();
        self.reconcile(client);
        self.driver.shutdown_write(client);
    }

    /// Closes the program's end of a client's tunnel.
    #[cold]
    pub(crate) fn close_tunnel(&mut self, client: Token) {
        if let Some((program, held)) = self.tunnels.remove(client) {
            self.note_held(0, held);
            self.driver.close(program, CloseKind::Normal);
        }
    }

    /// Notes that the program has dropped the guard of a tunnel's connection. From now on the client's sends have a
    /// deadline, and nothing is waited for after them.
    pub(crate) fn leave_tunnel(&mut self, client: Token) {
        let Some(end) = self.tunnels.get(client) else { return };
        end.is_left = true;
        if end.is_shut {
            self.finish_tunnel(client);
        } else if end.in_flight > 0 {
            self.bound_send(client);
        }
    }

    /// Ends the tunnels of a worker that has nothing else left to end.
    #[cold]
    pub(crate) fn end_tunnels(&mut self) {
        if self.lifecycle == Lifecycle::Serving || self.accepting != Accepting::Stopped {
            return;
        }
        let on_streams = self.state.http2.tunnels.len();
        let without_clients = self.handed_over.open + 2 * self.tunnels.len() + on_streams;
        let others = self.driver.connections().saturating_sub(without_clients);
        // At most one client a tunnel: compared first, which spares counting them in each turn of a drain.
        if others > on_streams || others > self.state.lone_clients() {
            return;
        }
        self.end_stream_tunnels();
        for client in self.tunnels.clients() {
            let Some((end, _, program)) = self.tunnels.both(client) else { continue };
            program.has_ended = true;
            end.is_left = true;
            if end.in_flight == 0 {
                self.finish_tunnel(client);
            } else {
                self.bound_send(client);
            }
        }
    }

    /// Sets the deadline of a client's send.
    fn bound_send(&mut self, client: Token) {
        let conn = self.state.table.get(client);
        if !conn.has(Flag::Sending) {
            conn.begin_send();
            self.state.set_send_deadline(client);
        }
    }

    /// Accounts for bytes that wait in a tunnel, and for those that don't any more.
    fn note_held(&self, added: usize, removed: usize) {
        let held = self.state.calls.held_bytes();
        held.set(held.get() + added - removed);
    }

    fn note_carried(&mut self, to: Token, bytes: u64) {
        if self.tunnels.get(to).is_some_and(|end| !end.is_client) {
            self.tunnels.carried += bytes;
        }
    }

    /// Returns the bytes that were sent to clients, as far as is known. It never decreases.
    pub(crate) fn bytes_sent(&self) -> u64 {
        let sent = self.driver.bytes_taken().saturating_sub(self.tunnels.carried);
        sent.max(self.state.counters.bytes_sent.get())
    }
}
