//! Accepting: admits connections, and limits them per client address and their requests per connection.

use std::net::IpAddr;

use shearwater_io::{AcceptError, CloseKind, Driver, ListenerId, Token};

use crate::limits::ACCEPT_RETRY_MS;
use crate::memory::NONE;
use crate::server::notice::Notice;
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Opens the slot of an accepted connection, or resets it if its address has too many.
    pub(crate) fn accepted(&mut self, token: Token, listener: ListenerId) {
        self.arrived += 1;
        let state = &mut self.state;
        state.counters.connections_accepted.add(1);
        state.table.open(token, state.now_ms);
        state.served.open(token);
        state.leaving.open(token, listener);
        state.served.check_leaving(state.leaving.has_marked());
        self.open_in_ledger(token);
        let is_admitted = match &self.state.proxies {
            None => self.admit(token),
            Some(_) => self.admit_proxied(token),
        };
        if !is_admitted {
            return;
        }
        if D::SECURES {
            self.secure_accepted(token, listener);
        }
        self.reconcile(token);
        // Waits until no pause has occurred for a while, so that one free slot doesn't make the reports flap.
        if self.is_pause_reported && self.driver.now_ms() >= self.paused_ms.saturating_add(ACCEPT_RETRY_MS) {
            self.is_pause_reported = false;
            self.state.notify(Notice::AcceptResumed { worker: self.state.worker });
        }
    }

    /// Limits the connections of a peer's address. Returns false if this one was reset.
    fn admit(&mut self, token: Token) -> bool {
        if self.state.addresses.is_none() {
            return true;
        }
        // A peer that is already disconnected has no address to count.
        let Some(peer) = self.state.calls.peers.of(token, &self.driver) else { return true };
        self.enter_address(token, peer.ip())
    }

    /// Counts a connection of an address, or resets it if there are too many. Returns false then.
    pub(crate) fn enter_address(&mut self, token: Token, address: IpAddr) -> bool {
        let Some(addresses) = &self.state.addresses else { return true };
        let index = addresses.enter(address);
        self.state.table.get(token).address = index.unwrap_or(NONE);
        if index.is_none() {
            self.state.counters.connections_refused.add(1);
            self.shut(token, CloseKind::Reset);
        }
        index.is_some()
    }

    /// Reports that the driver has paused accepting: descriptors, slots or memory have run out.
    pub(crate) fn accept_failed(&mut self, error: AcceptError) {
        self.paused_ms = self.driver.now_ms();
        self.accept_again_ms = Some(self.paused_ms + ACCEPT_RETRY_MS);
        self.state.counters.hit_connections.add(1);
        let is_full = error == AcceptError::ProcessDescriptors && self.is_full();
        if is_full {
            self.search_room();
        }
        if !self.is_pause_reported {
            self.is_pause_reported = true;
            let worker = self.state.worker;
            // Distinguishes the configured connection limit from the system's limits.
            self.state.notify(match self.connections_asked {
                Some(connections_max) if is_full => Notice::Full { worker, connections_max },
                _ => Notice::AcceptPaused { worker, error },
            });
        }
    }

    /// Reports a listener that has failed; the others are not affected.
    pub(crate) fn listener_failed(&self, listener: ListenerId, errno: i32) {
        let address = self.state.control.listening.address_of(listener);
        self.state.notify(Notice::ListenerFailed { worker: Some(self.state.worker), address, errno });
    }

    /// Resumes accepting once a connection has closed or the retry is due.
    pub(crate) fn accept_again(&mut self) {
        let has_room = std::mem::take(&mut self.has_room);
        if self.accept_again_ms.is_some_and(|at_ms| has_room || at_ms <= self.driver.now_ms()) {
            self.accept_again_ms = None;
            self.state.limit.ask(false);
            self.driver.accept_resume();
        }
    }

    /// Frees the slot of a connection that the driver has closed.
    pub(crate) fn closed(&mut self, token: Token) {
        let state = &mut self.state;
        let Some(conn) = state.table.find(token) else { return };
        if let (Some(addresses), true) = (&state.addresses, conn.address != NONE) {
            addresses.leave(conn.address);
        }
        state.counters.connections_closed.add(1);
        state.leaving.close(token);
        state.served.check_leaving(state.leaving.has_marked());
        state.table.free(token);
        self.has_room = true;
        if state.limit.is_awaited() {
            state.control.wake();
        }
    }
}
