//! What the operator's thread and the workers say to each other: never on the way of a request.

use std::fmt::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use shearwater_io::{AcceptError, Waker};

use crate::counters::{Counters, Totals};
use crate::limits::NOTICES_MAX;

/// A report to the operator. A state is reported when it begins and when it ends. Faults that clients can provoke are reported once a second
/// for each kind, with the number of those left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Accepting paused; connections wait in the kernel's queue.
    AcceptPaused {
        /// Which worker.
        worker: usize,
        /// Why.
        error: AcceptError,
    },
    /// The same, because the worker holds as many connections as it may by [`Limits::connections_max`](crate::Limits::connections_max).
    Full {
        /// Which worker.
        worker: usize,
        /// So many.
        connections_max: usize,
    },
    /// Accepting goes on.
    AcceptResumed {
        /// Which worker.
        worker: usize,
    },
    /// The acceptor has paused: connections wait in the kernel's queue.
    AcceptorPaused {
        /// Why.
        error: AcceptError,
    },
    /// The acceptor goes on.
    AcceptorResumed,
    /// A listener accepts no more connections, because somebody has shut it down. Reported once for each; the others go on.
    ListenerFailed {
        /// The worker that has it; `None`: the acceptor.
        worker: Option<usize>,
        /// Where it listened.
        address: String,
        /// The system's number for what accepting says.
        errno: i32,
    },
    /// A handler panicked. For each place at most once a second.
    HandlerPanicked {
        /// Which worker.
        worker: usize,
        /// Method and path of the request; `None` where what panicked goes on behind its response.
        request: Option<String>,
        /// What the panic said.
        message: String,
        /// File, line and column where it was raised, as far as that is known.
        place: Option<String>,
        /// Number of panics of this place that were not reported since the last report.
        left_out: u64,
    },
    /// A handler built a response that can't be sent: a `500` went out, or the answer ended with what had been sent by then. At most once a
    /// second.
    HandlerMisbuilt {
        /// Which worker.
        worker: usize,
        /// What is wrong with it.
        message: String,
        /// Number of those that were not reported since the last report.
        left_out: u64,
    },
    /// A file can't be sent. For each reason at most once a second.
    FileFailed {
        /// Which worker.
        worker: usize,
        /// Which file.
        path: PathBuf,
        /// The reason.
        error: String,
        /// The status that the client got.
        status: u16,
        /// Number of those that were not reported since the last report.
        left_out: u64,
    },
    /// A body that a handler takes as it comes was refused with `413`, because it is longer than
    /// [`Limits::body_bytes_max`](crate::Limits::body_bytes_max). The first time in this worker.
    BodyTooLarge {
        /// Which worker.
        worker: usize,
        /// The limit.
        bytes_max: u64,
    },
    /// A handler keeps a worker from its other clients: it computes, or waits for something other than by its
    /// [`Call`](crate::Call). Told once in a while.
    WorkerBlocked {
        /// Which worker.
        worker: usize,
        /// For so long, at least; it may go on.
        ms: u64,
        /// How often since the operator was told last, this time included.
        times: u64,
    },
    /// A drain has been ordered.
    Draining {
        /// How long it may take.
        drain_ms: u64,
    },
    /// An end at once has been ordered.
    Stopping,
    /// A worker that ends has closed connections during a request or response: the drain's time was over, or it has ended at once.
    CutOff {
        /// Which worker.
        worker: usize,
        /// How many.
        connections: usize,
    },
    /// The acceptor has ended, by plan or not.
    AcceptorEnded {
        /// Why, if not by plan.
        error: Option<String>,
    },
    /// A worker has ended, by plan or not.
    WorkerEnded {
        /// Which worker.
        worker: usize,
        /// Why, if not by plan.
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
                write!(f, "worker {worker}: {}a handler panicked ({})", Named(request), Line(message))?;
                if let Some(place) = place {
                    write!(f, " at {}", Line(place))?;
                }
                write!(f, "{HANDLER_FAILED}{}", LeftOut(*left_out))
            }
            Self::HandlerMisbuilt { worker, message, left_out } => {
                write!(f, "worker {worker}: {}{HANDLER_FAILED}{}", Line(message), LeftOut(*left_out))
            }
            Self::FileFailed { worker, path, error, status, left_out } => {
                // As a string of Rust: no name of a file can end the line.
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
            Self::Draining { drain_ms } => {
                let seconds = drain_ms.div_ceil(1000);
                write!(
                    f,
                    "answering what has been received, up to {seconds} s; then it ends (again: at once)"
                )
            }
            Self::Stopping => f.write_str("ending at once"),
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

/// Where connections are while accepting pauses.
const WAIT: &str = "; new ones wait in the kernel's queue";

/// The end of a report on a handler that has failed.
const HANDLER_FAILED: &str = "; its client got a 500, or what had been sent by then";

/// A text that may come from a client, on one line: characters that could end it or hide a part of it are escaped.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '"' | '\'' => f.write_char(letter),
            _ => write!(f, "{}", letter.escape_debug()),
        })
    }
}

