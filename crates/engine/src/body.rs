//! Bodies that don't arrive together with their head: discarded, or buffered.

use shearwater_http1::{BodyDecoder, BodyEvent};
use shearwater_io::Token;

use crate::block::{Block, Destination};
use crate::body_budget::BodyBudget;
use crate::page_pool::PagePool;
use crate::refuse::Refusal;
use crate::request::{Request, Turn};
use crate::request_loop::{Step, StepResult, facts};
use crate::service::{BodyPolicy, Service};
use crate::worker_state::WorkerState;

/// Result of decoding a piece of a body.
pub(crate) enum Piece {
    Starved,
    /// The handler's queue is full.
    Full,
    Complete,
    Refused(Refusal),
}

impl<S: Service> WorkerState<S> {
    /// Returns the largest body allowed under `policy`, in bytes.
    pub(crate) fn body_bytes_max(&self, policy: &BodyPolicy) -> u64 {
        match policy {
            BodyPolicy::Buffer { bytes_max } => self.limits.body_bytes_max.min(*bytes_max),
            BodyPolicy::Discard | BodyPolicy::Call => self.limits.body_bytes_max,
        }
    }

    /// Prepares to receive the body of a complete head, which moves from the worker's parser into the block.
    pub(crate) fn begin_body(
        &mut self,
        token: Token,
        head: &[u8],
        policy: BodyPolicy,
        is_awaited: bool,
    ) -> Step {
        let body_bytes_max = self.body_bytes_max(&policy);
        let conn = self.table.get(token);
        let mut block = self.blocks.take(token, &mut conn.block);
        block.head.extend(head, &mut self.blocks.pool);
        std::mem::swap(&mut self.parser, &mut block.parser);
        self.parser.make_room();
        let parsed = block.parser.head(&block.head);
        block.decoder = Some(BodyDecoder::new(parsed.framing(), self.limits.body()));
        block.body_bytes = 0;
        block.body_bytes_max = body_bytes_max;
        block.budget = BodyBudget::begin(&self.body_rate_rule, self.now_ms);
        block.destination = match policy {
            BodyPolicy::Discard | BodyPolicy::Call => Destination::Discard,
            BodyPolicy::Buffer { .. } => Destination::Buffer,
        };
        self.blocks.put(conn.block, block);
        conn.begin_body();
        if !self.make_room(token) {
            return self.refuse_full(token);
        }
        if is_awaited {
            self.responder.append_continue();
        }
        Step::new(head.len(), StepResult::Body)
    }

    /// Decodes the next piece of the body, and responds once it is complete.
    pub(crate) fn take_body(&mut self, token: Token, input: &[u8], turn: &dyn Turn) -> Step {
        let index = self.table.get(token).block;
        let mut block = self.blocks.take_out(index);
        let bytes_before = block.body_bytes;
        let (consumed, piece) = decode(&mut block, input, &mut self.blocks.pool);
        block.budget = block.budget.earn(&self.body_rate_rule, block.body_bytes - bytes_before, self.now_ms);
        if let Piece::Complete = piece {
            let head = block.parser.head(&block.head);
            let facts = facts(&head, consumed < input.len(), self.is_last(token));
            let is_lost = matches!(block.destination, Destination::Discard) && block.body_bytes > 0;
            let request = Request::new(head, (!is_lost).then_some(&block.body), turn, token);
            let outcome = self.responder.call(&self.service, &request, facts, &mut self.calls);
            let held = block.held_bytes();
            block.end_request(&mut self.blocks.pool);
            let copied = held - block.held_bytes();
            self.blocks.put(index, block);
            return Step::new(consumed, self.conclude(token, outcome, facts, copied));
        }
        // A body that is discarded doesn't grow in memory.
        let is_kept = matches!(block.destination, Destination::Buffer);
        self.blocks.put(index, block);
        match piece {
            Piece::Refused(refusal) => Step::new(consumed, self.refuse(token, refusal).result),
            _ if is_kept && !self.make_room(token) => self.refuse_full(token),
            _ => Step::new(consumed, StepResult::Starve),
        }
    }
}

/// Decodes the available input; returns the bytes consumed.
pub(crate) fn decode(block: &mut Block, input: &[u8], pool: &mut PagePool) -> (usize, Piece) {
    let Some(mut decoder) = block.decoder else { return (0, Piece::Starved) };
    let mut consumed = 0;
    let piece = loop {
        let step = match decoder.decode(&input[consumed..]) {
            Ok(step) => step,
            Err(reject) => break Piece::Refused(Refusal::Rejected(reject)),
        };
        consumed += step.consumed;
        match step.event {
            BodyEvent::Data(bytes) => {
                if let Err(end) = take_data(block, bytes, pool) {
                    break end;
                }
                // Without further input the decoder may still report the end.
                if consumed < input.len() && block.is_fed() {
                    break Piece::Full;
                }
            }
            BodyEvent::Trailer(_) => {}
            BodyEvent::More => break Piece::Starved,
            BodyEvent::Done => break Piece::Complete,
        }
    };
    block.decoder = Some(decoder);
    (consumed, piece)
}

/// Passes a piece of content to the block's destination.
fn take_data(block: &mut Block, bytes: &[u8], pool: &mut PagePool) -> Result<(), Piece> {
    block.body_bytes += bytes.len() as u64;
    if block.body_bytes > block.body_bytes_max {
        return Err(Piece::Refused(Refusal::BodyTooLarge));
    }
    match &mut block.destination {
        Destination::Discard => Ok(()),
        Destination::Buffer => {
            block.body.extend(bytes, pool);
            Ok(())
        }
        Destination::Call(exchange) => {
            exchange.put(bytes);
            Ok(())
        }
    }
}
