//! Records of exchanges on streams of HTTP/2. Each keeps its own until its response is complete: they end in any order.

use shearwater_io::Token;

use crate::observe::ledger::{Ledger, MULTIPLEXED};
use crate::observe::record::{ExchangeEnd, Group, Progress, Received};
use crate::proxies::Proxies;
use crate::response::responder::Responder;

impl Ledger {
    /// A connection has begun HTTP/2.
    pub(crate) fn multiplex(&mut self, token: Token) {
        if let Some(slot) = self.slots.get_mut(token.slot()) {
            slot.marks |= MULTIPLEXED;
        }
    }

    pub(crate) fn turn_us(&self) -> u64 {
        self.turn_us
    }

    /// Describes a request whose response is incomplete, or never comes.
    pub(crate) fn describe_stream(
        &self,
        token: Token,
        received: &Received<'_>,
        proxies: Option<&Proxies>,
    ) -> Box<Group> {
        let mut own = Box::<Group>::default();
        own.describe(token, received, &self.wanted, proxies).begun_us = self.turn_us;
        own
    }

    /// Stores when a stream's request began, and the bytes received of its content, for the response that follows.
    pub(crate) fn receive_stream(&mut self, token: Token, begun_us: u64, bytes: u64) {
        if let Some(slot) = self.slots.get_mut(token.slot()) {
            (slot.begun_us, slot.body_received) = (begun_us, bytes);
        }
    }

    /// Ends the exchange of a stream. What is left of its response is in the output.
    pub(crate) fn end_stream(&mut self, mut record: Box<Group>, body_received: u64, end: ExchangeEnd) {
        let first = &mut record.records[0];
        (first.progress, first.body_received) = (Progress::Whole(end), body_received);
        self.current.append(&mut record);
    }

    /// Swaps the records of the present output with those of another one.
    pub(crate) fn swap_current(&mut self, other: &mut Group) {
        std::mem::swap(&mut self.current, other);
    }

    /// Keeps the records of the present output, which is never sent, until the connection is closed.
    pub(crate) fn keep_current(&mut self, token: Token) {
        let mut current = std::mem::take(&mut self.current);
        self.keep(token, &mut current);
    }

    /// Describes a request, and counts its whole response that was just encoded.
    pub(crate) fn respond_whole(
        &mut self,
        token: Token,
        received: &Received<'_>,
        status: u16,
        responder: &Responder,
        proxies: Option<&Proxies>,
    ) {
        let (begun_us, body_received) = self.take_request(token);
        let record = self.current.describe(token, received, &self.wanted, proxies);
        (record.begun_us, record.body_received) = (begun_us, body_received);
        record.head_bytes = responder.head_bytes as u32;
        record.queued = responder.out.len() - responder.begun_at;
        (record.status, record.tag) = (status, responder.tag());
        record.progress = Progress::Whole(ExchangeEnd::Complete);
    }
}
