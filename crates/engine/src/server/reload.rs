//! Reloads: replaces the service of a running server, and the settings that may change with it.
//!
//! A reload is stored beside its number, and each worker is woken once. The worker compares the number with that of its own
//! service in `Worker::woken`, so turns and requests don't pay for it. It makes the new service between two events:
//! each request is handled by one service. A request whose body is still to come keeps the old one
//! ([`keep_service`](crate::worker::state::WorkerState::keep_service)), which is freed along with the last of them.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::{Limits, Timeouts};
use crate::service::Service;

/// Creates a worker's service from its number and its present service.
type Make<S> = Box<dyn Fn(usize, &S) -> S + Send + Sync>;

/// A new service for a running server: see [`Control::reload`](crate::Control::reload).
pub struct Reload<S> {
    pub(crate) make: Make<S>,
    pub(crate) timeouts: Option<Timeouts>,
    pub(crate) limits: Option<Limits>,
}

impl<S> fmt::Debug for Reload<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").field("service", &type_name::<S>()).finish_non_exhaustive()
    }
}

impl<S: Service> Reload<S> {
    /// Creates a reload. `make` is called once on each worker's own thread, with its number and its present service.
    ///
    /// The worker's other requests wait meanwhile: read and check beforehand. The present service may pass on its caches.
    pub fn new(make: impl Fn(usize, &S) -> S + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), timeouts: None, limits: None }
    }

    /// Changes the timeouts too. A deadline that is running already isn't changed.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = Some(timeouts);
        self
    }

    /// Changes those limits that can change while the server runs.
    ///
    /// These are [`body_bytes_max`](Limits::body_bytes_max),
    /// [`body_bytes_per_second_min`](Limits::body_bytes_per_second_min),
    /// [`send_bytes_per_second_min`](Limits::send_bytes_per_second_min),
    /// [`linger_bytes_max`](Limits::linger_bytes_max) and [`output_bytes_max`](Limits::output_bytes_max). The others keep
    /// their values.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }
}

impl Limits {
    /// Returns these limits with those of `new` that can change while the server runs.
    pub(crate) fn reloaded(self, new: &Self) -> Self {
        let reloaded = Self {
            body_bytes_max: new.body_bytes_max,
            body_bytes_per_second_min: new.body_bytes_per_second_min,
            send_bytes_per_second_min: new.send_bytes_per_second_min,
            linger_bytes_max: new.linger_bytes_max,
            output_bytes_max: new.output_bytes_max,
            ..self
        };
        reloaded.usable()
    }
}

/// Reason for which a server keeps its service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReloadError {
    /// A drain or stop has been ordered.
    Ending,
    /// The server serves another type of service, so that no worker can replace it.
    OtherType {
        /// Type that the server serves.
        serves: &'static str,
    },
    /// Making the service has panicked on so many workers. They keep their present service; the others have the new
    /// one.
    Failed {
        /// Number of workers.
        workers: usize,
    },
    /// So many workers are still busy. Each replaces its service as soon as its handler returns.
    Unfinished {
        /// Number of workers.
        workers: usize,
    },
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ending => f.write_str("the server is stopping"),
            Self::OtherType { serves } => write!(f, "the server serves another type of service: {serves}"),
            Self::Failed { workers } => {
                write!(f, "making the new service has panicked on {workers} workers, which keep the old one")
            }
            Self::Unfinished { workers } => {
                write!(f, "{workers} workers are blocked and still have the old service")
            }
        }
    }
}

impl std::error::Error for ReloadError {}

/// A reload in progress. Dropping it changes nothing.
#[derive(Debug)]
pub struct Reloading {
    reloads: Arc<Reloads>,
    number: u64,
}

