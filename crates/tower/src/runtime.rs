//! The tokio runtime of services: the current one, or a small new one.

use std::io;
use std::mem::ManuallyDrop;

use tokio::runtime::{Builder, Handle};

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
