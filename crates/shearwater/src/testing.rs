//! Tests of an app in memory: one worker on a simulated kernel, without sockets or threads, with a clock that the test
//! advances.
//!
//! ```
//! use shearwater::testing::Tested;
//! use shearwater::{App, Call, get, later};
//! use std::time::Duration;
//!
//! async fn slow(call: &mut Call) -> &'static str {
//!     call.sleep(Duration::from_secs(3600)).await;
//!     "an hour later"
//! }
//!
//! let app = App::new().route("/slow", get(later(slow)));
//! let mut tested = Tested::new(app)?;
//! let mut client = tested.connect();
//! client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
//! tested.settle();
//! assert!(client.response().is_none());
//! tested.pass(Duration::from_secs(3600));
//! let response = client.response().expect("an hour has passed");
//! assert_eq!((response.status, response.text()), (200, "an hour later"));
//! # Ok::<(), shearwater::Error>(())
//! ```

mod every_cut;
mod response;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use shearwater_engine::io::Driver;
use shearwater_engine::io::sim::{Sim, SimNet, SimOptions, SimPeer};
use shearwater_engine::tasks::Order;
use shearwater_engine::{Control, Limits, Setup, Timeouts, Totals, Worker};

use crate::app::App;
use crate::error::Error;
use crate::handlers::offload::{Outstanding, Waited};
use crate::router::RoutesService;

pub use response::TestResponse;

/// Number of turns after which a worker counts as never idle.
const TURNS_MAX: usize = 1_000_000;

/// Granularity of simulated time, and the largest delay of a timer.
const STEP: Duration = Duration::from_millis(10);

/// Real time for which a test waits for the next piece of offloaded work.
pub const OFFLOADED_WAIT_MAX: Duration = Duration::from_secs(60);

/// An app under test, on its own worker.
pub struct Tested<S: 'static = ()> {
    worker: Worker<Sim, RoutesService<S>>,
    net: SimNet,
    control: Arc<Control>,
    outstanding: Arc<Outstanding>,
}

impl<S> fmt::Debug for Tested<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tested").field("now_ms", &self.now_ms()).finish_non_exhaustive()
    }
}

impl<S: 'static> App<S> {
    /// Creates a test of the app: see [`Tested`].
    ///
    /// # Panics
    /// If there are mistakes in its routes.
    #[must_use]
    #[track_caller]
    pub fn test(self) -> Tested<S> {
        Tested::new(self).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl<S> Tested<S> {
    /// Creates a test of an app, with default limits and timeouts.
    ///
    /// # Errors
    /// [`Error::Routes`] with the mistakes in its routes.
    pub fn new(app: App<S>) -> Result<Self, Error> {
        Self::with(app, Limits::default(), Timeouts::default(), Order::Fifo)
    }

    /// Creates a test of an app with limits, timeouts and a scheduling order.
    ///
    /// # Errors
    /// [`Error::Routes`] with the mistakes in its routes.
    pub fn with(app: App<S>, limits: Limits, timeouts: Timeouts, order: Order) -> Result<Self, Error> {
        let routes = app.build()?;
        let sim = Sim::new(SimOptions::default());
        let net = sim.net();
        let (control, _) = Control::new();
        let control = Arc::new(control);
        let mut setup = Setup::new(0, limits, timeouts, Arc::clone(&control));
        setup.order = order;
        let worker = Worker::new(sim, routes.service(0), setup);
        Ok(Self { worker, net, control, outstanding: Arc::default() })
    }

    /// Connects a client.
    pub fn connect(&mut self) -> Client {
        Client { peer: self.net.connect(), received: Vec::new() }
    }

    /// Sends a request on a new connection and returns the response, however long the handler sleeps.
    ///
    /// Simulated time stands still during [offloaded](crate::offload()) work.
    ///
    /// # Panics
    /// If there is no response within a simulated day; and as [`settle_offloaded`](Self::settle_offloaded).
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> TestResponse {
        let mut client = self.connect();
        client.send(request);
        let end_ms = self.net.now_ms() + 24 * 3600 * 1000;
        loop {
            self.settle_offloaded();
            if let Some(response) = client.response() {
                return response;
            }
            assert!(self.net.now_ms() < end_ms, "no response within a day; received: {:?}", client.unread());
            self.pass(STEP);
        }
    }

    /// Sends a `GET` request and returns the response. See [`ask`](Self::ask).
    ///
    /// # Panics
    /// As [`ask`](Self::ask).
    pub fn get(&mut self, target: &str) -> TestResponse {
        self.ask(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"))
    }

    /// Sends a `POST` request with a body and returns the response. See [`ask`](Self::ask).
    ///
    /// # Panics
    /// As [`ask`](Self::ask).
    pub fn post(&mut self, target: &str, body: impl AsRef<[u8]>) -> TestResponse {
        let body = body.as_ref();
        let head = format!("POST {target} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len());
        self.ask([head.as_bytes(), body].concat())
    }

    /// Runs one turn of the worker: it handles what has arrived and runs ready tasks.
    ///
    /// # Panics
    /// If the server violates the driver's contract, which is a bug of the server.
    pub fn turn(&mut self) {
        self.outstanding.during(|| self.worker.turn()).expect("the simulated kernel doesn't fail");
    }

    /// Runs turns until the worker waits only for clients, timers or other threads.
    ///
    /// # Panics
    /// If the worker never becomes idle.
    pub fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            if self.is_idle() {
                return;
            }
            self.turn();
        }
        panic!("the worker never becomes idle");
    }

    fn is_idle(&self) -> bool {
        !self.worker.is_busy() && !self.net.is_ready() && self.net.next_due_ms().is_none()
    }

    /// Settles, and waits for [offloaded](crate::offload()) work that handlers wait for.
    ///
    /// It doesn't wait for work of other threads: run [turns](Self::turn) until that has arrived.
    ///
    /// # Panics
    /// If no work finishes within [`OFFLOADED_WAIT_MAX`]; and as [`settle`](Self::settle).
    pub fn settle_offloaded(&mut self) {
        assert!(
            self.settle_within(OFFLOADED_WAIT_MAX),
            "offloaded work didn't finish; help: if it isn't meant to, use `connect`, `settle` and `pass`"
        );
    }

    /// Returns false if offloaded work doesn't finish in time, or always leads to more.
    fn settle_within(&mut self, timeout: Duration) -> bool {
        for _ in 0..TURNS_MAX {
            let seen = self.outstanding.finished();
            self.settle();
            match self.outstanding.wait(seen, timeout) {
                Waited::Nothing => return true,
                Waited::Finished => {}
                Waited::TimedOut => return false,
            }
        }
        false
    }

    /// Advances the simulated clock and lets the worker run.
    ///
    /// [Offloaded](crate::offload()) work may finish before or after: call [`settle_offloaded`](Self::settle_offloaded)
    /// first to be certain.
    ///
    /// # Panics
    /// As [`settle`](Self::settle).
    pub fn pass(&mut self, duration: Duration) {
        self.settle();
        let mut left = duration;
        while !left.is_zero() {
            let step = left.min(STEP);
            left -= step;
            self.advance(step);
            self.settle();
        }
    }

    /// Advances the clock, which the worker sees in its next turn.
    fn advance(&mut self, duration: Duration) {
        self.net.advance(duration.as_millis() as u64);
        self.worker.driver_mut().waker().wake();
    }

    /// Returns the time of the simulated clock in milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.net.now_ms()
    }

    /// Returns the worker's counters.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.control.totals()
    }
}

