//! Passes bytes and ends between the tunnels of streams and the programs' ends of socket pairs.

use shearwater_http2::{ErrorCode, StreamId};
use shearwater_io::{CloseKind, Driver, Output, ReadEnd, SendError, Token};

use crate::http2::outgoing::End;
use crate::http2::tunnel::{Program, StreamTunnel};
use crate::limits::TUNNEL_BYTES_MAX;
use crate::observe::record::ExchangeEnd;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker::state::WorkerState;

impl<S: Service> WorkerState<S> {
    /// Begins the tunnel that the response encoded last opens, if it does.
    pub(super) fn begin_tunnel(&mut self, token: Token, id: StreamId) {
        let Some(taker) = self.responder.taker.take() else { return };
        let many = self.responder.http2.as_mut().expect("a connection was entered");
        if std::mem::take(&mut many.opens_tunnel) {
            let mut tunnel = Box::new(StreamTunnel::new(taker));
            self.http2.tunnels.wake(token, id, &mut tunnel);
            // The CONNECT itself may have ended the client's side.
            let is_whole = many.connection.is_request_ended(id);
            let stream = many.stream(id);
            (stream.tunnel, stream.is_early_whole) = (Some(tunnel), is_whole);
        }
    }

    /// Keeps what the client has sent through a tunnel until its program takes it.
    pub(super) fn receive_for_program(&mut self, token: Token, id: StreamId, content: &[u8], ends: bool) {
        let many = self.responder.http2.as_mut().expect("a connection was entered");
        let Some(stream) = many.find(id) else { return };
        stream.early.extend_from_slice(content);
        stream.is_early_whole |= ends;
        self.wake_tunnel(token, id);
    }

    /// Has a tunnel continue at the end of the turn.
    pub(super) fn wake_tunnel(&mut self, token: Token, id: StreamId) {
        let many = self.responder.http2.as_mut().expect("a connection was entered");
        if let Some(tunnel) = many.find(id).and_then(|stream| stream.tunnel.as_deref_mut()) {
            self.http2.tunnels.wake(token, id, tunnel);
        }
    }

    /// Drops a tunnel whose stream has ended; its program's end is closed at the end of the turn.
    pub(super) fn drop_tunnel(&mut self, tunnel: &StreamTunnel) {
        self.http2.tunnels.remove(tunnel);
    }

    /// Returns the number of connections whose open streams are all tunnels.
    pub(crate) fn lone_clients(&mut self) -> usize {
        let tunnels = self.http2.tunnels.by_client();
        tunnels.into_iter().filter(|&(client, count)| self.open_streams(client) == count).count()
    }

    /// Passes on what can be passed on towards the client: the end of the program's bytes, or room for more of them.
    fn continue_to_client(&mut self, id: StreamId, driver: &mut impl Driver) {
        let (out, many) = self.entered();
        let Some(stream) = many.find(id).filter(|stream| stream.outgoing.is_empty()) else { return };
        let Some(tunnel) = &mut stream.tunnel else { return };
        if tunnel.has_ended && !tunnel.is_response_ended {
            stream.outgoing.end = Some(End::Complete { trailers: Vec::new() });
            many.end_drained(id, out);
        } else if let Program::Connected(program) = tunnel.program
            && std::mem::take(&mut tunnel.is_paused)
        {
            driver.recv_resume(program);
        }
    }

    /// Lets the client send as much as its program has taken.
    fn credit_tunnel(&mut self, id: StreamId, bytes: usize) {
        let (out, many) = self.entered();
        many.connection.consumed(id, bytes, out.bytes_mut());
    }

