//! Verb 1, accept: admits a connection and sets its deadline.

use shearwater_io::{AcceptError, CloseKind, Driver, ListenerId, Token};

use crate::connection::NONE;
use crate::control::Notice;
use crate::limits::ACCEPT_RETRY_MS;
use crate::service::Service;
use crate::worker::Worker;

/// Returns the address of a listener, or its number where the address is unknown.
pub(crate) fn address_of(listening_at: &[String], listener: ListenerId) -> String {
    let known = listening_at.get(usize::from(listener)).cloned();
    known.unwrap_or_else(|| format!("listener {listener}"))
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Opens the slot of an accepted connection, or resets it if its address has too many.
    pub(crate) fn accepted(&mut self, token: Token) {
        self.arrived += 1;
        let state = &mut self.state;
        state.counters.connections_accepted.add(1);
        state.table.open(token);
        state.served.open(token);
        if !self.admit(token) {
            self.state.counters.connections_refused.add(1);
            return self.shut(token, CloseKind::Reset);
        }
        self.reconcile(token);
        // Waits until no pause has occurred for a while, so that one free slot doesn't make the reports flap.
        if self.is_pause_reported && self.driver.now_ms() >= self.paused_ms.saturating_add(ACCEPT_RETRY_MS) {
            self.is_pause_reported = false;
            self.state.notify(Notice::AcceptResumed { worker: self.state.worker });
        }
    }

    /// Returns true if the connection's address may hold one more.
    fn admit(&mut self, token: Token) -> bool {
        let Some(addresses) = &self.state.addresses else { return true };
        // A peer that is already disconnected has no address to count.
        let Ok(peer) = self.driver.peer(token) else { return true };
        let index = addresses.enter(peer.ip());
        self.state.table.get(token).address = index.unwrap_or(NONE);
        index.is_some()
    }

    /// Reports that the driver has paused accepting: descriptors, slots or memory have run out.
    pub(crate) fn accept_failed(&mut self, error: AcceptError) {
        self.paused_ms = self.driver.now_ms();
        self.accept_again_ms = Some(self.paused_ms + ACCEPT_RETRY_MS);
        self.state.counters.hit_connections.add(1);
        if !self.is_pause_reported {
            self.is_pause_reported = true;
            let notice = self.pause_notice(error);
            self.state.notify(notice);
        }
    }

    /// Reports a listener that has failed; the others are not affected.
    pub(crate) fn listener_failed(&self, listener: ListenerId, errno: i32) {
        let address = address_of(&self.listening_at, listener);
        self.state.notify(Notice::ListenerFailed { worker: Some(self.state.worker), address, errno });
    }

    /// Distinguishes the configured connection limit from the system's limits.
    fn pause_notice(&self, error: AcceptError) -> Notice {
        let worker = self.state.worker;
        match self.connections_asked {
            Some(connections_max)
                if error == AcceptError::ProcessDescriptors
                    && self.driver.connections() >= connections_max =>
            {
                Notice::Full { worker, connections_max }
            }
            _ => Notice::AcceptPaused { worker, error },
        }
    }

    /// Resumes accepting once a connection has closed or the retry is due.
    pub(crate) fn accept_again(&mut self) {
        let has_room = std::mem::take(&mut self.has_room);
        if self.accept_again_ms.is_some_and(|at_ms| has_room || at_ms <= self.driver.now_ms()) {
            self.accept_again_ms = None;
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
        state.table.free(token);
        self.has_room = true;
    }
}
