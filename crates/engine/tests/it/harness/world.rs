//! A worker on the simulated kernel, with means to run it, and its clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use shearwater_engine::io::secure::RECORD_BYTES_MAX;
use shearwater_engine::io::sim::{OperationKind, Sim, SimNet, SimOptions, SimPeer};
use shearwater_engine::tasks::Order;
use shearwater_engine::{
    Control, ExchangeListener, FinishedExchange, Http2Options, Limits, Notice, ProxyOptions, Service, Setup,
    Timeouts, Totals, TrustedProxies, Worker,
};

use super::app::{self, TestApp};
use super::handlers;
use super::letters::{CONTENT, SecureSim, SimDriver, record};
use super::unit::{ExpectedOutput, ExpectedResponse, OutputMatch, get, show};

/// Turns after which a world that doesn't become idle is considered broken.
const TURNS_MAX: usize = 30_000;
/// Resolution of [`SimWorld::pass`].
const STEP_MS: u64 = 32;

/// Options of a world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting {
    pub(crate) sim: SimOptions,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) proxies: ProxyOptions,
    pub(crate) http2: Http2Options,
    pub(crate) order: Order,
    pub(crate) at_rest: Option<fn()>,
    pub(crate) listeners: Vec<ExchangeListener>,
    /// Without the listener that counts exchanges.
    pub(crate) is_unobserved: bool,
}

impl Setting {
    /// Returns a setting in which these proxies are trusted, and each connection begins with a PROXY header or none does.
    pub(crate) fn trusting(entries: &[&str], requires_header: bool) -> Self {
        let trusted = TrustedProxies::new(entries).expect("valid entries");
        let proxies = ProxyOptions { trusted, requires_header, ..ProxyOptions::default() };
        Self { proxies, ..Self::default() }
    }
}

/// A worker, its network and its operator.
pub(crate) struct SimWorld<S = TestApp, D: SimDriver = Sim> {
    pub(crate) worker: Worker<D, S>,
    pub(crate) net: SimNet,
    pub(crate) control: Arc<Control>,
    notices: Receiver<Notice>,
    /// Accepting may fail at random: a queued connection is worth waiting for.
    accept_fails: bool,
    /// Exchanges with a response, and those without; `None` if nothing listens.
    exchanges: Option<Arc<[AtomicU64; 2]>>,
}

impl Default for SimWorld {
    fn default() -> Self {
        Self::new(Setting::default())
    }
}

impl SimWorld {
    pub(crate) fn new(setting: Setting) -> Self {
        Self::of(setting, TestApp)
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self::new(Setting { limits, ..Setting::default() })
    }

    pub(crate) fn with_timeouts(timeouts: Timeouts) -> Self {
        Self::new(Setting { timeouts, ..Setting::default() })
    }
}

impl<S: Service> SimWorld<S> {
    /// Returns a world with another service.
    pub(crate) fn of(setting: Setting, service: S) -> Self {
        Self::on_driver(setting, service)
    }
}

impl<S: Service> SimWorld<S, SecureSim> {
    /// Returns a world whose connections have TLS.
    pub(crate) fn with_tls(setting: Setting, service: S) -> Self {
        Self::on_driver(setting, service)
    }
}

impl<S: Service, D: SimDriver> SimWorld<S, D> {
    pub(crate) fn on_driver(setting: Setting, service: S) -> Self {
        app::hush();
        let accept_fails = setting.sim.accept_errors > 0.0;
        let sim = Sim::new(setting.sim);
        let net = sim.net();
        let (control, notices) = Control::new();
        let control = Arc::new(control);
        let mut setup = Setup::new(0, setting.limits, setting.timeouts, Arc::clone(&control));
        setup.proxies = setting.proxies;
        setup.http2 = setting.http2;
        setup.order = setting.order;
        setup.at_rest = setting.at_rest;
        setup.listeners = setting.listeners;
        setup.secure_listeners = if D::HELLO.is_empty() { Vec::new() } else { vec![0] };
        let exchanges = (!setting.is_unobserved).then(Arc::default);
        setup.listeners.extend(exchanges.iter().map(counter));
        let worker = Worker::new(D::over(sim), service, setup);
        Self { worker, net, control, notices, accept_fails, exchanges }
    }

    /// Connects a client.
    pub(crate) fn connect(&self) -> SimClient {
        let client = SimClient { has_tls: !D::HELLO.is_empty(), ..SimClient::new(self.net.connect()) };
        client.peer.write(D::HELLO);
        client
    }

