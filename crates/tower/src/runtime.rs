//! The tokio runtime that services find on a worker's thread: the one at hand, or a small one of our own.

use std::io;

use tokio::runtime::{Builder, EnterGuard, Handle};

/// Threads of a runtime of our own: it drives sockets and timers, and what services spawn. Requests are answered by the workers.
const THREADS: usize = 2;

/// A runtime.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    own: Option<tokio::runtime::Runtime>,
}

impl Runtime {
    /// The one that the caller runs in; else a new one.
    ///
    /// # Errors
    /// The system refuses a thread or a descriptor.
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

    /// The handle for as long as the process: each server that is started leaves one behind, a pointer.
    pub(crate) fn leaked_handle(&self) -> &'static Handle {
        Box::leak(Box::new(self.handle.clone()))
    }
}

impl Drop for Runtime {
    /// What services have spawned and not waited for ends with it, wherever it stands.
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            own.shutdown_background();
        }
    }
}

/// A thread that has entered a runtime for as long as this lives.
#[derive(Debug)]
pub(crate) struct Entered {
    _guard: EnterGuard<'static>,
}

impl Entered {
    pub(crate) fn new(handle: &'static Handle) -> Self {
        Self { _guard: handle.enter() }
    }
}
