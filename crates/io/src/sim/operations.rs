//! The driver's operations: counted, hashed, the latest kept, and their faults.

use std::collections::VecDeque;

use super::options::{Fault, Rng, SimOptions};
use crate::Token;

/// Operations kept for [`SimNet::trace`](super::SimNet::trace): the latest.
pub const TRACE_OPERATIONS_MAX: usize = 4096;

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Took a connection from the queue.
    Accept,
    /// Failed to accept.
    AcceptFail,
    /// Reported that the listeners are closed.
    AcceptStop,
    /// Lent bytes.
    Receive,
    /// Reported the end of the receiving side.
    ReadEnd,
    /// Reported the end of the peer's side while receiving is paused.
    PeerEnd,
    /// Attempted to pass bytes to the network.
    SendAttempt,
    /// Reported that a send isn't done.
    Unsent,
    /// Returned an output.
    Sent,
    /// Reported that a connection can't be detached.
    Detached,
    /// Ended the sending side.
    Shutdown,
    /// Closed, by the worker's verb.
    Close,
    /// Reported that a connection is closed.
    Closed,
    /// Reported a wake.
    Wake,
}

/// An operation of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Its number, from 0, as in `SimOptions::fault_at`.
    pub index: u64,
    /// Its kind.
    pub kind: OperationKind,
    /// Its connection, if there is one yet.
    pub token: Option<Token>,
    /// Its fault.
    pub fault: Option<Fault>,
    /// The driven clock, in milliseconds.
    pub at_ms: u64,
    /// Bytes moved.
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct Trace {
    /// Number of operations so far; also the next one's index.
    pub(super) operations: u64,
    /// FNV-1a over the operations that are no longer in `latest`.
    folded: u64,
    pub(super) latest: VecDeque<Operation>,
}

impl Trace {
    pub(super) const fn new() -> Self {
        Self { operations: 0, folded: 0xCBF2_9CE4_8422_2325, latest: VecDeque::new() }
    }

    pub(super) fn record(
        &mut self,
        kind: OperationKind,
        token: Option<Token>,
        fault: Option<Fault>,
        at_ms: u64,
    ) {
        if self.latest.len() == TRACE_OPERATIONS_MAX
            && let Some(oldest) = self.latest.pop_front()
        {
            self.folded = fold(self.folded, &oldest);
        }
        self.latest.push_back(Operation { index: self.operations, kind, token, fault, at_ms, bytes: 0 });
        self.operations += 1;
    }

    /// Adds to the bytes of the last operation.
    pub(super) fn add_bytes(&mut self, bytes: usize) {
        if let Some(operation) = self.latest.back_mut() {
            operation.bytes += bytes as u64;
        }
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.latest.iter().fold(self.folded, fold)
    }
}

fn fold(hash: u64, operation: &Operation) -> u64 {
    let token =
        operation.token.map_or(u64::MAX, |token| (token.slot() as u64) << 32 | u64::from(token.generation()));
    let fault = operation.fault.map_or(u64::MAX, |fault| fault as u64);
    [operation.index, operation.kind as u64, token, fault, operation.at_ms, operation.bytes]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// Draws a fault for an operation. `deferrable` is false if the connection's last operation was deferred
/// already.
pub(super) fn draw(
    rng: &mut Rng,
    options: &SimOptions,
    kind: OperationKind,
    deferrable: bool,
) -> Option<Fault> {
    use OperationKind as Kind;
    let short = match kind {
        Kind::Receive => options.short_reads,
        Kind::SendAttempt => options.short_writes,
        _ => 0.0,
    };
    let (eagain, delay) = match kind {
        Kind::Accept | Kind::Receive | Kind::ReadEnd | Kind::PeerEnd | Kind::SendAttempt if deferrable => {
            (options.eagain, options.delays)
        }
        _ => (0.0, 0.0),
    };
    let reset = match kind {
        Kind::Closed | Kind::Wake => 0.0,
        _ => options.resets,
    };
    let choices =
        [(eagain, Fault::Eagain), (delay, Fault::Delay), (reset, Fault::Rst), (short, Fault::Short)];
    choices.into_iter().find(|(probability, _)| rng.chance(*probability)).map(|(_, fault)| fault)
}
