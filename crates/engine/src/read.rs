//! Verb 2, read: passes lent bytes to dispatch in place; copies only leftovers.

use shearwater_io::{CloseKind, Driver, ReadEnd, Token};

use crate::conn::{Flag, Phase};
use crate::disconnects::Disconnect;
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Processes received bytes, which the driver lends.
    pub(crate) fn received(&mut self, token: Token) {
        let bytes = self.driver.lent();
        let state = &mut self.state;
        state.counters.bytes_received.add(bytes.len() as u64);
        let Some(conn) = state.table.find(token) else { return };
        if conn.phase == Phase::Linger {
            let len = bytes.len();
            return self.linger_received(token, len);
        }
        if !conn.is_serving() {
            return;
        }
        if !conn.is_live() {
            state.keep_input(token, bytes);
            return self.pause_reading(token);
        }
        if state.blocks.has_input(conn.block) {
            state.keep_input(token, bytes);
            return self.resume(token);
        }
        let consumed = state.consume(token, bytes, &self.driver);
        if consumed < bytes.len() {
            state.count_wait(token, &bytes[consumed..]);
            state.keep_input(token, &bytes[consumed..]);
            state.refuse_if_full(token);
        }
        self.flush(token);
    }

    /// Processes stored input: a longer part of a head, or pipelined requests.
    pub(crate) fn resume(&mut self, token: Token) {
        let state = &mut self.state;
        let index = state.table.get(token).block;
        let Some(block) = state.blocks.get_mut(index) else { return };
        let mut input = std::mem::take(&mut block.input);

        let consumed = state.consume(token, &input, &self.driver);
        input.consume(consumed);
        state.count_wait(token, &input);

        let conn = state.table.get(token);
        let mut block = state.blocks.take(token, &mut conn.block);
        block.input = input;
        state.blocks.put(conn.block, block);
        state.refuse_if_full(token);
        self.flush(token);
    }

    /// Queues the end of a connection, which is handled after this turn's events.
    pub(crate) fn read_closed(&mut self, token: Token, end: &ReadEnd) {
        let Some(conn) = self.state.table.find(token) else { return };
        conn.set(Flag::ReadClosed);
        let end = match end {
            ReadEnd::Eof => Disconnect::Eof,
            ReadEnd::Broken(_) => Disconnect::Broken,
        };
        self.disconnects.push(token, end);
    }

    /// Queues a FIN after input that waits while receiving is paused. It is handled after this turn's events.
    pub(crate) fn fin_received(&mut self, token: Token) {
        let state = &mut self.state;
        let Some(conn) = state.table.find(token) else { return };
        // Without a block nothing waits: receiving resumes, and reports the FIN again.
        let Some(block) = state.blocks.get_mut(conn.block) else { return };
        block.fin_received = true;
        self.disconnects.push(token, Disconnect::Fin);
    }

    /// Pauses a client that sends more before it has received its responses. If the buffers are full it is
    /// reset: a refusal can't precede the response in flight.
    fn pause_reading(&mut self, token: Token) {
        if !self.state.make_room(token) {
            self.state.counters.hit_buffered_bytes.add(1);
            return self.shut(token, CloseKind::Reset);
        }
        self.pause(token);
    }

    /// Pauses receiving. This bounds the input of a worker to one receive, and to the bytes that a driver may
    /// still deliver afterwards.
    fn pause(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        if !conn.has(Flag::Paused) {
            conn.set(Flag::Paused);
            self.driver.recv_pause(token);
        }
    }

    /// Resumes receiving as soon as input can be processed.
    pub(crate) fn unpause(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        if !conn.has(Flag::Paused) || !conn.is_live() {
            return;
        }
        if conn.is_pulling_body() {
            if !self.state.takes_more(token) {
                return;
            }
            // The pause was ours, not the client's.
            self.state.restart_body(token, self.driver.now_ms());
        }
        self.state.table.get(token).unset(Flag::Paused);
        self.driver.recv_resume(token);
    }

    /// Passes stored input to a handler that pulls a body, or pauses receiving while its queue is full.
    pub(crate) fn hold_back(&mut self, token: Token) {
        if self.state.can_feed(token) {
            self.state.queue(token);
        } else if !self.state.takes_more(token) && !self.state.table.get(token).has(Flag::Paused) {
            self.pause(token);
            self.state.bound_half_closed(token);
        }
    }
}
