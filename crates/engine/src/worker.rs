//! A worker's turn: waits, handles events, resumes pending work, checks the clock. Contains the one `match`
//! on events.

pub(crate) mod accept;
mod body;
pub(crate) mod disconnects;
mod drain;
mod evict;
mod expire;
mod guard;
mod hand_over;
mod handler_poll;
mod handler_response;
pub(crate) mod handler_start;
mod hosted;
pub(crate) mod http2;
mod leave;
pub(crate) mod ledger_events;
mod open_exchange;
pub(crate) mod proxied;
mod reconcile;
mod refuse;
mod reload;
mod report;
pub(crate) mod request_loop;
pub(crate) mod room;
mod secure;
mod send;
pub(crate) mod state;
mod trim;
mod tunnels;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use shearwater_http1::HeadParser;
use shearwater_io::{Driver, Event, ListenerId, SharedLimit};
use shearwater_tasks::{Options as TaskOptions, Order};

use crate::connection::addresses::Addresses;
use crate::connection::busy::BusyTable;
use crate::connection::disconnects::Disconnects;
use crate::connection::served::Served;
use crate::deferred::calls::Calls;
use crate::exchange::body::BodyRateRule;
use crate::exchange::table::ExchangeTable;
use crate::leaving::Leaving;
use crate::limits::{Limits, Timeouts};
use crate::memory::spare::IdleTrim;
use crate::memory::spare::Outputs;
use crate::observe::finished::ExchangeListener;
use crate::observe::ledger::Ledger;
use crate::proxies::{Proxies, ProxyOptions};
use crate::response::responder::Responder;
use crate::server::control::Control;
use crate::server::counters::Counters;
use crate::server::drain::{Accepting, Lifecycle};
use crate::server::notice::Notice;
use crate::server::options::Http2Options;
use crate::server::panics;
use crate::server::reload::Registration;
use crate::server::reports::{Reports, cut};
use crate::server::watchdog::Heartbeat;
use crate::service::Service;
use crate::timers::wheel::Wheel;
use crate::tunnel::Tunnels;
use crate::upgrade::HandedOvers;
use crate::worker::http2::Http2;
use crate::worker::reload::{has_guards, protocols};
use crate::worker::state::Room;
use crate::worker::state::Table;
use crate::worker::state::WorkerState;

/// Configuration of a worker.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Number of the worker, for reports.
    pub worker: usize,
    /// Limits.
    pub limits: Limits,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Proxies in front of the server.
    pub proxies: ProxyOptions,
    /// HTTP/2.
    pub http2: Http2Options,
    /// Source of orders and sink of notices.
    pub control: Arc<Control>,
    /// Scheduling order of ready tasks.
    pub order: Order,
    /// Callback after an idle trim: see [`Options::at_rest`](crate::Options::at_rest).
    pub at_rest: Option<fn()>,
    /// Listeners for finished exchanges.
    pub listeners: Vec<ExchangeListener>,
    /// Listeners whose connections begin with TLS, on a driver that [can](Driver::SECURES).
    pub secure_listeners: Vec<ListenerId>,
    /// Heartbeat for the watchdog.
    pub(crate) heartbeat: Option<Arc<Heartbeat>>,
    /// Limit that the driver's connections count for; that of all workers.
    pub limit: SharedLimit,
    pub(crate) addresses: Option<Arc<Addresses>>,
    /// Configured connection limit, unless descriptors allow fewer.
    pub(crate) connections_asked: Option<usize>,
    /// Descriptors for connections, on a driver that holds more connections than descriptors.
    pub(crate) descriptors_max: usize,
}

impl Setup {
    /// Returns a setup for a single worker. Workers that share a `Setup` by cloning it count connections per
    /// address together.
    #[must_use]
    pub fn new(worker: usize, limits: Limits, timeouts: Timeouts, control: Arc<Control>) -> Self {
        let addresses = Addresses::new(limits.connections_per_address_max).map(Arc::new);
        let connections_asked = Some(limits.connections_max).filter(|asked| *asked < usize::MAX);
        Self {
            worker,
            limits,
            timeouts,
            proxies: ProxyOptions::default(),
            http2: Http2Options::default(),
            control,
            order: Order::Fifo,
            at_rest: None,
            listeners: Vec::new(),
            secure_listeners: Vec::new(),
            heartbeat: None,
            limit: SharedLimit::default(),
            addresses,
            connections_asked,
            descriptors_max: usize::MAX,
        }
    }

    fn tasks(&self) -> TaskOptions {
        TaskOptions { order: self.order, tasks_max: self.limits.calls_max, ..TaskOptions::default() }
    }
}