    /// Ends the stream of a tunnel of which nothing more is waited for.
    fn finish_if_over(&mut self, token: Token, id: StreamId) {
        let (out, many) = self.entered();
        let is_over = |tunnel: &StreamTunnel| tunnel.is_over();
        if many.find(id).is_some_and(|stream| stream.tunnel.as_deref().is_some_and(is_over)) {
            many.connection.ended(id, out.bytes_mut());
            if let Some(stream) = many.remove(id) {
                self.drop_stream(token, stream, ExchangeEnd::Complete);
            }
        }
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Continues a tunnel, and leaves its connection with output for the end of the turn.
    pub(super) fn run_tunnel(&mut self, client: Token, id: StreamId) {
        if !self.state.enter(client) {
            return;
        }
        let (_, many) = self.state.entered();
        let tunnel = many.find(id).and_then(|stream| stream.tunnel.as_deref_mut());
        let taker = tunnel.and_then(|tunnel| {
            tunnel.is_ready = false;
            match &mut tunnel.program {
                Program::Awaited(taker) => taker.take(),
                Program::Connected(_) => None,
            }
        });
        let handed = taker.map(|taker| (taker, self.connect_program(client, id)));
        self.continue_tunnel(client, id);
        self.state.leave_unflushed(client);
        if let Some((taker, Some((program, descriptor, unread)))) = handed {
            self.give_out(program, taker, descriptor.into(), unread);
        }
    }

    /// Connects a tunnel with one end of a new socket pair. Returns its token, the program's end, and what the client has
    /// sent so far. Without a descriptor or slot the stream is reset: the `200` was sent.
    fn connect_program(
        &mut self,
        client: Token,
        id: StreamId,
    ) -> Option<(Token, std::os::unix::net::UnixStream, Vec<u8>)> {
        let Ok((program, descriptor)) = self.adopt_pair() else {
            self.state.reset_stream(client, id, ErrorCode::InternalError, ExchangeEnd::Truncated);
            return None;
        };
        self.state.http2.tunnels.programs.insert(program, (client, id));
        let (_, many) = self.state.entered();
        let stream = many.find(id)?;
        stream.tunnel.as_mut()?.program = Program::Connected(program);
        let unread = std::mem::take(&mut stream.early);
        self.state.credit_tunnel(id, unread.len());
        Some((program, descriptor, unread))
    }

    /// Passes on what can be passed on in both directions.
    fn continue_tunnel(&mut self, client: Token, id: StreamId) {
        self.continue_to_program(id);
        self.state.continue_to_client(id, &mut self.driver);
        self.state.finish_if_over(client, id);
    }

    /// Sends what has come from the client, unless a send is in flight; then the end of it.
    fn continue_to_program(&mut self, id: StreamId) {
        let (_, many) = self.state.entered();
        let Some(stream) = many.find(id) else { return };
        let Some(tunnel) = &mut stream.tunnel else { return };
        let Program::Connected(program) = tunnel.program else { return };
        if tunnel.in_flight > 0 {
            return;
        }
        let len = stream.early.len();
        if tunnel.is_shut {
            stream.early = Vec::new();
            return self.state.credit_tunnel(id, len);
        }
        if len > 0 {
            let mut output = Output::default();
            *output.bytes_mut() = std::mem::take(&mut stream.early);
            // Ahead of the driver's count, so that none of it counts as sent to clients.
            self.tunnels.carried += len as u64;
            if !self.driver.send_at_once(program, &mut output, || true) {
                tunnel.in_flight = len;
                return;
            }
            self.state.credit_tunnel(id, len);
            self.state.outputs.recycle(output);
        }
        let (_, many) = self.state.entered();
        if let Some(stream) = many.find(id).filter(|stream| stream.is_early_whole)
            && let Some(tunnel) = &mut stream.tunnel
        {
            tunnel.is_shut = true;
            self.driver.shutdown_write(program);
        }
    }

    /// Passes on what a program has sent.
    pub(crate) fn program_sent(&mut self, program: Token) {
        self.at_program(program, |worker, _, id| {
            let (_, many) = worker.state.entered();
            let Some(stream) = many.find(id) else { return };
            let Some(tunnel) = &mut stream.tunnel else { return };
            let waits = !stream.outgoing.is_empty();
            stream.outgoing.queue().extend_from_slice(worker.driver.lent());
            let available = stream.outgoing.len();
            debug_assert!(available <= TUNNEL_BYTES_MAX as u64, "{available} bytes wait in a tunnel");
            if waits && !std::mem::replace(&mut tunnel.is_paused, true) {
                worker.driver.recv_pause(program);
            }
            many.connection.set_available(id, available);
        });
    }

    /// Continues after a send to a program.
    pub(crate) fn sent_to_program(&mut self, program: Token, output: Output, result: &Result<(), SendError>) {
        self.state.outputs.recycle(output);
        let failed_at = result.is_err().then(|| self.driver.send_progress(program));
        self.at_program(program, |worker, client, id| {
            let (_, many) = worker.state.entered();
            let Some(tunnel) = many.find(id).and_then(|stream| stream.tunnel.as_mut()) else { return };
            let len = std::mem::take(&mut tunnel.in_flight);
            // After an error the program has closed its end. What it has sent still comes.
            tunnel.is_shut |= failed_at.is_some();
            worker.tunnels.carried -= failed_at.map_or(0, |sent| (len as u64).saturating_sub(sent));
            worker.state.credit_tunnel(id, len);
            worker.continue_tunnel(client, id);
        });
    }

    /// Notes the end of a send to a program's end that is closed at the end of this turn.
    pub(crate) fn sent_to_closing(&mut self, to: Token, result: &Result<(), SendError>) {
        let closing = &mut self.state.http2.tunnels.closing;
        if let Some((_, in_flight)) = closing.iter_mut().find(|(program, _)| result.is_ok() && *program == to)
        {
            *in_flight = 0;
        }
    }

    /// Notes that a program sends nothing more, and passes that on: its break as a reset (RFC 8441 section 5).
    pub(crate) fn program_ended(&mut self, program: Token, how: &ReadEnd) {
        self.at_program(program, |worker, client, id| {
            let ReadEnd::Broken(_) = how else { return worker.end_program(client, id, false) };
            let (_, many) = worker.state.entered();
            let Some(stream) = many.find(id) else { return };
            if stream.outgoing.is_empty() {
                return worker.state.reset_cut(client, id);
            }
            // The last bytes that it has sent come before that.
            stream.outgoing.end = Some(End::Cut);
            if let Some(tunnel) = &mut stream.tunnel {
                (tunnel.has_ended, tunnel.is_shut) = (true, true);
            }
            worker.continue_tunnel(client, id);
        });
    }

    /// Notes that a program has dropped the guard of its tunnel. Returns false if the token isn't one of a program.
    pub(crate) fn program_left(&mut self, program: Token) -> bool {
        let is_known = self.state.http2.tunnels.has(program);
        self.at_program(program, |worker, client, id| {
            let (_, many) = worker.state.entered();
            if let Some(tunnel) = many.find(id).and_then(|stream| stream.tunnel.as_mut()) {
                tunnel.is_left = true;
            }
            worker.continue_tunnel(client, id);
        });
        is_known
    }

    /// Ends the bytes of a program. `is_left`: nothing is waited for after them.
    fn end_program(&mut self, client: Token, id: StreamId, is_left: bool) {
        let (_, many) = self.state.entered();
        if let Some(tunnel) = many.find(id).and_then(|stream| stream.tunnel.as_mut()) {
            tunnel.has_ended = true;
            tunnel.is_left |= is_left;
        }
        self.continue_tunnel(client, id);
    }

    /// Works on the stream of a program's tunnel, and leaves its connection with output for the end of the turn.
    fn at_program(&mut self, program: Token, work: impl FnOnce(&mut Self, Token, StreamId)) {
        let Some(&(client, id)) = self.state.http2.tunnels.programs.get(&program) else { return };
        if self.state.enter(client) {
            work(self, client, id);
            self.state.leave_unflushed(client);
        }
    }

    /// Ends all tunnels on streams.
    pub(crate) fn end_stream_tunnels(&mut self) {
        let tunnels: Vec<_> = self.state.http2.tunnels.programs.values().copied().collect();
        for (client, id) in tunnels {
            if !self.state.enter(client) {
                continue;
            }
            let (_, many) = self.state.entered();
            let tunnel = many.find(id).and_then(|stream| stream.tunnel.as_deref());
            if tunnel.is_none_or(|tunnel| tunnel.has_ended && tunnel.is_left) {
                self.state.leave(client);
            } else {
                self.end_program(client, id, true);
                self.state.leave_unflushed(client);
            }
        }
    }

    /// Closes the programs' ends of tunnels that have ended in this turn.
    #[inline]
    pub(crate) fn close_programs(&mut self) {
        while let Some((program, in_flight)) = self.state.http2.tunnels.closing.pop() {
            if in_flight > 0 {
                self.tunnels.carried -= (in_flight as u64).saturating_sub(self.driver.send_progress(program));
            }
            self.driver.close(program, CloseKind::Normal);
        }
    }
}
