//! Verb 2, read: lent bytes go to dispatch where they are; only leftovers are copied.

use shearwater_io::{CloseKind, Driver, ReadEnd, Token};

use crate::app::App;
use crate::conn::{Flag, Phase};
use crate::ends::End;
use crate::worker::Worker;

impl<D: Driver, A: App> Worker<D, A> {
    /// Bytes have arrived: the driver lends them.
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

    /// Goes on with input that was kept: a head that has got longer, or pipelined requests whose turn it is.
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

    /// The peer has ended its side, or the connection is broken: acted on behind this turn's events.
    pub(crate) fn read_closed(&mut self, token: Token, end: &ReadEnd) {
        let Some(conn) = self.service.table.find(token) else { return };
        conn.set(Flag::ReadClosed);
        let end = match end {
            ReadEnd::Eof => End::Eof,
            ReadEnd::Broken(_) => End::Broken,
        };
        self.ends.push(token, end);
    }

    /// Handles a FIN behind input that waits while receiving is paused. It is acted on behind this turn's events.
    pub(crate) fn fin_received(&mut self, token: Token) {
        let service = &mut self.service;
        let Some(conn) = service.table.find(token) else { return };
        // Without a block nothing waits: receiving is about to go on, and tells it anew.
        let Some(block) = service.blocks.get_mut(conn.block) else { return };
        block.fin_received = true;
        self.ends.push(token, End::Fin);
    }

    /// Pauses a client that sends more before it has received its responses. If the buffers are full it is reset: a refusal can't precede
    /// the response in flight.
    fn bear_with(&mut self, token: Token) {
        if !self.service.make_room(token) {
            self.service.counters.hit_buffered_bytes.add(1);
            return self.shut(token, CloseKind::Reset);
        }
        self.pause(token);
    }

    /// It is not read meanwhile: what it may make a worker keep is one receive, and what a driver may still deliver after a
    /// pause.
    fn pause(&mut self, token: Token) {
        let conn = self.service.table.get(token);
        if !conn.has(Flag::Paused) {
            conn.set(Flag::Paused);
            self.driver.recv_pause(token);
        }
    }

    /// Receives again as soon as input can be looked at again.
    pub(crate) fn unpause(&mut self, token: Token) {
        let conn = self.service.table.get(token);
        if !conn.has(Flag::Paused) || !conn.is_live() {
            return;
        }
        if conn.is_taking() {
            if !self.service.takes_more(token) {
                return;
            }
            // That nothing came meanwhile was not the client's doing.
            self.service.body_begins_anew(token, self.driver.now_ms());
        }
        self.service.table.get(token).unset(Flag::Paused);
        self.driver.recv_resume(token);
    }

    /// A handler takes a body: it gets the rest of what was received, or has enough for now and no more is received.
    pub(crate) fn hold_back(&mut self, token: Token) {
        if self.service.may_be_fed(token) {
            self.service.queue(token);
        } else if !self.service.takes_more(token) && !self.service.table.get(token).has(Flag::Paused) {
            self.pause(token);
            self.service.bound_half_closed(token);
        }
    }
}
