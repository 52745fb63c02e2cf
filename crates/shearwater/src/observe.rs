//! Observing a server: listeners for finished exchanges, and the signal at which logs are reopened.

use std::fmt;
use std::sync::Arc;

use shearwater_engine::{ExchangeListener, FinishedExchange};

use crate::server::Server;

/// Function that is called at `SIGUSR1`.
#[derive(Clone, Default)]
pub(crate) struct Reopen(Option<Arc<dyn Fn() + Send + Sync>>);

impl fmt::Debug for Reopen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reopen").field(&self.0.is_some()).finish()
    }
}

impl Reopen {
    /// Calls the function, if there is one.
    pub(crate) fn call(&self) {
        self.0.iter().for_each(|reopen| reopen());
    }
}

impl Server {
    /// Adds a listener that is called after each exchange of a request and its response, for logs and metrics.
    ///
    /// It is called once for every request, however it is handled and whether or not its response arrives: see
    /// [`FinishedExchange`]. `fields` names the request fields that it sees. `make` is called once on each worker's own
    /// thread, with its number; its result is called on that thread. It delays all clients of the worker until it
    /// returns, so it must not block. A panic of it is printed and otherwise ignored.
    ///
    /// Without listeners exchanges aren't recorded.
    ///
    /// ```
    /// use shearwater::{FinishedExchange, Server};
    ///
    /// let server = Server::bind("127.0.0.1:0").on_exchange(&["user-agent"], |_worker| {
    ///     let mut bytes = 0;
    ///     move |exchange: &FinishedExchange<'_>| bytes += exchange.bytes_sent()
    /// });
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn on_exchange<L: FnMut(&FinishedExchange<'_>) + 'static>(
        mut self,
        fields: &[&str],
        make: impl Fn(usize) -> L + Send + Sync + 'static,
    ) -> Self {
        self.options.listeners.push(ExchangeListener::new(fields, make));
        self
    }

    /// Sets a function that is called at each `SIGUSR1`, before the totals are printed: to reopen log files that were
    /// renamed. It is called on the thread that handles signals.
    #[must_use]
    pub fn on_reopen(mut self, reopen: impl Fn() + Send + Sync + 'static) -> Self {
        self.functions.reopen = Reopen(Some(Arc::new(reopen)));
        self
    }
}
