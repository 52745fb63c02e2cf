//! Control of a running server.

use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io, thread};

use shearwater::{Control, Error, StartError, StartReport};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A running server. Dropping it stops the server immediately.
pub struct Running {
    /// `None` once its end is awaited.
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
    /// [`drain_ms`](crate::Serve::drain_ms). Doesn't wait for upgraded connections.
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

/// Threads of a new runtime. It drives sockets, timers and spawned tasks; workers serve the requests.
const THREADS: usize = 2;

/// A handle to a runtime, which may be owned.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    own: Option<tokio::runtime::Runtime>,
}

impl Runtime {
    /// Returns the current runtime, or a new one.
    ///
    /// # Errors
    /// If the system refuses a thread or a descriptor.
    pub(crate) fn here() -> io::Result<Self> {
        if let Ok(handle) = Handle::try_current() {
            return Ok(Self { handle, own: None });
        }
        let own =
            Builder::new_multi_thread().worker_threads(THREADS).thread_name("tokio").enable_all().build()?;
        Ok(Self { handle: own.handle().clone(), own: Some(own) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    /// Cancels tasks that services have spawned and not awaited.
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            own.shutdown_background();
        }
    }
}

/// Enters a runtime for the rest of the thread's life, thread-local destructors included.
pub(crate) fn enter(handle: &Handle) {
    // The guard holds only the previously entered runtime.
    let _entered = ManuallyDrop::new(handle.enter());
}