/// A client of an app under test.
pub struct Client {
    peer: SimPeer,
    received: Vec<u8>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl Client {
    /// Sends bytes: one request, several, or a part of one.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.peer.write(bytes.as_ref());
    }

    /// Returns the next final response if it has arrived in full. Interim ones (`100 Continue`) are skipped.
    ///
    /// Doesn't support responses to `HEAD`.
    pub fn response(&mut self) -> Option<TestResponse> {
        self.received.extend(self.peer.read());
        let (response, len) = TestResponse::parse(&self.received, self.peer.saw_fin())?;
        self.received.drain(..len);
        Some(response)
    }

    /// Returns the bytes received that [`response`](Self::response) hasn't returned.
    pub fn unread(&mut self) -> &[u8] {
        self.received.extend(self.peer.read());
        &self.received
    }

    /// Closes the sending side of the connection.
    pub fn finish(&mut self) {
        self.peer.finish();
    }

    /// Closes the connection. Later bytes of the server get a reset.
    pub fn close(&mut self) {
        self.peer.close();
    }

    /// Resets the connection.
    pub fn reset(&mut self) {
        self.peer.reset();
    }

    /// Returns true if the server has closed or reset the connection.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.peer.saw_fin() || self.peer.saw_reset()
    }

    /// Sets whether the client reads. While it doesn't, handlers that send to it wait.
    pub fn set_reading(&mut self, is_reading: bool) {
        self.peer.set_reading(is_reading);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    use super::{OFFLOADED_WAIT_MAX, Tested};
    use crate::{App, Call, Offloaded, get, later, offload};

    #[test]
    fn bounds_the_wait_for_offloaded_work() {
        let gate = Arc::new(Barrier::new(2));
        let there = Arc::clone(&gate);
        let wait = async move |_: &mut Call| -> Result<&'static str, Offloaded> {
            let there = Arc::clone(&there);
            offload(move || there.wait().is_leader()).await?;
            Ok("done")
        };
        let app = App::new().route("/", get(later(wait)));
        let mut tested = Tested::new(app).expect("one route");
        let mut client = tested.connect();
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        assert!(!tested.settle_within(Duration::ZERO), "it isn't done");
        assert!(client.response().is_none());
        gate.wait();
        assert!(tested.settle_within(OFFLOADED_WAIT_MAX), "it is done");
        assert_eq!(client.response().expect("the work is done").text(), "done");
        assert!(tested.settle_within(Duration::ZERO), "there is nothing to wait for");
    }
}