    /// Connects a client that sends `bytes`, and runs the worker until it is idle.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> SimClient {
        self.send_pieces([bytes])
    }

    /// Connects a client that sends these pieces; the worker becomes idle after each.
    pub(crate) fn send_pieces(&mut self, pieces: impl IntoIterator<Item: AsRef<[u8]>>) -> SimClient {
        let mut client = self.connect();
        for piece in pieces {
            self.feed(&mut client, piece);
        }
        client
    }

    /// The client sends `bytes`, and the worker runs until it is idle.
    pub(crate) fn feed(&mut self, client: &mut SimClient, bytes: impl AsRef<[u8]>) {
        client.send(bytes);
        self.settle();
    }

    /// The client reads again, and the worker runs until it is idle.
    pub(crate) fn read_on(&mut self, client: &SimClient) {
        client.peer.set_reading(true);
        self.settle();
    }

    /// Connects a client that sends `bytes`, and returns what it receives within a moment.
    pub(crate) fn ask(&mut self, bytes: impl AsRef<[u8]>) -> (String, SimClient) {
        let mut client = self.send(bytes);
        self.pass(400);
        (client.text(), client)
    }

    /// Asserts the responses to a client that sends these pieces and then a FIN; nothing is left of it.
    #[track_caller]
    pub(crate) fn assert_responds<'a>(
        &mut self,
        pieces: impl IntoIterator<Item: AsRef<[u8]>>,
        responses: impl IntoIterator<Item = &'a ExpectedResponse>,
    ) {
        let mut client = self.send_pieces(pieces);
        client.assert_got(responses);
        self.finish(&client);
        client.assert_closed();
    }

    /// Asserts that the connection is usable: another request succeeds on it.
    #[track_caller]
    pub(crate) fn assert_usable(&mut self, client: &mut SimClient) {
        let before = client.read().len();
        client.send(get("/plain/9"));
        self.settle();
        let text = client.text();
        assert!(text[before..].starts_with("HTTP/1.1 200 OK\r\n"), "{text:?}");
        assert!(!client.peer.saw_fin() && !client.peer.saw_reset());
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
        let is_ready = self.worker.is_busy()
            || self.worker.driver_mut().has_work()
            || self.net.is_ready()
            || handlers::is_one_asleep()
            || self.net.next_due_ms().is_some()
            || (self.accept_fails && self.net.waiting() > 0);
        if is_ready {
            self.turn();
        }
        is_ready
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
    pub(crate) fn sleep_until(&mut self, is_enough: impl Fn(&SimNet) -> bool) -> u64 {
        for _ in 0..TURNS_MAX {
            self.net.advance(0);
            if is_enough(&self.net) {
                return self.net.now_ms();
            }
            self.turn();
        }
        panic!("nothing ends the wait");
    }

    /// Sleeps until the server has closed the connection, by FIN or reset; returns the duration.
    pub(crate) fn sleep_until_closed(&mut self, client: &SimClient) -> u64 {
        let began_ms = self.net.now_ms();
        self.sleep_until(|_| client.peer.saw_fin() || client.peer.saw_reset()) - began_ms
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

    /// Lets a client send a FIN, and [ends](Self::end).
    pub(crate) fn finish(&mut self, client: &SimClient) {
        client.peer.finish();
        self.end();
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
        let still = (tasks, held, handlers::at_work());
        assert_eq!(still, (0, 0, 0), "(tasks, bytes held for them, handlers) still in use");
        let totals = self.totals();
        assert_eq!(totals.connections_accepted, totals.connections_closed, "connections opened and closed");
        if let Some([responded, _]) = self.exchanges.as_deref() {
            let responses = totals.requests + totals.requests_refused;
            assert_eq!(responded.load(Ordering::Relaxed), responses, "exchanges and responses");
        }
    }

    /// Returns connections, blocks and timers in use.
    pub(crate) fn in_use(&self) -> (usize, usize, usize) {
        self.worker.in_use()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.control.totals()
    }

    /// Returns the notices so far.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.notices.try_iter().collect()
    }
}

/// Returns a listener that counts exchanges with and without a response.
fn counter(counts: &Arc<[AtomicU64; 2]>) -> ExchangeListener {
    let counts = Arc::clone(counts);
    ExchangeListener::new(&[], move |_| {
        let counts = Arc::clone(&counts);
        move |finished: &FinishedExchange<'_>| {
            counts[usize::from(finished.status().is_none())].fetch_add(1, Ordering::Relaxed);
        }
    })
}

/// A client of the simulated network.
#[derive(Debug)]
pub(crate) struct SimClient {
    pub(crate) peer: SimPeer,
    /// True if `send` wraps its bytes in records.
    has_tls: bool,
    /// Bytes that the network has accepted from it.
    pub(crate) sent: usize,
    pub(crate) got: Vec<u8>,
}

impl SimClient {
    pub(crate) fn new(peer: SimPeer) -> Self {
        Self { peer, has_tls: false, sent: 0, got: Vec::new() }
    }

    /// Sends, and counts the bytes that the network accepts.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        if !self.has_tls {
            self.sent += if self.peer.write(bytes) { bytes.len() } else { 0 };
            return;
        }
        for content in bytes.chunks(RECORD_BYTES_MAX) {
            self.sent += if self.peer.write(&record(CONTENT, content)) { content.len() } else { 0 };
        }
    }

    pub(crate) fn read(&mut self) -> &[u8] {
        self.got.extend(self.peer.read());
        &self.got
    }

    /// Returns all that it has received, as text.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.read()).into_owned()
    }

    /// Stops reading; the network holds so many bytes for it.
    pub(crate) fn stop_reading(&self, window: usize) {
        self.peer.set_window(window);
        self.peer.set_reading(false);
    }

    /// Asserts that it has received exactly these responses.
    #[track_caller]
    pub(crate) fn assert_got<'a>(&mut self, responses: impl IntoIterator<Item = &'a ExpectedResponse>) {
        let mut expected = ExpectedOutput::default();
        responses.into_iter().for_each(|response| expected.push(response));
        self.assert_expected(&expected);
    }

    /// Asserts that it has received exactly these responses, and then a FIN.
    #[track_caller]
    pub(crate) fn assert_last<'a>(&mut self, responses: impl IntoIterator<Item = &'a ExpectedResponse>) {
        self.assert_got(responses);
        self.assert_closed();
    }

    #[track_caller]
    pub(crate) fn assert_expected(&mut self, expected: &ExpectedOutput) {
        let verdict = expected.compare(self.read());
        let at = if let OutputMatch::Differs { at } = verdict { at } else { self.got.len() };
        assert_eq!(verdict, OutputMatch::Equal, "got {}", show(&self.got, at));
    }

    /// Asserts that the server has closed the connection with a FIN, not a reset.
    #[track_caller]
    pub(crate) fn assert_closed(&mut self) {
        self.read();
        assert!(!self.peer.saw_reset(), "a reset");
        assert!(self.peer.saw_fin(), "no FIN");
    }
}
