//! Tunnels on streams: what an extended CONNECT becomes once it is upgraded (RFC 8441 section 5).
//!
//! The program has one end of a socket pair, as of an upgraded connection with TLS (`tunnel.rs`). Towards it, the content
//! of the request waits in its stream, up to the stream's window, and is credited once the socket has taken it. Towards
//! the client, what the program sends is the content of the response. The worker's part is in `worker/http2/tunnels.rs`.

use std::collections::HashMap;

use shearwater_http2::StreamId;
use shearwater_io::Token;

use crate::upgrade::Taker;

/// The tunnel of a stream.
pub(crate) struct StreamTunnel {
    pub(crate) program: Program,
    /// Length of the send to the program that is in flight; 0 without one.
    pub(crate) in_flight: usize,
    /// Set while it is among the ready ones.
    pub(crate) is_ready: bool,
    /// Receiving from the program is paused.
    pub(crate) is_paused: bool,
    /// The program sends nothing more.
    pub(crate) has_ended: bool,
    /// The client was sent all of that, and its end.
    pub(crate) is_response_ended: bool,
    /// The program takes nothing more: it was sent everything, or has closed its end.
    pub(crate) is_shut: bool,
    /// The program has dropped its guard: bytes towards the client have a deadline, and nothing is waited for after them.
    pub(crate) is_left: bool,
}

/// The program's side of a tunnel.
pub(crate) enum Program {
    /// The `200` is encoded, and the closure gets the program's end at the end of the turn.
    Awaited(Option<Taker>),
    /// Our end of the socket pair.
    Connected(Token),
}

impl StreamTunnel {
    pub(crate) fn new(taker: Taker) -> Self {
        Self {
            program: Program::Awaited(Some(taker)),
            in_flight: 0,
            is_ready: false,
            is_paused: false,
            has_ended: false,
            is_response_ended: false,
            is_shut: false,
            is_left: false,
        }
    }

    /// Returns true if nothing more can come, or need come.
    pub(crate) fn is_over(&self) -> bool {
        self.is_response_ended && (self.is_shut || self.is_left)
    }
}

/// The tunnels on streams of a worker.
#[derive(Default)]
pub(crate) struct StreamTunnels {
    /// Connections and streams by the programs' tokens.
    pub(crate) programs: HashMap<Token, (Token, StreamId)>,
    /// Tunnels that can continue, each once.
    pub(crate) ready: Vec<(Token, StreamId)>,
    /// Programs' ends that are to be closed, and the lengths of their sends in flight.
    pub(crate) closing: Vec<(Token, usize)>,
}

impl StreamTunnels {
    pub(crate) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Returns the number of tunnels.
    pub(crate) fn len(&self) -> usize {
        self.programs.len()
    }

    /// Returns true if a connection is a program's end.
    #[inline(always)]
    pub(crate) fn has(&self, token: Token) -> bool {
        !self.programs.is_empty() && self.programs.contains_key(&token)
    }

    /// Has a tunnel continue at the end of the turn.
    pub(crate) fn wake(&mut self, client: Token, id: StreamId, tunnel: &mut StreamTunnel) {
        if !std::mem::replace(&mut tunnel.is_ready, true) {
            self.ready.push((client, id));
        }
    }

    /// Removes a tunnel whose stream has ended.
    pub(crate) fn remove(&mut self, tunnel: &StreamTunnel) {
        if let Program::Connected(program) = tunnel.program {
            self.programs.remove(&program);
            self.closing.push((program, tunnel.in_flight));
        }
    }

    /// Returns the number of tunnels of each connection that has one.
    pub(crate) fn by_client(&self) -> HashMap<Token, usize> {
        let mut tunnels = HashMap::new();
        for (client, _) in self.programs.values() {
            *tunnels.entry(*client).or_default() += 1;
        }
        tunnels
    }

    /// Frees the memory of a busier moment.
    pub(crate) fn trim(&mut self) {
        self.programs.shrink_to_fit();
        (self.ready, self.closing) = (Vec::new(), Vec::new());
    }
}