impl Reloading {
    /// Returns the number of this reload; the first one is 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Waits until every worker has the new service, or a later one. Requests that have begun may still use the old one.
    ///
    /// # Errors
    /// [`ReloadError::Failed`], or [`ReloadError::Unfinished`] after `patience`.
    pub fn wait(&self, patience: Duration) -> Result<(), ReloadError> {
        let state = self.reloads.lock();
        let is_unfinished = |state: &mut ReloadState| state.unfinished(self.number) > 0;
        let waited = self.reloads.changed.wait_timeout_while(state, patience, is_unfinished);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let failed = state.taken.iter().filter(|taken| taken.has_failed && taken.number >= self.number);
        match (state.unfinished(self.number), failed.count()) {
            (0, 0) => Ok(()),
            (0, workers) => Err(ReloadError::Failed { workers }),
            (workers, _) => Err(ReloadError::Unfinished { workers }),
        }
    }
}

/// The reloads of a server, shared by the operator's threads and the workers.
#[derive(Default)]
pub(crate) struct Reloads {
    /// Number of the latest one; 0 if there was none.
    pub(crate) number: AtomicU64,
    state: Mutex<ReloadState>,
    /// A worker has taken a reload.
    changed: Condvar,
}

impl fmt::Debug for Reloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloads").field("number", &self.number).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct ReloadState {
    /// Type of the workers' services.
    service: Option<(TypeId, &'static str)>,
    /// Workers that will register.
    expected: usize,
    /// Latest reload of each worker.
    taken: Vec<Taken>,
    /// Latest [`Reload`].
    latest: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Clone, Copy, Default)]
struct Taken {
    number: u64,
    has_failed: bool,
}

impl ReloadState {
    /// Returns the number of workers that haven't taken a reload.
    fn unfinished(&self, number: u64) -> usize {
        let finished = self.taken.iter().filter(|taken| taken.number >= number).count();
        self.expected.max(self.taken.len()) - finished
    }
}

/// A worker's registration for reloads.
#[derive(Debug)]
pub(crate) struct Registration {
    index: usize,
    /// Number of the latest reload that the worker has taken.
    pub(crate) number: u64,
}

impl Reloads {
    fn lock(&self) -> MutexGuard<'_, ReloadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces so many workers with a type of service.
    pub(crate) fn expect<S: Service>(&self, workers: usize) {
        let mut state = self.lock();
        state.service = Some((TypeId::of::<S>(), type_name::<S>()));
        state.expected = workers;
    }

    /// Registers a worker.
    pub(crate) fn register<S: Service>(&self) -> Registration {
        let mut state = self.lock();
        state.service.get_or_insert((TypeId::of::<S>(), type_name::<S>()));
        state.taken.push(Taken::default());
        Registration { index: state.taken.len() - 1, number: 0 }
    }

    /// Stores a reload for the workers, which must be woken then.
    ///
    /// # Errors
    /// [`ReloadError::OtherType`].
    pub(crate) fn store<S: Service>(self: &Arc<Self>, reload: Reload<S>) -> Result<Reloading, ReloadError> {
        let mut state = self.lock();
        if let Some((service, serves)) = state.service
            && service != TypeId::of::<S>()
        {
            return Err(ReloadError::OtherType { serves });
        }
        let replaced = state.latest.replace(Arc::new(reload));
        let number = self.number.load(Ordering::Relaxed) + 1;
        self.number.store(number, Ordering::Release);
        drop(state);
        // It may be the last owner of an earlier configuration.
        drop(replaced);
        Ok(Reloading { reloads: Arc::clone(self), number })
    }

    /// Returns the latest reload, and notes its number.
    pub(crate) fn latest<S: Service>(&self, registration: &mut Registration) -> Option<Arc<Reload<S>>> {
        let state = self.lock();
        registration.number = self.number.load(Ordering::Relaxed);
        Arc::downcast(Arc::clone(state.latest.as_ref()?)).ok()
    }

    pub(crate) fn finish(&self, registration: &Registration, has_failed: bool) {
        self.lock().taken[registration.index] = Taken { number: registration.number, has_failed };
        self.changed.notify_all();
    }
}
