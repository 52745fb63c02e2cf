//! Communication between the operator's thread and the workers, off the hot path.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shearwater_io::Waker;

use crate::limits::NOTICES_MAX;
use crate::server::counters::{Counters, Totals};
use crate::server::listening::Listening;
use crate::server::messages::{Message, MessageLevel, Messages};
use crate::server::notice::Notice;
use crate::server::reload::{Reload, ReloadError, Reloading, Reloads};
use crate::service::Service;

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
    pub(crate) listening: Arc<Listening>,
    /// Counters of the operator: only `reload` writes them, under the lock of `counters`.
    own: Arc<Counters>,
    observers: Mutex<Vec<Observer>>,
    messages: Messages,
    pub(crate) notices: SyncSender<Notice>,
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
            listening: Arc::default(),
            own,
            observers: Mutex::default(),
            messages: Messages::default(),
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
    /// Requests whose body is being received end under the old service, which each worker frees with the last of them.
    /// Deferred handlers continue with what they own. Connections stay open, and listeners aren't touched: see
    /// [`change_addresses`](Self::change_addresses). `S` is the type that the server was started with.
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

    /// Returns true if a stop has been ordered.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.order() == Order::Stop
    }

    /// Returns the time limit of a drain, counted from its order, if one was ordered.
    #[must_use]
    pub fn drain_limit(&self) -> Option<Duration> {
        Some(self.drain_ms()).filter(|ms| *ms != NO_DRAIN).map(Duration::from_millis)
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
        self.listening.end();
        self.wake();
        let observers = self.observers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        observers.iter().for_each(|observer| observer(end));
    }

    /// Wakes every worker, and the acceptor.
    pub(crate) fn wake(&self) {
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

    /// Keeps a message to the operator, among up to [`MESSAGES_KEPT_MAX`](crate::limits::MESSAGES_KEPT_MAX).
    ///
    /// Beyond it, the oldest one of the lowest level is dropped.
    pub fn keep_message(&self, level: MessageLevel, text: impl Into<String>) {
        self.messages.keep(level, text.into());
    }

    /// Returns the last messages to the operator, the oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.messages.all()
    }

    /// Queues a notice for the operator. Returns false if the queue is full or nobody reads it.
    pub fn notify(&self, notice: Notice) -> bool {
        match self.notices.try_send(notice) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}
