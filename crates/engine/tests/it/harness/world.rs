//! A worker on the simulated kernel, with means to run it.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use shearwater_engine::io::Driver;
use shearwater_engine::io::sim::{OperationKind, Sim, SimNet, SimOptions};
use shearwater_engine::tasks::Order;
use shearwater_engine::{Control, Limits, Notice, Setup, Timeouts, Totals, Worker};

use super::app::{self, TestApp};
use super::client::Client;
use super::waiting;

/// Turns after which a world that doesn't become idle is considered broken.
const TURNS_MAX: usize = 30_000;
/// Resolution of [`World::pass`].
const STEP_MS: u64 = 32;

/// Options of a world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting {
    pub(crate) sim: SimOptions,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) trusted_gateway: bool,
    pub(crate) order: Order,
    pub(crate) at_rest: Option<fn()>,
}

/// A worker, its network and its operator.
pub(crate) struct World {
    pub(crate) worker: Worker<Sim, TestApp>,
    pub(crate) net: SimNet,
    pub(crate) control: Arc<Control>,
    pub(crate) notices: Receiver<Notice>,
    /// Accepting may fail at random: a queued connection is worth waiting for.
    accept_fails: bool,
}

impl Default for World {
    fn default() -> Self {
        Self::new(Setting::default())
    }
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        app::hush();
        let accept_fails = setting.sim.accept_errors > 0.0;
        let sim = Sim::new(setting.sim);
        let net = sim.net();
        let (control, notices) = Control::new();
        let control = Arc::new(control);
        let mut setup = Setup::new(0, setting.limits, setting.timeouts, Arc::clone(&control));
        setup.trusted_gateway = setting.trusted_gateway;
        setup.order = setting.order;
        setup.at_rest = setting.at_rest;
        Self { worker: Worker::new(sim, TestApp, setup), net, control, notices, accept_fails }
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self::new(Setting { limits, ..Setting::default() })
    }

    pub(crate) fn with_timeouts(timeouts: Timeouts) -> Self {
        Self::new(Setting { timeouts, ..Setting::default() })
    }

    /// Connects a client.
    pub(crate) fn connect(&self) -> Client {
        Client::new(self.net.connect())
    }

    pub(crate) fn turn(&mut self) {
        self.worker.turn().expect("the simulated driver doesn't break");
    }

    /// Runs until the worker only waits for clients or deadlines.
    pub(crate) fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            if !self.turn_if_ready() {
                return;
            }
        }
        panic!("the worker doesn't come to rest");
    }

    /// Runs a turn, unless the worker would only sleep until a client sends or a deadline expires. Waits some
    /// milliseconds for a connection that the simulated kernel delays.
    pub(crate) fn turn_if_ready(&mut self) -> bool {
        let goes_on = self.worker.is_busy()
            || self.net.is_ready()
            || waiting::is_one_asleep()
            || self.net.next_due_ms().is_some()
            || (self.accept_fails && self.net.waiting() > 0);
        if goes_on {
            self.turn();
        }
        goes_on
    }

    /// Lets time pass, waking the worker at intervals.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.settle();
        let until_ms = self.net.now_ms() + ms;
        let waker = self.worker.driver_mut().waker();
        while self.net.now_ms() < until_ms {
            self.net.advance(STEP_MS.min(until_ms - self.net.now_ms()));
            waker.wake();
            self.settle();
        }
    }

    /// Sleeps as the worker would, until `is_enough`; returns the time.
    pub(crate) fn sleep_until(&mut self, is_enough: impl Fn() -> bool) -> u64 {
        for _ in 0..TURNS_MAX {
            self.net.advance(0);
            if is_enough() {
                return self.net.now_ms();
            }
            self.turn();
        }
        panic!("what is waited for doesn't come");
    }

    /// Lets the worker sleep and wake until all connections are closed, then checks for leftovers.
    pub(crate) fn end(&mut self) {
        for _ in 0..TURNS_MAX {
            if self.net.connections() == 0 && self.net.waiting() == 0 {
                return self.assert_nothing_left();
            }
            self.turn();
        }
        self.net.assert_quiet();
        panic!("{} connections wait in the queue for ever", self.net.waiting());
    }

    /// Runs a draining or stopping worker until it ends; returns the duration.
    pub(crate) fn run(&mut self) -> u64 {
        let began_ms = self.net.now_ms();
        for _ in 0..TURNS_MAX {
            if self.net.connections() == 0 && self.has_stopped_accepting() {
                // Never ends if the worker doesn't see it too.
                self.worker.run().expect("the simulated driver doesn't break");
                self.assert_nothing_left();
                return self.net.now_ms() - began_ms;
            }
            self.turn();
        }
        panic!("the worker doesn't end");
    }

    fn has_stopped_accepting(&self) -> bool {
        self.net.trace().iter().any(|operation| operation.kind == OperationKind::AcceptStop)
    }

    fn assert_nothing_left(&self) {
        self.net.assert_quiet();
        assert_eq!(self.worker.in_use(), (0, 0, 0), "(connections, blocks, timers) still in use");
        let (tasks, held, _) = self.worker.waiting_in_use();
        assert_eq!((tasks, held), (0, 0), "(tasks, bytes held for them) still in use");
        let totals = self.totals();
        assert_eq!(totals.connections_accepted, totals.connections_closed, "connections opened and closed");
    }

    /// Returns connections, blocks and timers in use.
    pub(crate) fn in_use(&self) -> (usize, usize, usize) {
        self.worker.in_use()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.control.totals()
    }

    /// Returns the notices so far.
    pub(crate) fn told(&self) -> Vec<Notice> {
        self.notices.try_iter().collect()
    }
}
