//! Control of a running server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io, thread};

use shearwater::{Control, Error, StartError, StartReport};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A running server. Dropping it stops the server immediately.
pub struct Running {
    /// `None` once its end is awaited.
    server: Option<shearwater::Running>,
    stop: StopOnDrop,
    drain_ms: u64,
    start_report: StartReport,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("start_report", &self.start_report).finish_non_exhaustive()
    }
}

impl Running {
    pub(crate) fn new(server: shearwater::Running, drain_ms: u64) -> Self {
        let (stop, start_report) = (StopOnDrop(server.control()), server.start_report().clone());
        Self { server: Some(server), stop, drain_ms, start_report }
    }

    /// Returns the first TCP address bound, with the actual port.
    ///
    /// # Panics
    /// If the server listens on Unix-domain sockets only.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.start_report.addresses[0]
    }

    /// Returns the addresses, driver and limits determined at startup.
    #[must_use]
    pub fn start_report(&self) -> &StartReport {
        &self.start_report
    }

    /// Returns the handle that drains, stops and counts, from any thread.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.stop.0)
    }

    /// Drains the server: stops accepting, responds to received requests, and ends within
    /// [`drain_ms`](crate::Serve::drain_ms).
    ///
    /// A worker with a runtime of its own then waits, within that time, for the tasks that handlers have spawned; upgraded
    /// connections are such tasks. Those left are dropped and reported. A surrounding runtime keeps its tasks.
    pub fn drain(&self) {
        self.stop.0.drain(self.drain_ms);
    }

    /// Waits until the server has ended. Stops it when dropped.
    ///
    /// # Errors
    /// [`Error::Failed`] if a worker failed; the others are drained then.
    pub async fn ended(mut self) -> Result<(), Error> {
        let (sender, receiver) = oneshot::channel();
        if let Some(server) = self.server.take() {
            let waiting = thread::Builder::new().name("serve".to_owned());
            // The receiver may have been dropped.
            let waiting = waiting.spawn(move || drop(sender.send(server.wait_for_control())));
            waiting.map_err(|error| Error::Start(StartError::System(error)))?;
        }
        match receiver.await {
            Ok(ended) => ended.map(drop),
            Err(_) => {
                Err(Error::Start(StartError::System(io::Error::other("the server's thread has ended"))))
            }
        }
    }

    /// Blocks the current thread until the server has ended.
    ///
    /// # Errors
    /// As [`ended`](Self::ended), and [`Error::Signals`].
    ///
    /// # Panics
    /// If called within a tokio runtime, which it would block.
    pub fn wait(mut self) -> Result<(), Error> {
        assert!(
            Handle::try_current().is_err(),
            "`wait` would block this runtime; help: await `ended` instead"
        );
        self.server.take().map_or(Ok(()), |server| server.wait().map(drop))
    }
}

/// Stops the server on drop.
struct StopOnDrop(Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
