//! What the operator's thread and the workers say to each other: never on the way of a request.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use shearwater_io::{AcceptError, Waker};

use crate::counters::{Counters, Totals};
use crate::limits::NOTICES_MAX;

/// What a worker tells the operator: each kind once until it is over, not a million times.
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
    /// A handler panicked: the first time in this worker; later ones are only counted.
    HandlerPanicked {
        /// Which worker.
        worker: usize,
        /// What the panic said.
        message: String,
    },
    /// A handler built a response that can't be sent: a `500` went out, or the answer ended with what had been sent by then. The first time
    /// in this worker.
    HandlerMisbuilt {
        /// Which worker.
        worker: usize,
        /// What is wrong with it.
        message: String,
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
    /// A worker that ends has closed connections in the middle of a request or an answer: the drain's time was over, or it has ended at once.
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
            Self::AcceptResumed { worker } => write!(f, "worker {worker} accepts connections again"),
            Self::HandlerPanicked { worker, message } => {
                write!(
                    f,
                    "worker {worker}: a handler panicked ({message}); its client got a 500, or what had been sent by then; later ones are only counted"
                )
            }
            Self::HandlerMisbuilt { worker, message } => {
                write!(
                    f,
                    "worker {worker}: {message}; its client got a 500, or what had been sent by then; later ones are only counted"
                )
            }
            Self::BodyTooLarge { worker, bytes_max } => {
                write!(
                    f,
                    "worker {worker}: a request got a 413, because its body is longer than body_bytes_max ({bytes_max} bytes); later ones are only counted"
                )
            }
            Self::WorkerBlocked { worker, ms, times } => {
                write!(
                    f,
                    "worker {worker}: a handler has kept it for {ms} ms and more, its other clients wait"
                )?;
                match times {
                    0 | 1 => Ok(()),
                    times => write!(f, " ({times} times since this was told last)"),
                }
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
                    "worker {worker} has cut off {connections} connections in the middle of a request or an answer"
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

/// What has run out.
fn why(error: AcceptError) -> &'static str {
    match error {
        AcceptError::ProcessDescriptors => "its share of descriptors is used up (raise the limit: ulimit -n)",
        AcceptError::SystemFiles => "the system has no file left (fs.file-max)",
        AcceptError::Memory => "the system has no memory left for sockets",
        AcceptError::Other { .. } => "the system refused, for a reason unknown here",
    }
}

/// What the workers are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Order {
    Serve = 0,
    Drain = 1,
    Stop = 2,
}

/// Shared by the operator's thread and all workers.
#[derive(Debug)]
pub struct Control {
    order: AtomicU8,
    drain_ms: AtomicU64,
    wakers: Mutex<Vec<Waker>>,
    counters: Mutex<Vec<std::sync::Arc<Counters>>>,
    notices: SyncSender<Notice>,
}

impl Control {
    /// A control, and the end at which the notices arrive.
    #[must_use]
    pub fn new() -> (Self, Receiver<Notice>) {
        let (notices, inbox) = sync_channel(NOTICES_MAX);
        let control = Self {
            order: AtomicU8::new(Order::Serve as u8),
            drain_ms: AtomicU64::new(0),
            wakers: Mutex::default(),
            counters: Mutex::default(),
            notices,
        };
        (control, inbox)
    }

    /// Asks every worker to take no new connections, to answer what it has received, and to end within `drain_ms`.
    pub fn drain(&self, drain_ms: u64) {
        self.drain_ms.store(drain_ms, Ordering::Relaxed);
        self.tell(Notice::Draining { drain_ms });
        self.give(Order::Drain);
    }

    /// Asks every worker to end at once.
    pub fn stop(&self) {
        self.tell(Notice::Stopping);
        self.give(Order::Stop);
    }

    /// The sum of all workers' counters now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let counters = self.counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        counters.iter().for_each(|counters| totals.add(counters));
        totals
    }

    fn give(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::Release);
        let wakers = self.wakers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wakers.iter().for_each(Waker::wake);
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
        self.drain_ms.load(Ordering::Relaxed)
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
