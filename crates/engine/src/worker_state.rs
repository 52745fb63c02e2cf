//! A worker's state except its driver, so that requests can be processed while the driver lends their bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use shearwater_http1::HeadParser;
use shearwater_io::Token;

use crate::addresses::Addresses;
use crate::block::Blocks;
use crate::body_budget::BodyRateRule;
use crate::call::Calls;
use crate::connection::Flag;
use crate::control::{Control, Notice};
use crate::counters::Counters;
use crate::eviction::Eviction;
use crate::limits::{Limits, Timeouts};
use crate::outputs::Outputs;
use crate::reports::Reports;
use crate::respond::Responder;
use crate::served::Served;
use crate::table::Table;
use crate::wheel::Wheel;

/// A worker's state.
pub(crate) struct WorkerState<S> {
    pub(crate) service: S,
    pub(crate) worker: usize,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    /// See [`Options`](crate::Options).
    pub(crate) trusted_gateway: bool,
    pub(crate) body_rate_rule: BodyRateRule,
    pub(crate) table: Table,
    pub(crate) served: Served,
    pub(crate) blocks: Blocks,
    /// Deferred requests.
    pub(crate) calls: Calls,
    pub(crate) wheel: Wheel,
    /// Ready queue: connections with pending input, each once (`Flag::Queued`), so at most one entry per
    /// connection.
    pub(crate) ready: VecDeque<Token>,
    /// Parser for heads that arrive whole; an unfinished head takes it along into its block.
    pub(crate) parser: HeadParser,
    pub(crate) responder: Responder,
    pub(crate) outputs: Outputs,
    pub(crate) addresses: Option<Arc<Addresses>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) control: Arc<Control>,
    /// Connections that were evicted in this turn.
    pub(crate) evicted: Vec<(Token, Eviction)>,
    /// Clock of this turn.
    pub(crate) now_ms: u64,
    /// Faults reported within the last second.
    pub(crate) reports: Reports,
    /// The first body over the limit has been reported.
    pub(crate) is_body_limit_reported: bool,
}

impl<S> WorkerState<S> {
    /// Queues a notice for the operator, or counts that it was dropped.
    pub(crate) fn notify(&self, notice: Notice) {
        if !self.control.notify(notice) {
            self.counters.hit_notices.add(1);
        }
    }

    /// Appends a connection to the ready queue, unless it is in it.
    pub(crate) fn queue(&mut self, token: Token) {
        let conn = self.table.get(token);
        if !conn.has(Flag::Queued) {
            conn.set(Flag::Queued);
            self.ready.push_back(token);
        }
    }

    /// Stores input that can't be processed yet, or is incomplete.
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