/// The worker that a report is about, if it is one's own.
struct InWorker(Option<usize>);

impl fmt::Display for InWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|worker| write!(f, "worker {worker}: "))
    }
}

/// The request that a report is about, if it is known.
struct Named<'a>(&'a Option<String>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|request| write!(f, "{}: ", Line(request)))
    }
}

/// The number of faults that were not reported since the last report.
struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} more like it)"),
        }
    }
}

/// What has run out.
fn why(error: AcceptError) -> &'static str {
    match error {
        AcceptError::ProcessDescriptors => "its share of descriptors is used up (raise the limit: ulimit -n)",
        AcceptError::SystemFiles => "the system has no file left (fs.file-max)",
        AcceptError::Memory => "the system has no memory left for sockets",
        AcceptError::Other { .. } => "the system refused, for a reason unknown here",
    }
}

/// Stands for the time of a drain until one is ordered.
const NO_DRAIN: u64 = u64::MAX;

/// What the workers are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Order {
    Serve = 0,
    Drain = 1,
    Stop = 2,
}

/// The kinds of orders to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// After every request received is answered.
    Drain,
    /// At once.
    Stop,
}

/// Called when an end is ordered.
type Observer = Box<dyn Fn(End) + Send + Sync>;

/// Shared by the operator's thread and all workers.
pub struct Control {
    order: AtomicU8,
    drain_ms: AtomicU64,
    wakers: Mutex<Vec<Waker>>,
    counters: Mutex<Vec<std::sync::Arc<Counters>>>,
    observers: Mutex<Vec<Observer>>,
    notices: SyncSender<Notice>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("order", &self.order()).finish_non_exhaustive()
    }
}

impl Control {
    /// A control, and the end at which the notices arrive.
    #[must_use]
    pub fn new() -> (Self, Receiver<Notice>) {
        let (notices, inbox) = sync_channel(NOTICES_MAX);
        let control = Self {
            order: AtomicU8::new(Order::Serve as u8),
            drain_ms: AtomicU64::new(NO_DRAIN),
            wakers: Mutex::default(),
            counters: Mutex::default(),
            observers: Mutex::default(),
            notices,
        };
        (control, inbox)
    }

    /// Asks every worker to take no new connections, to answer what it has received, and to end within `drain_ms`. The time runs from the
    /// first drain that is ordered; later ones change nothing.
    pub fn drain(&self, drain_ms: u64) {
        let is_first = self.drain_ms.compare_exchange(NO_DRAIN, drain_ms.min(NO_DRAIN - 1), Relaxed, Relaxed);
        if is_first.is_ok() && !self.is_ending() {
            self.tell(Notice::Draining { drain_ms });
            self.give(Order::Drain, End::Drain);
        }
    }

    /// Asks every worker to end at once.
    pub fn stop(&self) {
        self.tell(Notice::Stopping);
        self.give(Order::Stop, End::Stop);
    }

    /// Returns whether a drain or a stop has been ordered.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.order() > Order::Serve
    }

    /// The sum of all workers' counters now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let counters = self.counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        counters.iter().for_each(|counters| totals.add(counters));
        totals
    }

    /// Calls `observer` for each order to end, on the thread that gives it: for what has to end along with the workers. Orders that
    /// were given before it are not repeated.
    pub fn on_end(&self, observer: impl Fn(End) + Send + Sync + 'static) {
        let mut observers = self.observers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        observers.push(Box::new(observer));
    }

    fn give(&self, order: Order, end: End) {
        self.order.fetch_max(order as u8, Ordering::Release);
        let wakers = self.wakers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wakers.iter().for_each(Waker::wake);
        drop(wakers);
        let observers = self.observers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        observers.iter().for_each(|observer| observer(end));
    }

    /// The order in force.
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

    /// A worker has started. It looks at `order` right after, so that none given before is missed.
    pub(crate) fn enlist(&self, waker: Waker, counters: std::sync::Arc<Counters>) {
        self.wakers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(waker);
        self.counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(counters);
    }

    /// Tells the operator; `false` if nobody reads.
    pub(crate) fn tell(&self, notice: Notice) -> bool {
        match self.notices.try_send(notice) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}
