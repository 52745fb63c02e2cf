//! Communication between the operator's thread and the workers, off the hot path.

use std::fmt::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

use shearwater_io::{AcceptError, Waker};

use crate::limits::NOTICES_MAX;
use crate::server::counters::{Counters, Totals};
use crate::server::reload::{Reload, ReloadError, Reloading, Reloads};
use crate::service::Service;

/// A report to the operator. A state is reported when it begins and when it ends. Faults that clients can
/// provoke are reported at most once a second for each kind, with the number of suppressed ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Accepting has paused; connections wait in the kernel's queue.
    AcceptPaused {
        /// Number of the worker.
        worker: usize,
        /// The cause.
        error: AcceptError,
    },
    /// Accepting has paused because the worker holds
    /// [`Limits::connections_max`](crate::Limits::connections_max) connections.
    Full {
        /// Number of the worker.
        worker: usize,
        /// The worker's share of the limit.
        connections_max: usize,
    },
    /// Accepting has resumed.
    AcceptResumed {
        /// Number of the worker.
        worker: usize,
    },
    /// The acceptor has paused; connections wait in the kernel's queue.
    AcceptorPaused {
        /// The cause.
        error: AcceptError,
    },
    /// The acceptor has resumed.
    AcceptorResumed,
    /// A listener was shut down from outside and accepts no more connections. Reported once for each; the
    /// others are not affected.
    ListenerFailed {
        /// Worker that owns it; `None` for the acceptor.
        worker: Option<usize>,
        /// Address of the listener.
        address: String,
        /// Error number of the failed accept.
        errno: i32,
    },
    /// A handler panicked. Reported at most once a second per source location.
    HandlerPanicked {
        /// Number of the worker.
        worker: usize,
        /// Method and path of the request; `None` if the task panicked after its response.
        request: Option<String>,
        /// Panic message.
        message: String,
        /// File, line and column of the panic, if known.
        place: Option<String>,
        /// Suppressed panics of this location since the last report.
        left_out: u64,
    },
    /// A handler built an invalid response: the client got a `500`, or a truncated response. Reported at most
    /// once a second.
    HandlerMisbuilt {
        /// Number of the worker.
        worker: usize,
        /// The reason why it is invalid.
        message: String,
        /// Suppressed reports since the last one.
        left_out: u64,
    },
    /// A file can't be sent. Reported at most once a second per reason.
    FileFailed {
        /// Number of the worker.
        worker: usize,
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        error: String,
        /// Status that the client got.
        status: u16,
        /// Suppressed reports since the last one.
        left_out: u64,
    },
    /// A streamed body was rejected with `413` because it exceeds
    /// [`Limits::body_bytes_max`](crate::Limits::body_bytes_max). Reported once per worker.
    BodyTooLarge {
        /// Number of the worker.
        worker: usize,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// A handler blocks its worker: it computes, or waits outside of its [`Call`](crate::Call). Rate-limited.
    WorkerBlocked {
        /// Number of the worker.
        worker: usize,
        /// Minimum duration so far, in milliseconds.
        ms: u64,
        /// Occurrences since the last report, including this one.
        times: u64,
    },
    /// A worker keeps its service, because creating the one of a [reload](Control::reload) has panicked.
    ReloadFailed {
        /// Number of the worker.
        worker: usize,
        /// Panic message.
        message: String,
        /// File, line and column of the panic, if known.
        place: Option<String>,
    },
    /// A drain has been ordered.
    Draining {
        /// Limit for the drain, in milliseconds.
        drain_ms: u64,
    },
    /// An immediate stop has been ordered.
    Stopping,
    /// A worker that stops has closed connections during a request or response: the drain timed out, or the
    /// stop was immediate.
    CutOff {
        /// Number of the worker.
        worker: usize,
        /// Number of connections.
        connections: usize,
    },
    /// The acceptor has ended.
    AcceptorEnded {
        /// The error, if it has failed.
        error: Option<String>,
    },
    /// A worker has ended.
    WorkerEnded {
        /// Number of the worker.
        worker: usize,
        /// The error, if it has failed.
        error: Option<String>,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AcceptPaused { worker, error } => {
                write!(f, "worker {worker} accepts no connections for now: {}{WAIT}", why(*error))
            }
            Self::Full { worker, connections_max } => {
                write!(
                    f,
                    "worker {worker} accepts no connections for now: it holds {connections_max}, its share of max_connections{WAIT}"
                )
            }
            Self::AcceptorPaused { error } => {
                write!(f, "no connections are accepted for now: {}{WAIT}", why(*error))
            }
            Self::AcceptorResumed => f.write_str("connections are accepted again"),
            Self::ListenerFailed { worker, address, errno } => {
                let (worker, error) = (InWorker(*worker), std::io::Error::from_raw_os_error(*errno));
                write!(f, "{worker}no connections are accepted at {address} any more ({error})")
            }
            Self::AcceptResumed { worker } => write!(f, "worker {worker} accepts connections again"),
            Self::HandlerPanicked { worker, request, message, place, left_out } => {
                let (request, panic) = (Named(request), Panicked(message, place));
                write!(f, "worker {worker}: {request}a handler {panic}{HANDLER_FAILED}{}", LeftOut(*left_out))
            }
            Self::HandlerMisbuilt { worker, message, left_out } => {
                write!(f, "worker {worker}: {}{HANDLER_FAILED}{}", Line(message), LeftOut(*left_out))
            }
            Self::FileFailed { worker, path, error, status, left_out } => {
                // Debug formatting escapes line ends in file names.
                write!(f, "worker {worker}: can't send {path:?}: {}", Line(error))?;
                write!(f, "; its client got a {status}{}", LeftOut(*left_out))
            }
            Self::BodyTooLarge { worker, bytes_max } => {
                write!(
                    f,
                    "worker {worker}: a request got a 413: its body is longer than body_bytes_max ({bytes_max} bytes)"
                )
            }
            Self::WorkerBlocked { worker, ms, times } => {
                write!(
                    f,
                    "worker {worker}: a handler has blocked it for {ms} ms or more; its other clients wait"
                )?;
                if *times > 1 { write!(f, " ({times} times since the last report)") } else { Ok(()) }
            }
            Self::ReloadFailed { worker, message, place } => {
                write!(f, "worker {worker} {KEEPS_SERVICE} {}", Panicked(message, place))
            }
            Self::Draining { drain_ms } => {
                let seconds = drain_ms.div_ceil(1000);
                write!(
                    f,
                    "draining: responding to received requests for up to {seconds} s (repeat to stop at once)"
                )
            }
            Self::Stopping => f.write_str("stopping at once"),
            Self::CutOff { worker, connections } => {
                write!(
                    f,
                    "worker {worker} has cut off {connections} connections during a request or response"
                )
            }
            Self::AcceptorEnded { error: None } => f.write_str("the acceptor has ended"),
            Self::AcceptorEnded { error: Some(error) } => write!(f, "the acceptor has failed: {error}"),
            Self::WorkerEnded { worker, error: None } => write!(f, "worker {worker} has ended"),
            Self::WorkerEnded { worker, error: Some(error) } => {
                write!(f, "worker {worker} has failed: {error}")
            }
        }
    }
}

