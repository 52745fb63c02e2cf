//! Disconnected clients: each turn releases a bounded number of them after all other work, so that thousands
//! of disconnects at once don't delay the other clients.

use shearwater_io::{CloseKind, Driver, ReadEnd, Token};

use crate::connection::disconnects::Disconnect;
use crate::connection::{Flag, Phase};
use crate::limits::DISCONNECTS_PER_TURN_MAX;
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Queues the end of a connection, which is handled after this turn's events.
    pub(crate) fn read_closed(&mut self, token: Token, end: &ReadEnd) {
        let Some(conn) = self.state.table.find(token) else { return };
        conn.set(Flag::ReadClosed);
        let end = match end {
            ReadEnd::Eof => Disconnect::Eof,
            ReadEnd::Broken(_) => Disconnect::Broken,
        };
        self.disconnects.push(token, end);
    }

    /// Queues a FIN after input that waits while receiving is paused. It is handled after this turn's events.
    pub(crate) fn fin_received(&mut self, token: Token) {
        let state = &mut self.state;
        let Some(conn) = state.table.find(token) else { return };
        // Otherwise nothing waits: receiving resumes, and reports the FIN again.
        let Some(busy) = state.busy.get_mut(conn.busy) else { return };
        busy.fin_received = true;
        self.disconnects.push(token, Disconnect::Fin);
    }

    /// Handles a bounded number of disconnects.
    #[inline]
    pub(crate) fn handle_disconnects(&mut self) {
        if !self.disconnects.is_empty() {
            self.handle_share(DISCONNECTS_PER_TURN_MAX + self.arrived);
        }
    }

    /// Handles as many more as connections were accepted, so that a flood of short connections doesn't pile
    /// up.
    fn handle_share(&mut self, share: usize) {
        for _ in 0..share {
            let Some((token, end)) = self.disconnects.pop() else { return };
            let Some(conn) = self.state.table.find(token) else { continue };
            let is_noted = conn.phase() == Phase::Tunnel && !matches!(end, Disconnect::Broken);
            if is_noted || conn.phase() == Phase::HandedOver {
                continue;
            }
            match end {
                Disconnect::Broken => self.broken(token),
                Disconnect::Eof if matches!(conn.phase(), Phase::Linger | Phase::ProxyHeader) => {
                    self.shut(token, CloseKind::Normal);
                }
                // It comes again once reading resumes.
                Disconnect::Fin if conn.phase() == Phase::Multiplexed => {}
                Disconnect::Eof if conn.phase() == Phase::Multiplexed => {
                    self.http2_fin(token);
                }
                Disconnect::Eof | Disconnect::Fin if self.state.ends_with_client(token) => self.broken(token),
                Disconnect::Eof if self.state.is_input_processed(token) => self.ended(token),
                // A pending response or queued input comes first.
                Disconnect::Eof | Disconnect::Fin => self.half_closed(token),
            }
        }
    }

    /// Closes a connection that the peer or the network has broken. Counts it unless it was closed here before.
    pub(crate) fn broken(&mut self, token: Token) {
        let state = &mut self.state;
        if state.table.get(token).phase() != Phase::Closing {
            state.counters.connections_broken.add(1);
        }
        self.shut(token, CloseKind::Normal);
    }

    /// Bounds the time of a handler whose client has sent a FIN.
    fn half_closed(&mut self, token: Token) {
        if self.state.waits_for_handler(token) {
            self.state.table.get(token).restart_deadline();
            self.state.reconcile_deadline(token);
        }
    }
}
