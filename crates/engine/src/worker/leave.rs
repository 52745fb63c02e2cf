//! Connections that end soon: marked, and closed when they are idle.

use crate::connection::{Conn, Flag, Phase};
use crate::leaving::ListenerChange;
use crate::service::Service;
use crate::worker::Worker;
use shearwater_io::{Driver, ListenerId};
use std::sync::Arc;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Adds and removes listeners, if that was ordered since the last time.
    pub(crate) fn change_listeners(&mut self) {
        if self.state.control.listening.number() != self.listening_number {
            self.take_listener_changes();
        }
    }

    #[cold]
    fn take_listener_changes(&mut self) {
        let control = Arc::clone(&self.state.control);
        let changes = control.listening.take(Some(self.state.worker), &mut self.listening_number);
        // Ordered before: new listeners get the service that was made for them.
        self.reload();
        if D::SECURES {
            self.secure_listeners = control.listening.secure_listeners();
        }
        for change in changes {
            match change {
                ListenerChange::Add(id, listener) => {
                    self.state.leaving.add(id);
                    listener.into_iter().for_each(|listener| self.driver.listener_add(listener));
                }
                ListenerChange::Remove(listener) => {
                    if !self.driver.listener_remove(listener) {
                        control.listening.closed(listener, Some(self.state.worker));
                    }
                    self.leave(listener);
                }
            }
        }
    }

    /// Notes that a listener is closed.
    pub(crate) fn listener_removed(&self, listener: ListenerId) {
        self.state.control.listening.closed(listener, Some(self.state.worker));
    }

    /// Has the connections of a removed listener end soon.
    fn leave(&mut self, listener: ListenerId) {
        let is_ours =
            |conn: &Conn| !matches!(conn.phase(), Phase::HandedOver | Phase::Tunnel | Phase::Closing);
        let open = self.state.table.tokens(is_ours);
        self.state.leaving.remove(listener, &open);
        self.state.served.check_leaving(self.state.leaving.has_marked());
        self.hasten_idle();
        self.drain_http2();
    }

    /// Gives idle connections that end soon their short deadline.
    ///
    /// A request may be in flight on a connection that looks idle: waits a little for it. Those with a send in flight get
    /// their deadline when it ends.
    pub(crate) fn hasten_idle(&mut self) {
        let waits =
            |conn: &Conn| conn.is_silent() && !conn.has(Flag::Sending) || conn.phase() == Phase::Linger;
        for token in self.state.table.tokens(waits) {
            if self.state.leaving.ends_soon(token) {
                self.state.table.get(token).restart_deadline();
                self.state.reconcile_deadline(token);
            }
        }
    }
}
