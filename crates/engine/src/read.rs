//! Verb 2, read: passes lent bytes to dispatch in place; copies only leftovers.

use shearwater_io::{CloseKind, Driver, ReadEnd, Token};

use crate::app::App;
use crate::conn::{Flag, Phase};
use crate::ends::End;
use crate::worker::Worker;

impl<D: Driver, A: App> Worker<D, A> {
    /// Processes received bytes, which the driver lends.
    pub(crate) fn received(&mut self, token: Token) {
        let bytes = self.driver.lent();
        let service = &mut self.service;
        service.counters.bytes_received.add(bytes.len() as u64);
        let Some(conn) = service.table.find(token) else { return };
        if conn.phase == Phase::Linger {
            let len = bytes.len();
            return self.linger_received(token, len);
        }
        if !conn.is_serving() {
            return;
        }
        if !conn.is_live() {
            service.keep_input(token, bytes);
            return self.bear_with(token);
        }
        if service.blocks.has_input(conn.block) {
            service.keep_input(token, bytes);
            return self.resume(token);
        }
        let consumed = service.consume(token, bytes, &self.driver);
        if consumed < bytes.len() {
            service.put_off(token, &bytes[consumed..]);
            service.keep_input(token, &bytes[consumed..]);
            service.refuse_if_full(token);
        }
        self.flush(token);
    }

    /// Processes stored input: a longer part of a head, or pipelined requests.
    pub(crate) fn resume(&mut self, token: Token) {
        let service = &mut self.service;
        let index = service.table.get(token).block;
        let Some(block) = service.blocks.get_mut(index) else { return };
        let mut input = std::mem::take(&mut block.input);

        let consumed = service.consume(token, &input, &self.driver);
        input.consume(consumed);
        service.put_off(token, &input);

        let conn = service.table.get(token);
        let mut block = service.blocks.take(token, &mut conn.block);
        block.input = input;
        service.blocks.put(conn.block, block);
        service.refuse_if_full(token);
        self.flush(token);
    }

    /// Queues the end of a connection, which is handled after this turn's events.
    pub(crate) fn read_closed(&mut self, token: Token, end: &ReadEnd) {
        let Some(conn) = self.service.table.find(token) else { return };
        conn.set(Flag::ReadClosed);
        let end = match end {
            ReadEnd::Eof => End::Eof,
            ReadEnd::Broken(_) => End::Broken,
        };
        self.ends.push(token, end);
    }

    /// Queues a FIN after input that waits while receiving is paused. It is handled after this turn's events.
    pub(crate) fn fin_received(&mut self, token: Token) {
        let service = &mut self.service;
        let Some(conn) = service.table.find(token) else { return };
        // Without a block nothing waits: receiving resumes, and reports the FIN again.
        let Some(block) = service.blocks.get_mut(conn.block) else { return };
        block.fin_received = true;
        self.ends.push(token, End::Fin);
    }

    /// Pauses a client that sends more before it has received its responses. If the buffers are full it is
    /// reset: a refusal can't precede the response in flight.
    fn bear_with(&mut self, token: Token) {
        if !self.service.make_room(token) {
            self.service.counters.hit_buffered_bytes.add(1);
            return self.shut(token, CloseKind::Reset);
        }
        self.pause(token);
    }

    /// Pauses receiving. This bounds the input of a worker to one receive, and to the bytes that a driver may
    /// still deliver afterwards.
    fn pause(&mut self, token: Token) {
        let conn = self.service.table.get(token);
        if !conn.has(Flag::Paused) {
            conn.set(Flag::Paused);
            self.driver.recv_pause(token);
        }
    }

    /// Resumes receiving as soon as input can be processed.
    pub(crate) fn unpause(&mut self, token: Token) {
        let conn = self.service.table.get(token);
        if !conn.has(Flag::Paused) || !conn.is_live() {
            return;
        }
        if conn.is_taking() {
            if !self.service.takes_more(token) {
                return;
            }
            // The pause was ours, not the client's.
            self.service.body_begins_anew(token, self.driver.now_ms());
        }
        self.service.table.get(token).unset(Flag::Paused);
        self.driver.recv_resume(token);
    }

    /// Passes stored input to a handler that pulls a body, or pauses receiving while its queue is full.
    pub(crate) fn hold_back(&mut self, token: Token) {
        if self.service.may_be_fed(token) {
            self.service.queue(token);
        } else if !self.service.takes_more(token) && !self.service.table.get(token).has(Flag::Paused) {
            self.pause(token);
            self.service.bound_half_closed(token);
        }
    }
}
