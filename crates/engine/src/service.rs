//! Everything of a worker but its driver. Apart, so that requests can be answered while the driver lends their bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use shearwater_http1::HeadParser;
use shearwater_io::Token;

use crate::addresses::Addresses;
use crate::block::Blocks;
use crate::call::Calls;
use crate::conn::Flag;
use crate::control::{Control, Notice};
use crate::counters::Counters;
use crate::eviction::Eviction;
use crate::limits::{Limits, Timeouts};
use crate::outputs::Outputs;
use crate::pace::PaceRule;
use crate::reports::Reports;
use crate::respond::Responder;
use crate::served::Served;
use crate::table::Table;
use crate::wheel::Wheel;

/// A worker's state.
pub(crate) struct Service<A> {
    pub(crate) app: A,
    pub(crate) worker: usize,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    /// See [`Options`](crate::Options).
    pub(crate) trusted_gateway: bool,
    pub(crate) pace_rule: PaceRule,
    pub(crate) table: Table,
    pub(crate) served: Served,
    pub(crate) blocks: Blocks,
    /// Requests that are answered later.
    pub(crate) calls: Calls,
    pub(crate) wheel: Wheel,
    /// Connections with input to go on with, one at a time, each once (`Flag::Queued`): at most as many as connections.
    pub(crate) ready: VecDeque<Token>,
    /// Parses heads that arrive whole; an unfinished one takes it along into its block.
    pub(crate) parser: HeadParser,
    pub(crate) responder: Responder,
    pub(crate) outputs: Outputs,
    pub(crate) addresses: Option<Arc<Addresses>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) control: Arc<Control>,
    /// Connections that were evicted in this turn.
    pub(crate) evicted: Vec<(Token, Eviction)>,
    /// The clock of this turn.
    pub(crate) now_ms: u64,
    /// Faults reported within the last second.
    pub(crate) reports: Reports,
    /// The operator knows of a body that was too long for the limit.
    pub(crate) told_body_limit: bool,
}

impl<A> Service<A> {
    /// Tells the operator, or counts that nobody listens.
    pub(crate) fn tell(&self, notice: Notice) {
        if !self.control.tell(notice) {
            self.counters.hit_notices.add(1);
        }
    }

    /// Puts a connection at the end of the ready queue, unless it is in it.
    pub(crate) fn queue(&mut self, token: Token) {
        let conn = self.table.get(token);
        if !conn.has(Flag::Queued) {
            conn.set(Flag::Queued);
            self.ready.push_back(token);
        }
    }

    /// Keeps input that can't be looked at yet, or that is a part of something.
    pub(crate) fn keep_input(&mut self, token: Token, bytes: &[u8]) {
        let conn = self.table.get(token);
        let stray = conn.take_stray();
        let mut block = self.blocks.take(token, &mut conn.block);
        block.input.extend(stray, &mut self.blocks.pool);
        block.input.extend(bytes, &mut self.blocks.pool);
        self.blocks.put(conn.block, block);
        if !stray.is_empty() {
            self.queue(token);
        }
    }
}