/// Suffix of reports about paused accepting.
const WAIT: &str = "; new ones wait in the kernel's queue";

/// A part of reports about failed reloads.
const KEEPS_SERVICE: &str = "keeps its old service: the function that makes the new one";

/// Suffix of reports about failed handlers.
const HANDLER_FAILED: &str = "; its client got a 500, or what had been sent by then";

/// Untrusted text on one line: characters that could end the line or hide part of it are escaped.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '"' | '\'' => f.write_char(letter),
            _ => write!(f, "{}", letter.escape_debug()),
        })
    }
}

/// Message and location of a panic.
struct Panicked<'a>(&'a str, &'a Option<String>);

impl fmt::Display for Panicked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked ({})", Line(self.0))?;
        self.1.iter().try_for_each(|place| write!(f, " at {}", Line(place)))
    }
}

/// Prefix that names the worker of a report, if there is one.
struct InWorker(Option<usize>);

impl fmt::Display for InWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|worker| write!(f, "worker {worker}: "))
    }
}

/// Prefix that names the request of a report, if it is known.
struct Named<'a>(&'a Option<String>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|request| write!(f, "{}: ", Line(request)))
    }
}

/// Suffix with the number of suppressed reports.
struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} more like it)"),
        }
    }
}

/// Describes the resource that has run out.
fn why(error: AcceptError) -> &'static str {
    match error {
        AcceptError::ProcessDescriptors => "its share of descriptors is used up (raise the limit: ulimit -n)",
        AcceptError::SystemFiles => "the system has no file left (fs.file-max)",
        AcceptError::Memory => "the system has no memory left for sockets",
        AcceptError::Other { .. } => "the system refused, for a reason unknown here",
    }
}

/// Value of `drain_ms` until a drain is ordered.
const NO_DRAIN: u64 = u64::MAX;

/// Order in force for the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Order {
    Serve = 0,
    Drain = 1,
    Stop = 2,
}

/// The kinds of shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// After all received requests have got their responses.
    Drain,
    /// Immediately.
    Stop,
}

