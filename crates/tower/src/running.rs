//! A server that serves a tower service.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use shearwater::{Control, Error, StartError, StartReport};
use tokio::sync::oneshot;

use crate::ending::Ending;
use crate::runtime::Runtime;
use crate::upgrades::Upgrades;

/// A server that serves. Dropping it stops it at once.
pub struct Running {
    /// Until somebody waits for its end.
    server: Option<shearwater::Running>,
    stop: StopOnDrop,
    ending: Arc<Ending>,
    runtime: Runtime,
    start_report: StartReport,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("start_report", &self.start_report).finish_non_exhaustive()
    }
}

impl Running {
    pub(crate) fn new(
        server: shearwater::Running,
        runtime: Runtime,
        upgrades: Arc<Upgrades>,
        drain: Duration,
    ) -> Self {
        let (stop, start_report) = (StopOnDrop(server.control()), server.start_report().clone());
        let ending = Arc::new(Ending::new(upgrades, drain, server.verbosity()));
        ending.follow(&stop.0, runtime.handle());
        Self { server: Some(server), stop, ending, runtime, start_report }
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

    /// Takes no new connections, answers what was received, and ends, in the time that was set for it.
    pub fn drain(&self) {
        drain(&self.stop.0, &self.ending);
    }

    /// Drains once `signal` is ready.
    pub(crate) fn drain_after(&self, signal: impl Future<Output = ()> + Send + 'static) {
        let (control, ending) = (self.control(), Arc::clone(&self.ending));
        self.runtime.handle().spawn(async move {
            signal.await;
            drain(&control, &ending);
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
        let ended = told.await;
        let ending = Arc::clone(&self.ending);
        // Where the runtime is on its way down there is nobody left to wait for.
        drop(self.runtime.handle().spawn(async move { ending.end().await }).await);
        match ended {
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
        let Some(mut server) = self.server.take() else { return Ok(()) };
        // Until all has ended: a second signal stops connections that were handed over too.
        let _watch = server.watch_signals()?;
        let ended = server.wait_for_control();
        self.runtime.handle().block_on(self.ending.end());
        ended.map(drop)
    }
}

fn drain(control: &Control, ending: &Ending) {
    control.drain(u64::try_from(ending.patience().as_millis()).unwrap_or(u64::MAX));
}

/// Stops a server that nobody waits for any more.
struct StopOnDrop(Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
