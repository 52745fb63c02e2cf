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

use shearwater_http1::{Head, KnownField, Target};
use shearwater_io::{SlotArray, Token};

use crate::proxies::forwarded::{Client, ClientHeader};
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
    /// Its PROXY header says that the client has connected by TLS.
    is_secure: bool,
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
    /// proxy's, too. `is_secure`: the header says that the client has connected by TLS.
    pub(crate) fn describe(
        &mut self,
        token: Token,
        source: Option<SocketAddr>,
        is_secure: bool,
    ) -> Option<SocketAddr> {
        let untrusted = source.filter(|source| !self.options.trusted.contains(source.ip()));
        // Without an address in it, nothing tells whose requests follow.
        let slot = &mut self.slots[token.slot()];
        (slot.names_client, slot.is_secure) = (source.is_some() && untrusted.is_none(), is_secure);
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
        let (_, header) = self.client_header(token)?;
        let named = header.and_then(|header| self.named(header, head));
        named.map(|client| client.address).or_else(|| self.address(token))
    }

    /// Returns true if a trusted proxy has received a request by TLS: as the connection's PROXY header says, the request's
    /// headers beside the client's address, or its target.
    pub(crate) fn is_secure(&self, token: Token, head: &Head<'_>) -> bool {
        let Some((slot, header)) = self.client_header(token) else { return false };
        let is_of_target = || match head.target() {
            Target::Absolute { scheme, .. } => slot.is_proxied && scheme.eq_ignore_ascii_case("https"),
            _ => false,
        };
        let is_of_header = match header {
            Some(ClientHeader::XForwardedFor) => forwarded::is_secure(head.all(KnownField::XForwardedProto)),
            Some(header) => self.named(header, head).is_some_and(|client| client.is_secure),
            None => false,
        };
        slot.is_secure || is_of_header || is_of_target()
    }

    /// Returns the state of a connection, and the header in which its requests name their client.
    fn client_header(&self, token: Token) -> Option<(&SlotState, Option<ClientHeader>)> {
        let slot = self.slots.get(token.slot())?;
        Some((slot, self.options.client_header.filter(|_| slot.names_client)))
    }

    fn named(&self, header: ClientHeader, head: &Head<'_>) -> Option<Client> {
        forwarded::client(head.all(header.field()), header, &self.options.trusted)
    }

    /// Frees the state of slots from `slots` on.
    pub(crate) fn trim(&mut self, slots: usize) {
        self.slots.truncate(slots);
    }
}
