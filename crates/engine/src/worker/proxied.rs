//! Connections of proxies: admits them, and receives their PROXY headers.

use shearwater_io::{CloseKind, Driver, Token};

use crate::proxies::Peer;
use crate::proxies::fault::ProxyFault;
use crate::proxies::header::{self, ProxyHeader, ProxyHeaderError};
use crate::response::fault::Fault;
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Stores the peer of an accepted connection and limits it by its address, unless that is a trusted proxy's.
    /// Returns false if it was reset.
    #[cold]
    pub(crate) fn admit_proxied(&mut self, token: Token) -> bool {
        let peer = Peer::of(self.driver.peer(token));
        let Some(proxies) = &mut self.state.proxies else { return true };
        let is_trusted = proxies.open(token, peer);
        match (proxies.requires_header(), peer) {
            (true, _) if is_trusted => self.state.table.get(token).expect_proxy_header(),
            // Nothing tells whether it is trusted.
            (true, Peer::Gone) => {
                self.shut(token, CloseKind::Normal);
                return false;
            }
            (true, _) => {
                self.reject_proxied(token, ProxyFault::Untrusted);
                return false;
            }
            (false, Peer::Address(address)) if !is_trusted => return self.enter_address(token, address.ip()),
            (false, _) => {}
        }
        true
    }

    /// Parses the PROXY header at the beginning of a connection, and then the requests after it.
    #[cold]
    pub(crate) fn received_proxy_header(&mut self, token: Token) {
        let state = &mut self.state;
        state.keep_input(token, self.driver.lent());
        let conn = state.table.get(token);
        let mut busy = state.busy.take(token, &mut conn.busy);
        let parsed = header::parse(&busy.input);
        if let Ok(ProxyHeader::Complete { len, .. }) = parsed {
            busy.input.consume(len);
        }
        state.busy.put(conn.busy, busy);
        match parsed {
            Ok(ProxyHeader::Partial) if state.make_memory_room(token) => self.reconcile(token),
            Ok(ProxyHeader::Partial) => {
                state.counters.hit_buffered_bytes.add(1);
                self.shut(token, CloseKind::Reset);
            }
            Ok(ProxyHeader::Complete { source, is_secure, .. }) => {
                let Some(proxies) = &mut state.proxies else { return };
                let client = proxies.describe(token, source, is_secure);
                state.table.get(token).end_proxy_header();
                if client.is_none_or(|client| self.enter_address(token, client.ip())) {
                    if D::SECURES && self.secure_proxied(token) {
                        return;
                    }
                    self.resume(token);
                }
            }
            Err(error) => self.reject_proxied(token, ProxyFault::Header(error)),
        }
    }

    /// Resets a connection that violates the PROXY protocol. Nothing was sent that a reset could destroy, and unlike a
    /// close it leaves no state in the kernel.
    fn reject_proxied(&mut self, token: Token, fault: ProxyFault) {
        let peer = match Peer::of(self.driver.peer(token)) {
            Peer::Address(address) => address.ip().to_canonical().to_string(),
            Peer::Unix => "a Unix-domain socket".to_owned(),
            Peer::Gone => "a client that is gone".to_owned(),
        };
        let state = &mut self.state;
        state.counters.proxy_headers_rejected.add(1);
        if fault == ProxyFault::Header(ProxyHeaderError::TooLarge) {
            state.counters.hit_proxy_header_bytes.add(1);
        }
        state.report(Fault::Proxy { peer, fault });
        self.shut(token, CloseKind::Reset);
    }
}