/// Callback for a shutdown order.
type Observer = Box<dyn Fn(End) + Send + Sync>;

/// Control of a running server, shared by the operator's thread and all workers.
pub struct Control {
    order: AtomicU8,
    drain_ms: AtomicU64,
    wakers: Mutex<Vec<Waker>>,
    counters: Mutex<Vec<Arc<Counters>>>,
    pub(crate) reloads: Arc<Reloads>,
    /// Counters of the operator: only `reload` writes them, under the lock of `counters`.
    own: Arc<Counters>,
    observers: Mutex<Vec<Observer>>,
    notices: SyncSender<Notice>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("order", &self.order()).finish_non_exhaustive()
    }
}

impl Control {
    /// Returns a control and the receiver of its notices.
    #[must_use]
    pub fn new() -> (Self, Receiver<Notice>) {
        let (notices, inbox) = sync_channel(NOTICES_MAX);
        let own = Arc::new(Counters::default());
        let control = Self {
            order: AtomicU8::new(Order::Serve as u8),
            drain_ms: AtomicU64::new(NO_DRAIN),
            wakers: Mutex::default(),
            counters: Mutex::new(vec![Arc::clone(&own)]),
            reloads: Arc::default(),
            own,
            observers: Mutex::default(),
            notices,
        };
        (control, inbox)
    }

    /// Orders every worker to stop accepting, to respond to the requests received so far, and to end within
    /// `drain_ms`. The time runs from the first drain that is ordered; later ones change nothing.
    pub fn drain(&self, drain_ms: u64) {
        let is_first = self.drain_ms.compare_exchange(NO_DRAIN, drain_ms.min(NO_DRAIN - 1), Relaxed, Relaxed);
        if is_first.is_ok() && !self.is_ending() {
            self.notify(Notice::Draining { drain_ms });
            self.give(Order::Drain, End::Drain);
        }
    }

    /// Orders every worker to stop immediately.
    pub fn stop(&self) {
        self.notify(Notice::Stopping);
        self.give(Order::Stop, End::Stop);
    }

    /// Has every worker replace its service between two events, while the server runs.
    ///
    /// Requests that have begun by then (their body is being received, or their handler has deferred the response) end
    /// under the old service, which each worker frees with the last of them. Connections stay open, and listeners aren't
    /// touched. `S` is the type that the server was started with.
    ///
    /// Returns before the workers have done so: see [`Reloading::wait`]. A further reload may be ordered meanwhile; workers
    /// may skip the earlier one.
    ///
    /// # Errors
    /// [`ReloadError::Ending`] after a drain or a stop was ordered, and [`ReloadError::OtherType`].
    pub fn reload<S: Service>(&self, reload: Reload<S>) -> Result<Reloading, ReloadError> {
        if self.is_ending() {
            return Err(ReloadError::Ending);
        }
        let reloading = self.reloads.store(reload)?;
        let counters = self.counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.own.reloads.add(1);
        drop(counters);
        self.wake();
        Ok(reloading)
    }

    /// Returns true if a drain or a stop has been ordered.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.order() > Order::Serve
    }

    /// Returns the current sum of all workers' counters.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let counters = self.counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        counters.iter().for_each(|counters| totals.add(counters));
        totals
    }

    /// Calls `observer` for each shutdown order, on the thread that orders it, for things that must end along
    /// with the workers. Earlier orders are not repeated.
    pub fn on_end(&self, observer: impl Fn(End) + Send + Sync + 'static) {
        let mut observers = self.observers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        observers.push(Box::new(observer));
    }

    fn give(&self, order: Order, end: End) {
        self.order.fetch_max(order as u8, Ordering::Release);
        self.wake();
        let observers = self.observers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        observers.iter().for_each(|observer| observer(end));
    }

    /// Wakes every worker, and the acceptor.
    fn wake(&self) {
        let wakers = self.wakers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wakers.iter().for_each(Waker::wake);
    }

    /// Returns the order in force.
    pub(crate) fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Serve,
            1 => Order::Drain,
            _ => Order::Stop,
        }
    }

    pub(crate) fn drain_ms(&self) -> u64 {
        self.drain_ms.load(Relaxed)
    }

    /// Registers a worker that has started. The worker checks `order` right after, so that no earlier order
    /// is missed.
    pub(crate) fn enlist(&self, waker: Waker, counters: Arc<Counters>) {
        self.wakers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(waker);
        self.counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(counters);
    }

    /// Queues a notice for the operator; returns `false` if the queue is full or nobody reads it.
    pub(crate) fn notify(&self, notice: Notice) -> bool {
        match self.notices.try_send(notice) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}
