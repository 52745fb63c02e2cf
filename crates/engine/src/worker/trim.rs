//! Memory that is freed when a worker is idle.

use crate::server::panics;
use crate::service::Service;
use crate::worker::Worker;
use shearwater_io::Driver;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Trims if it is due. Memory in use remains untouched.
    #[inline]
    pub(crate) fn trim_if_idle(&mut self) {
        if self.idle_trim.due_ms().is_some_and(|due_ms| due_ms <= self.state.now_ms) {
            self.trim();
        }
    }

    #[cold]
    fn trim(&mut self) {
        if self.is_busy() || !self.driver.rest() {
            return;
        }
        self.idle_trim.events = 0;
        self.state.outputs.free_spare();
        self.state.responder.trim(0);
        self.state.busy.free_spare();
        self.state.exchanges.free_spare();
        self.state.calls.free_spare();
        self.state.http2.trim();
        self.tunnels.trim();
        let slots = self.state.table.trim();
        self.state.served.trim(slots);
        self.state.leaving.trim(slots);
        if let Some(ledger) = &mut self.state.ledger {
            ledger.trim(slots);
        }
        if let Some(proxies) = &mut self.state.proxies {
            proxies.trim(slots);
        }
        // The panic hook reports panics; the worker keeps serving.
        let _ = panics::catch(|| self.state.service.trim());
        if let Some(at_rest) = self.idle_trim.at_rest {
            let _ = panics::catch(at_rest);
        }
    }
}
