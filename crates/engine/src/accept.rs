//! Verb 1, accept: admit a connection, give it a slot and a deadline.

use shearwater_io::{AcceptError, CloseKind, Driver, ListenerId, Token};

use crate::app::App;
use crate::conn::{NONE, Phase};
use crate::control::Notice;
use crate::limits::ACCEPT_RETRY_MS;
use crate::worker::Worker;

/// Returns the address of a listener, or its number where the address is unknown.
pub(crate) fn address_of(listening_at: &[String], listener: ListenerId) -> String {
    let known = listening_at.get(usize::from(listener)).cloned();
    known.unwrap_or_else(|| format!("listener {listener}"))
}

impl<D: Driver, A: App> Worker<D, A> {
    /// A connection has arrived.
    pub(crate) fn accepted(&mut self, token: Token) {
        self.arrived += 1;
        let service = &mut self.service;
        service.counters.connections_accepted.add(1);
        service.table.open(token);
        service.served.open(token);
        if !self.admit(token) {
            self.service.counters.connections_refused.add(1);
            return self.shut(token, CloseKind::Reset);
        }
        self.service.accepted(token, self.driver.now_ms());
        // One connection's worth of room is no news: it holds only when no pause has come for a while.
        if self.told_pause && self.driver.now_ms() >= self.paused_ms.saturating_add(ACCEPT_RETRY_MS) {
            self.told_pause = false;
            self.service.tell(Notice::AcceptResumed { worker: self.service.worker });
        }
    }

    /// Whether the connection's address may hold one more.
    fn admit(&mut self, token: Token) -> bool {
        let Some(addresses) = &self.service.addresses else { return true };
        // A peer that is gone already has no address to count.
        let Ok(peer) = self.driver.peer(token) else { return true };
        let index = addresses.enter(peer.ip());
        self.service.table.get(token).address = index.unwrap_or(NONE);
        index.is_some()
    }

    /// Descriptors, slots or memory have run out: the driver has paused accepting.
    pub(crate) fn accept_failed(&mut self, error: AcceptError) {
        self.paused_ms = self.driver.now_ms();
        self.accept_again_ms = Some(self.paused_ms + ACCEPT_RETRY_MS);
        self.service.counters.hit_connections.add(1);
        if !self.told_pause {
            self.told_pause = true;
            let notice = self.why_paused(error);
            self.service.tell(notice);
        }
    }

    /// Reports a listener that has failed. The others go on.
    pub(crate) fn listener_failed(&self, listener: ListenerId, errno: i32) {
        let address = address_of(&self.listening_at, listener);
        self.service.tell(Notice::ListenerFailed { worker: Some(self.service.worker), address, errno });
    }

    /// A driver has no slot left for the one reason or the other: what the operator allowed, or what the system allows.
    fn why_paused(&self, error: AcceptError) -> Notice {
        let worker = self.service.worker;
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

    /// Accepts again once a connection has closed or the time has come: there may be room.
    pub(crate) fn accept_again(&mut self) {
        let has_room = std::mem::take(&mut self.has_room);
        if self.accept_again_ms.is_some_and(|at_ms| has_room || at_ms <= self.driver.now_ms()) {
            self.accept_again_ms = None;
            self.driver.accept_resume();
        }
    }

    /// The driver has let go of a connection: so do we.
    pub(crate) fn closed(&mut self, token: Token) {
        let service = &mut self.service;
        let Some(conn) = service.table.find(token) else { return };
        debug_assert_eq!(conn.phase, Phase::Closing, "clause C4: only the worker closes");
        if let (Some(addresses), true) = (&service.addresses, conn.address != NONE) {
            addresses.leave(conn.address);
        }
        service.counters.connections_closed.add(1);
        service.table.free(token);
        self.has_room = true;
    }
}
