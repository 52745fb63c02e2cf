//! Connections whose `101` is sent, handed over to the program.

use crate::connection::Phase;
use crate::response::fault::Fault;
use crate::server::panics;
use crate::service::Service;
use crate::upgrade::{ConnectionGuard, Detaching, HandedOver, Taker};
use crate::worker::Worker;
use crate::worker::state::WorkerState;
use shearwater_io::{CloseKind, Detached, Driver, Token};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

impl<S> WorkerState<S> {
    /// Stores the closure of an encoded `101` until it is sent.
    #[cold]
    pub(crate) fn hand_over_later(&mut self, token: Token) {
        let mut exchange = self.exchanges.begin(token);
        exchange.upgrade(self.responder.taker.take());
        self.keep_exchange(exchange);
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Begins to hand over a connection whose `101` was sent. Returns false for other connections.
    pub(crate) fn hand_over(&mut self, token: Token) -> bool {
        let state = &mut self.state;
        let Some(taker) = state.exchange(token).and_then(|exchange| exchange.taker.take()) else {
            return false;
        };
        state.cancel(token);
        let conn = state.table.get(token);
        let unread = state.busy.get_mut(conn.busy).map_or_else(Vec::new, |busy| busy.input.to_vec());
        if D::SECURES && self.driver.session(token).is_some() {
            self.open_tunnel(token, taker, unread);
            return true;
        }
        conn.hand_over();
        self.reconcile(token);
        self.handed_over.open += 1;
        self.handed_over.detaching.push(Detaching { token, taker, unread });
        self.driver.detach(token);
        true
    }

    /// Hands over a detached connection.
    #[cold]
    pub(crate) fn detached(&mut self, token: Token, result: io::Result<Detached>) {
        let Some(Detaching { taker, mut unread, .. }) = self.handed_over.take_detaching(token) else {
            return;
        };
        let Ok(detached) = result else { return self.shut(token, CloseKind::Reset) };
        unread.extend_from_slice(&detached.unread);
        self.give_out(token, taker, detached.descriptor, unread);
    }

    /// Passes a connection to the closure of its handler.
    pub(crate) fn give_out(&mut self, token: Token, taker: Taker, descriptor: OwnedFd, unread: Vec<u8>) {
        self.state.counters.connections_upgraded.add(1);
        let guard = ConnectionGuard { token, returned: Arc::clone(&self.handed_over.returned) };
        let handed = HandedOver { descriptor, unread, guard };
        if let Err(panic) = panics::catch(|| taker.take(handed)) {
            self.state.faulty(Fault::Panic(panic));
        }
    }

    /// Frees the slots of handed-over connections that have ended since.
    pub(crate) fn free_returned(&mut self) {
        let returned = std::mem::take(&mut *self.handed_over.returned.tokens());
        for token in returned {
            if self.program_left(token) {
                continue;
            }
            // The worker may have closed it while ending.
            match self.state.table.find(token).map(|conn| conn.phase()) {
                Some(Phase::HandedOver) => self.shut(token, CloseKind::Normal),
                Some(Phase::Tunnel) => self.leave_tunnel(token),
                _ => {}
            }
        }
    }
}