/// A thread's share of the server: a driver and all state that it drives.
pub struct Worker<D, S> {
    pub(crate) driver: D,
    /// Parser for heads that arrive whole; an unfinished head takes it along.
    pub(crate) parser: HeadParser,
    pub(crate) state: WorkerState<S>,
    pub(crate) accepting: Accepting,
    pub(crate) lifecycle: Lifecycle,
    /// Time at which paused accepting is retried, unless a connection closes first.
    pub(crate) accept_again_ms: Option<u64>,
    /// Time of the last pause.
    pub(crate) paused_ms: u64,
    /// See [`Setup`].
    pub(crate) connections_asked: Option<usize>,
    /// Number of the latest change of listeners that was taken.
    pub(crate) listening_number: u64,
    /// The pause of accepting has been reported.
    pub(crate) is_pause_reported: bool,
    /// The search for connections to close while others wait.
    pub(crate) room: Room,
    /// A connection has closed in this turn.
    pub(crate) has_room: bool,
    /// Connections accepted in this turn.
    pub(crate) arrived: usize,
    /// Pending disconnects.
    pub(crate) disconnects: Disconnects,
    pub(crate) handed_over: HandedOvers,
    pub(crate) tunnels: Tunnels,
    /// Listeners whose connections begin with TLS.
    pub(crate) secure_listeners: Vec<ListenerId>,
    /// Scheduling order of connections with pending input.
    pub(crate) order: Order,
    /// Frees memory after idle time.
    pub(crate) idle_trim: IdleTrim,
    pub(crate) registration: Registration,
    pub(crate) heartbeat: Option<Arc<Heartbeat>>,
}

