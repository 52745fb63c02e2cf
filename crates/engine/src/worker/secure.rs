//! Connections that begin with TLS.

use shearwater_io::secure::{Failure, Version};
use shearwater_io::{CloseKind, Driver, ListenerId, Token};

use crate::connection::{Flag, Phase};
use crate::request::refusal::Refusal;
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Begins TLS on a connection of a listener that has it, unless a PROXY header comes first.
    pub(crate) fn secure_accepted(&mut self, token: Token, listener: ListenerId) {
        if self.secure_listeners.contains(&listener) && self.state.table.get(token).phase() == Phase::Idle {
            self.driver.secure(token, listener, &[]);
        }
    }

    /// Begins TLS after a PROXY header. Returns false for a listener without it.
    #[cold]
    pub(crate) fn secure_proxied(&mut self, token: Token) -> bool {
        let Some(listener) = self.state.leaving.listener_of(token) else {
            // Whether its listener had TLS isn't known any more.
            self.shut(token, CloseKind::Normal);
            return true;
        };
        if !self.secure_listeners.contains(&listener) {
            return false;
        }
        let state = &mut self.state;
        let conn = state.table.get(token);
        let mut busy = state.busy.take(token, &mut conn.busy);
        self.driver.secure(token, listener, &busy.input);
        busy.input.clear(&mut state.busy.pool);
        state.busy.put(conn.busy, busy);
        self.reconcile(token);
        true
    }

    /// Acts on the end of a handshake, whose time is that of the first head.
    #[cold]
    pub(crate) fn secured(&mut self, token: Token, result: Result<(), Failure>) {
        let Some(conn) = self.state.table.find(token) else { return };
        if conn.phase() == Phase::Closing {
            return;
        }
        match result {
            Ok(()) => {
                let version = self.driver.session(token).map(|session| session.version);
                if let (Some(ledger), Some(version)) = (&mut self.state.ledger, version) {
                    ledger.secure(token, version);
                }
                if self.driver.session(token).is_some_and(|session| session.alpn == Some("h2")) {
                    self.state.begin_http2(token, true);
                    self.flush_streams(token);
                }
            }
            // The connection is a plain one, as the client takes it to be.
            Err(Failure::NotTls) => {
                self.state.refuse(token, Refusal::NotTls);
                self.flush(token);
            }
            Err(_) => self.end_handshake(token),
        }
    }

    /// Ends a connection after the alert of its handshake. A close with unread input would reset it, and lose the alert.
    fn end_handshake(&mut self, token: Token) {
        self.state.table.get(token).linger();
        self.reconcile(token);
        self.driver.shutdown_write(token);
    }

    /// Begins the time of a head whose first bytes are in an incomplete record.
    #[cold]
    pub(crate) fn receiving(&mut self, token: Token) {
        let Some(conn) = self.state.table.find(token) else { return };
        if conn.phase() == Phase::Idle && !conn.has(Flag::Fresh) && !conn.has(Flag::Sending) {
            // It still has the last head, of any connection.
            self.parser.reset();
            self.state.keep_head(&mut self.parser, token, &[]);
            self.reconcile(token);
        }
    }

    /// Extends the time of a body whose next bytes are in an incomplete record. Returns false if none has come since the
    /// last time.
    pub(crate) fn extend_secured_body(&mut self, token: Token) -> bool {
        let Some(on_wire) = self.driver.received_on_wire(token) else { return false };
        let opened = on_wire - self.driver.unopened(token);
        let (rule, now_ms) = (self.state.body_rate_rule, self.state.now_ms);
        let Some(body) = self.state.exchange(token).and_then(|exchange| exchange.body.as_mut()) else {
            return false;
        };
        let more = on_wire - std::mem::replace(&mut body.bytes_on_wire, on_wire).max(opened);
        if more == 0 {
            return false;
        }
        body.bytes_early += more;
        body.budget = body.budget.earn(&rule, more, now_ms);
        if body.budget.due_ms() <= now_ms {
            return false;
        }
        self.state.reconcile_deadline(token);
        true
    }

    /// Copies the driver's counts for other threads.
    pub(crate) fn count_secured(&mut self) {
        let Some(counts) = self.driver.secure_counters() else { return };
        let counters = &self.state.counters;
        counters.tls12_handshakes.set(counts.handshakes(Version::Tls12));
        counters.tls13_handshakes.set(counts.handshakes(Version::Tls13));
        counters.tls_resumed.set(counts.resumed);
        for failure in Failure::ALL {
            counters.tls_failed(failure).set(counts.failures(failure));
        }
        counters.tls_queued.set(counts.costly_queued);
        counters.tls_partial_bytes.set(counts.partial_bytes as u64);
        counters.tls_connections.set(counts.connections as u64);
    }
}
