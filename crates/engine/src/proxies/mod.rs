//! Proxies in front of the server: which are trusted, and how they pass on the client's address.
//!
//! A connection's address is the peer's, or the one in its PROXY header (`header`). If that is a trusted
//! proxy's, a request's own header names the client (`forwarded`). Without trusted proxies none of this runs.

pub(crate) mod fault;
pub(crate) mod forwarded;
pub(crate) mod header;
pub(crate) mod trusted;

use std::io;
use std::net::{IpAddr, SocketAddr};

use shearwater_http1::Head;
use shearwater_io::{SlotArray, Token};

use crate::proxies::forwarded::ClientHeader;
use crate::proxies::trusted::TrustedProxies;

/// Proxies in front of a server. By default none is trusted: the peer is the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyOptions {
    /// The trusted ones.
    pub trusted: TrustedProxies,
    /// Each connection must begin with a PROXY header and come from a trusted proxy. Others are reset.
    pub requires_header: bool,
    /// Request header in which trusted proxies name the client.
    pub client_header: Option<ClientHeader>,
}

/// The other end of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Address(SocketAddr),
    /// A Unix-domain socket.
    Unix,
    /// No address: the peer is disconnected.
    Gone,
}

impl Peer {
    /// Classifies a driver's result.
    pub(crate) fn of(result: io::Result<SocketAddr>) -> Self {
        match result {
            Ok(address) => Self::Address(address),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Self::Unix,
            Err(_) => Self::Gone,
        }
    }
}

/// Addresses of a connection.
#[derive(Default)]
struct SlotState {
    /// Address of the peer, or of the PROXY header.
    address: Option<IpAddr>,
    port: u16,
    /// The peer is a trusted proxy.
    is_proxied: bool,
    /// The requests come from a trusted proxy: their header names the client.
    names_client: bool,
}

const _: () = assert!(size_of::<SlotState>() <= 24);

/// Addresses of a worker's connections, if there are trusted proxies.
pub(crate) struct Proxies {
    options: ProxyOptions,
    slots: SlotArray<SlotState>,
}

impl Proxies {
    /// Returns `None` without trusted proxies.
    pub(crate) fn new(options: ProxyOptions) -> Option<Box<Self>> {
        let is_used = !options.trusted.is_empty() || options.requires_header;
        is_used.then(|| Box::new(Self { options, slots: SlotArray::new() }))
    }

    /// Stores an accepted connection's peer; returns true if it is a trusted proxy.
    pub(crate) fn open(&mut self, token: Token, peer: Peer) -> bool {
        let trusted = &self.options.trusted;
        let (address, is_proxied) = match peer {
            Peer::Address(address) => (Some(address), trusted.contains(address.ip())),
            Peer::Unix => (None, trusted.includes_unix()),
            Peer::Gone => (None, false),
        };
        self.slots.grow_to(token.slot());
        let state = SlotState { is_proxied, names_client: is_proxied, ..SlotState::default() };
        self.slots[token.slot()] = state;
        self.store(token, address);
        is_proxied
    }

    /// Stores the address of a connection's PROXY header, which replaces the peer's. Returns it unless it is a trusted
    /// proxy's, too.
    pub(crate) fn describe(&mut self, token: Token, source: Option<SocketAddr>) -> Option<SocketAddr> {
        let untrusted = source.filter(|source| !self.options.trusted.contains(source.ip()));
        // Without an address in it, nothing tells whose requests follow.
        self.slots[token.slot()].names_client = source.is_some() && untrusted.is_none();
        if source.is_some() {
            self.store(token, source);
        }
        untrusted
    }

    fn store(&mut self, token: Token, address: Option<SocketAddr>) {
        let slot = &mut self.slots[token.slot()];
        (slot.address, slot.port) = (address.map(|of| of.ip()), address.map_or(0, |of| of.port()));
    }

    /// Returns true if connections begin with a PROXY header.
    pub(crate) fn requires_header(&self) -> bool {
        self.options.requires_header
    }

    /// Returns true if a connection's peer is a trusted proxy.
    pub(crate) fn is_proxied(&self, token: Token) -> bool {
        self.slots.get(token.slot()).is_some_and(|slot| slot.is_proxied)
    }

    /// Returns the address of a connection.
    pub(crate) fn address(&self, token: Token) -> Option<SocketAddr> {
        let slot = self.slots.get(token.slot())?;
        Some(SocketAddr::new(slot.address?, slot.port))
    }

    /// Returns the address of the client that has sent a request.
    pub(crate) fn client(&self, token: Token, head: &Head<'_>) -> Option<SocketAddr> {
        let named = match (self.slots.get(token.slot()), self.options.client_header) {
            (Some(SlotState { names_client: true, .. }), Some(header)) => {
                forwarded::client(head.all(header.field()), header, &self.options.trusted)
            }
            _ => None,
        };
        named.or_else(|| self.address(token))
    }

    /// Frees the state of slots from `slots` on.
    pub(crate) fn trim(&mut self, slots: usize) {
        self.slots.truncate(slots);
    }
}
