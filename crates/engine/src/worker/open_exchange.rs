//! The open exchange of a connection: found, kept, ended.

use crate::connection::busy::OpenExchange;
use crate::deferred::calls::Deferred;
use crate::exchange::id::ExchangeId;
use crate::exchange::{Exchange, State};
use crate::service::Service;
use crate::worker::state::WorkerState;
use shearwater_io::Token;
use std::rc::Rc;

/// Exchanges of connections.
impl<S> WorkerState<S> {
    /// Returns the exchange of a connection, if one is open.
    pub(crate) fn exchange(&mut self, token: Token) -> Option<&mut Exchange> {
        let index = self.table.find(token)?.busy;
        self.exchanges.get(self.busy.exchange(index)?)
    }

    /// Takes the exchange of a connection out of the table to work with it; `keep_exchange` or `end_exchange` must follow.
    pub(crate) fn take_exchange(&mut self, token: Token) -> Option<Box<Exchange>> {
        let index = self.table.find(token)?.busy;
        self.exchanges.take(self.busy.take_exchange(index)?)
    }

    /// Stores the exchange of a connection, and has its task's wake-ups find it.
    pub(crate) fn keep_exchange(&mut self, exchange: Box<Exchange>) {
        let token = exchange.token;
        let open = self.store_exchange(exchange);
        let conn = self.table.get(token);
        self.busy.keep_exchange(token, &mut conn.busy, open);
    }

    /// Stores an exchange, and has its task's wake-ups find it.
    pub(crate) fn store_exchange(&mut self, exchange: Box<Exchange>) -> OpenExchange {
        let task = exchange.task;
        let waits_for_client = exchange.body.is_some();
        let coder_task = exchange.shared.as_ref().and_then(|shared| shared.coder_task());
        let shared_bytes = exchange.shared.as_ref().map_or(0, |shared| shared.held_bytes());
        let (id, own_bytes) = self.exchanges.put(exchange);
        let bytes = own_bytes + shared_bytes;
        if let Some(task) = task {
            self.calls.tasks.set_tag(task, id.0);
        }
        if let Some(task) = coder_task {
            self.calls.tasks.set_tag(task, id.0);
        }
        OpenExchange { id, bytes, waits_for_client }
    }

    /// Has another handler respond to a request. Drops the former one unless it is done.
    pub(crate) fn change_handler(&mut self, exchange: &mut Exchange, deferred: Deferred) {
        if let Some((shared, task)) = exchange.shared.take().zip(exchange.task.take()) {
            self.calls.abandon(shared, task);
        }
        exchange.adopt(deferred);
    }

    /// Ends an exchange that was taken out of the table, and drops its handler unless that is done.
    pub(crate) fn end_exchange(&mut self, mut exchange: Box<Exchange>) {
        if let Some((shared, task)) = exchange.end(&mut self.busy.pool) {
            self.calls.abandon(shared, task);
        }
        if exchange.id != ExchangeId::NONE {
            let index = self.table.get(exchange.token).busy;
            self.busy.end_exchange(index);
        }
        self.exchanges.recycle(exchange);
    }

    /// Ends the exchange of a connection; returns true if a part of its response has been sent or queued.
    pub(crate) fn cancel(&mut self, token: Token) -> bool {
        let Some(exchange) = self.take_exchange(token) else { return false };
        let has_begun = exchange.has_begun();
        self.end_exchange(exchange);
        has_begun
    }

    /// Keeps a service that was replaced for the requests whose body it is going to get. Those of earlier services keep
    /// theirs.
    pub(crate) fn keep_service(&mut self, service: &Rc<dyn Service>) {
        for exchange in self.exchanges.iter_mut() {
            match exchange.state() {
                State::Reading => {
                    exchange.service.get_or_insert_with(|| Rc::clone(service));
                }
                // Those that wait for a guard begin anew, with the new service.
                State::Handling => exchange.shared().restart_guards(),
                State::Sending | State::Upgrading | State::Ended => {}
            }
        }
    }

    /// Returns true if a deferred handler is at work on a connection's request, or an upgrade is under way.
    pub(crate) fn is_handled(&mut self, token: Token) -> bool {
        self.exchange(token).is_some_and(|exchange| exchange.is_handled())
    }

    /// Returns true if a connection's handler is to be dropped as soon as the client sends a FIN.
    pub(crate) fn ends_with_client(&mut self, token: Token) -> bool {
        let shared = self.exchange(token).and_then(|exchange| exchange.shared.as_ref());
        shared.is_some_and(|shared| shared.ends_with_client())
    }
}