impl<D, S> fmt::Debug for Worker<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("worker", &self.state.worker).finish_non_exhaustive()
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Creates a worker over `driver` and registers it with its control.
    pub fn new(driver: D, service: S, setup: Setup) -> Self {
        panics::install_hook();
        let counters = Arc::new(Counters::default());
        let setup = Setup { limits: setup.limits.usable(), ..setup };
        setup.control.enlist(driver.waker(), Arc::clone(&counters));
        let registration = setup.control.reloads.register::<S>();
        let now_ms = driver.now_ms();
        let handed_over = HandedOvers::new(driver.waker());
        let beat = setup.heartbeat.as_ref().map(|heartbeat| heartbeat.beat()).unwrap_or_default();
        let calls = Calls::new(setup.tasks(), setup.limits.head(), driver.waker(), beat);
        let proxies = Proxies::new(setup.proxies);
        let parser = HeadParser::new(setup.limits.head());
        let ledger = Ledger::new(&setup.listeners, setup.worker, proxies.is_some());
        let has_guards = has_guards(&service);
        let http2 = Http2::new(setup.http2, protocols(&service));
        let state = WorkerState {
            service,
            worker: setup.worker,
            limits: setup.limits,
            timeouts: setup.timeouts,
            proxies,
            http2,
            checks_hosts: false,
            has_guards,
            body_rate_rule: BodyRateRule::new(&setup.limits, &setup.timeouts),
            table: Table::default(),
            served: Served::new(setup.limits.requests_per_connection_max),
            leaving: Leaving::default(),
            busy: BusyTable::new(setup.limits, calls.held_bytes()),
            exchanges: ExchangeTable::new(calls.held_bytes()),
            wheel: Wheel::new(now_ms),
            ready: VecDeque::new(),
            calls,
            responder: Responder::new(driver.unix_seconds()),
            outputs: Outputs::default(),
            addresses: setup.addresses,
            limit: setup.limit,
            counters,
            control: setup.control,
            evicted: Vec::new(),
            reports: Reports::default(),
            ledger,
            is_body_limit_reported: false,
            now_ms,
        };
        Self {
            driver,
            parser,
            state,
            accepting: Accepting::Open,
            lifecycle: Lifecycle::Serving,
            accept_again_ms: None,
            paused_ms: 0,
            connections_asked: setup.connections_asked,
            listening_number: 0,
            is_pause_reported: false,
            room: Room { until_ms: u64::MAX, ..Room::default() },
            has_room: false,
            arrived: 0,
            disconnects: Disconnects::default(),
            handed_over,
            tunnels: Tunnels::default(),
            secure_listeners: setup.secure_listeners,
            order: setup.order,
            idle_trim: IdleTrim::new(setup.at_rest),
            registration,
            heartbeat: setup.heartbeat,
        }
    }

    /// Serves until a drain or stop is complete.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn run(&mut self) -> io::Result<()> {
        self.woken(); // an order may have been given before this worker was enlisted
        while !self.is_over() {
            self.turn()?;
        }
        self.end_serving();
        Ok(())
    }

    pub(crate) fn end_serving(&mut self) {
        self.release_handed_over();
        self.state.report_waiting(u64::MAX);
    }

    /// Runs one turn.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn turn(&mut self) -> io::Result<()> {
        let patience = self.patience();
        self.turn_within(patience).map(drop)
    }

    /// Runs one turn, which waits at most this long. Returns the number of events.
    pub(crate) fn turn_within(&mut self, patience: Option<Duration>) -> io::Result<usize> {
        self.heartbeat.iter().for_each(|heartbeat| heartbeat.sleep());
        self.driver.wait(patience)?;
        self.heartbeat.iter().for_each(|heartbeat| heartbeat.wake());
        let now_ms = self.driver.now_ms();
        self.state.now_ms = now_ms;
        if self.state.ledger.is_some() {
            self.settle_ledger();
        }
        panics::set_now_ms(now_ms);
        if self.state.reports.due_ms() <= now_ms {
            self.state.report_waiting(now_ms);
        }
        if self.room.until_ms <= now_ms {
            self.end_shortage();
        }
        let makes_room = self.room.left > 0;
        let unix_seconds = self.driver.unix_seconds();
        if D::SECURES {
            self.state.checks_hosts = self.driver.checks_hosts();
        }
        self.state.calls.clock.set(now_ms, unix_seconds);
        self.state.responder.preamble.refresh(unix_seconds);
        let mut events = 0;
        while let Some(event) = self.driver.next() {
            self.handle(event);
            events += 1;
        }
        self.idle_trim.count(events, self.state.now_ms);
        self.resume_ready();
        self.run_tasks();
        self.flush_handlers();
        self.handle_disconnects();
        if makes_room {
            self.make_room();
        }
        self.end_evicted();
        self.state.busy.pool.release();
        self.expire(events);
        self.accept_again();
        self.check_drain();
        self.close_programs();
        self.state.responder.end_turn(self.state.now_ms);
        if let Some(request) = self.state.calls.blocked_by.take() {
            self.state.notify(Notice::BlockedBy { worker: self.state.worker, request: cut(request) });
        }
        // Wake-ups of this turn from any source: after this the worker may sleep.
        self.state.calls.tasks.collect();
        self.state.counters.bytes_sent.set(self.bytes_sent());
        if D::SECURES {
            self.count_secured();
        }
        if self.state.ledger.is_some() {
            self.count_states();
        }
        self.trim_if_idle();
        Ok(events)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { token, .. } if self.is_ending() => self.close_accepted(token),
            Event::Accepted { token, listener } => self.accepted(token, listener),
            Event::AcceptFailed { error } => self.accept_failed(error),
            Event::ListenerFailed { listener, errno } => self.listener_failed(listener, errno),
            Event::ListenerRemoved { listener } => self.listener_removed(listener),
            Event::AcceptStopped => self.accept_stopped(),
            Event::Received { token } if self.is_joined(token) => self.forward(token),
            Event::Received { token } => self.received(token),
            Event::FinReceived { token } => self.fin_received(token),
            Event::Secured { token, result } => self.secured(token, result),
            Event::Receiving { token } => self.receiving(token),
            Event::ReadClosed { token, end } if self.is_joined(token) => self.flow_ended(token, &end),
            Event::ReadClosed { token, end } => self.read_closed(token, &end),
            Event::Unsent { token } => self.unsent(token),
            Event::Sent { token, output, result } if self.is_joined(token) => {
                self.forwarded(token, output, &result);
            }
            Event::Sent { token, output, result } => self.sent(token, output, &result),
            Event::Detached { token, result } => self.detached(token, result),
            Event::Closed { token } => self.closed(token),
            Event::Woken => self.woken(),
        }
    }

    /// Returns how long the driver may wait.
    pub(crate) fn patience(&self) -> Option<Duration> {
        if self.is_busy() {
            return Some(Duration::ZERO);
        }
        let now_ms = self.driver.now_ms();
        let timer_ms = self.state.calls.clock.timers.next_due_ms();
        let files_ms = self.state.responder.open_files.due_ms();
        let wheel_ms = self.state.wheel.next_due_ms(now_ms).map(|due_ms| now_ms.saturating_add(due_ms));
        // On every turn's path: compares plain numbers instead of options.
        let never = u64::MAX;
        let first_ms = (self.accept_again_ms.unwrap_or(never))
            .min(self.drain_until_ms().unwrap_or(never))
            .min(timer_ms.unwrap_or(never))
            .min(self.idle_trim.due_ms().unwrap_or(never))
            .min(files_ms.unwrap_or(never))
            .min(self.state.reports.due_ms())
            .min(wheel_ms.unwrap_or(never));
        (first_ms < never).then(|| Duration::from_millis(first_ms.saturating_sub(now_ms)))
    }

    /// Returns the connections, busy ones and timers in use: all 0 without clients.
    #[must_use]
    pub fn in_use(&self) -> (usize, usize, usize) {
        (self.state.table.len(), self.state.busy.len(), self.state.wheel.len())
    }

    /// Returns the running tasks, the bytes that they hold for clients, and the sleeps: all 0 without clients
    /// and detached tasks.
    #[must_use]
    pub fn waiting_in_use(&self) -> (usize, usize, usize) {
        let calls = &self.state.calls;
        (calls.tasks.len(), calls.held_bytes().get(), calls.clock.timers.len())
    }

    /// Returns the memory that counts for [`Limits::buffered_bytes_max`], in bytes: 0 without clients.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.state.busy.counted_bytes()
    }

    /// Returns true if the next turn has work without an event: pending input, disconnected clients, ready
    /// tasks, memory to be freed, or room to be made.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let state = &self.state;
        !state.ready.is_empty()
            || !self.disconnects.is_empty()
            || state.calls.tasks.ready() > 0
            || state.busy.pool.is_busy()
            || self.room.left > 0
            || state.http2.is_busy()
    }

    /// Returns the worker's driver.
    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }
}
