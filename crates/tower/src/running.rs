//! A server that serves a tower service.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use shearwater::{Control, Error, StartError, StartReport};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::runtime::Runtime;

/// A server that serves. Dropping it stops it at once.
pub struct Running {
    /// Until somebody waits for its end.
    server: Option<shearwater::Running>,
    stop: StopOnDrop,
    drain_ms: u64,
    runtime: Runtime,
    start_report: StartReport,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("start_report", &self.start_report).finish_non_exhaustive()
    }
}

impl Running {
    pub(crate) fn new(server: shearwater::Running, runtime: Runtime, drain_ms: u64) -> Self {
        let (stop, start_report) = (StopOnDrop(server.control()), server.start_report().clone());
        Self { server: Some(server), stop, drain_ms, runtime, start_report }
    }

    /// The first address of TCP that it listens at.
    ///
    /// # Panics
    /// Where it listens at Unix-domain sockets alone.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.start_report.addresses[0]
    }

    /// What was found and settled at the start: addresses, driver, limits.
    #[must_use]
    pub fn start_report(&self) -> &StartReport {
        &self.start_report
    }

    /// The handle to drain, stop and count with, from any thread.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.stop.0)
    }

    /// Takes no new connections, answers what was received, and ends, in the time that was set for it. It doesn't wait for upgraded
    /// connections.
    pub fn drain(&self) {
        self.stop.0.drain(self.drain_ms);
    }

    /// Drains once `signal` is ready.
    pub(crate) fn drain_after(&self, signal: impl Future<Output = ()> + Send + 'static) {
        let (control, drain_ms) = (self.control(), self.drain_ms);
        self.runtime.handle().spawn(async move {
            signal.await;
            control.drain(drain_ms);
        });
    }

    /// Waits until it has ended. Dropped earlier, it stops.
    ///
    /// # Errors
    /// [`Error::Failed`] where a worker has ended other than by plan: the others are drained then.
    pub async fn ended(mut self) -> Result<(), Error> {
        let (tell, told) = oneshot::channel();
        if let Some(server) = self.server.take() {
            let waiting = thread::Builder::new().name("serve".to_owned());
            // Nobody listens where this was dropped.
            let waiting = waiting.spawn(move || drop(tell.send(server.wait_for_control())));
            waiting.map_err(|error| Error::Start(StartError::System(error)))?;
        }
        match told.await {
            Ok(ended) => ended.map(drop),
            Err(_) => Err(Error::Start(StartError::System(io::Error::other("the server's thread is gone")))),
        }
    }

    /// Waits until it has ended, on this thread.
    ///
    /// # Errors
    /// As [`ended`](Self::ended), and [`Error::Signals`].
    ///
    /// # Panics
    /// Within a tokio runtime, which it would hold up.
    pub fn wait(mut self) -> Result<(), Error> {
        assert!(
            Handle::try_current().is_err(),
            "`wait` would hold this runtime up: await `ended` in its place"
        );
        self.server.take().map_or(Ok(()), |server| server.wait().map(drop))
    }
}

/// Stops a server that nobody waits for any more.
struct StopOnDrop(Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
