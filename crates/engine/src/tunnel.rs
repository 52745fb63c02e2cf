//! Tunnels: two connections of a worker, each of which is sent the bytes of the other.
//!
//! Bytes are passed as they arrive. While one end takes none, the other is paused: towards each end at most
//! [`TUNNEL_BYTES_MAX`](crate::limits::TUNNEL_BYTES_MAX) wait. The end of one side's bytes ends the sending side of the
//! other. The worker's part, which drives it, is in `worker/tunnels.rs`.

use std::collections::HashMap;

use shearwater_io::{Output, Token};

/// One end of a tunnel, and the bytes towards it.
#[derive(Default)]
pub(crate) struct End {
    pub(crate) other: Token,
    /// A client's connection, which has a slot in the worker's table. The other end has none.
    pub(crate) is_client: bool,
    /// Length of the send in flight; 0 without one.
    pub(crate) in_flight: usize,
    /// Bytes that follow it.
    pub(crate) pending: Output,
    /// Receiving from it is paused.
    pub(crate) is_paused: bool,
    /// It sends nothing more.
    pub(crate) has_ended: bool,
    /// Nothing more is sent to it.
    pub(crate) is_shut: bool,
    /// The program has given up the other end.
    pub(crate) is_left: bool,
}

impl End {
    /// Returns the bytes that wait to be sent to it.
    pub(crate) fn held(&self) -> usize {
        self.in_flight + self.pending.bytes().len()
    }
}

/// The tunnels of a worker.
#[derive(Default)]
pub(crate) struct Tunnels {
    ends: HashMap<Token, End>,
    /// Bytes that ends without a client have taken: no bytes to clients.
    pub(crate) carried: u64,
}

impl Tunnels {
    /// Joins a client's connection with another one.
    pub(crate) fn open(&mut self, client: Token, other: Token) {
        self.ends.insert(client, End { other, is_client: true, ..End::default() });
        self.ends.insert(other, End { other: client, ..End::default() });
    }

    /// Removes both ends of a client's tunnel; returns the other one's token and the bytes that were held.
    pub(crate) fn remove(&mut self, client: Token) -> Option<(Token, usize)> {
        let end = self.ends.remove(&client)?;
        let held = self.ends.remove(&end.other).map_or(0, |other| other.held());
        Some((end.other, end.held() + held))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of tunnels.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Returns true if the connection is an end of a tunnel.
    pub(crate) fn has(&self, token: Token) -> bool {
        !self.ends.is_empty() && self.ends.contains_key(&token)
    }

    pub(crate) fn get(&mut self, token: Token) -> Option<&mut End> {
        self.ends.get_mut(&token)
    }

    /// Returns an end and the opposite one with its token.
    pub(crate) fn both(&mut self, token: Token) -> Option<(&mut End, Token, &mut End)> {
        let other = self.ends.get(&token)?.other;
        let [one, two] = self.ends.get_disjoint_mut([&token, &other]);
        Some((one?, other, two?))
    }

    /// Returns the clients of all tunnels.
    pub(crate) fn clients(&self) -> Vec<Token> {
        self.ends.iter().filter(|(_, end)| end.is_client).map(|(token, _)| *token).collect()
    }

    /// Frees the memory of a busier moment.
    pub(crate) fn trim(&mut self) {
        self.ends.shrink_to_fit();
    }
}
