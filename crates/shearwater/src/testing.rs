//! An app under test: one worker in memory, on a simulated kernel, without sockets or threads, with the clock in the test's hand.
//!
//! ```
//! use shearwater::testing::Tested;
//! use shearwater::{App, Call};
//! use std::time::Duration;
//!
//! let mut app = App::new();
//! app.get_async("/slow", async |call: &mut Call| {
//!     call.sleep(Duration::from_secs(3600)).await;
//!     call.response().text("an hour later");
//! });
//! let mut tested = Tested::new(app)?;
//! let mut client = tested.connect();
//! client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
//! tested.settle();
//! assert!(client.answer().is_none());
//! tested.pass(Duration::from_secs(3600));
//! let answer = client.answer().expect("its time has come");
//! assert_eq!((answer.status, answer.text()), (200, "an hour later"));
//! # Ok::<(), shearwater::Error>(())
//! ```

mod answer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use shearwater_engine::io::Driver;
use shearwater_engine::io::sim::{Sim, SimNet, SimOptions, SimPeer};
use shearwater_engine::tasks::Order;
use shearwater_engine::{Control, Limits, Setup, Timeouts, Totals, Worker};

use crate::outstanding::{Outstanding, Waited};
use crate::{App, Error, RoutesService};

pub use answer::Answer;

/// Turns after which a worker that doesn't come to rest is taken for one that never will.
const TURNS_MAX: usize = 1_000_000;

/// How finely time passes: no timer is later than that.
const STEP: Duration = Duration::from_millis(10);

/// How long a test waits for the next piece of offloaded work to be done. It is real time: other threads know no other.
pub const OFFLOADED_PATIENCE: Duration = Duration::from_secs(60);

/// An app on a worker of its own.
pub struct Tested {
    worker: Worker<Sim, RoutesService>,
    net: SimNet,
    control: Arc<Control>,
    outstanding: Arc<Outstanding>,
}

impl fmt::Debug for Tested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tested").field("now_ms", &self.now_ms()).finish_non_exhaustive()
    }
}

impl Tested {
    /// Puts an app under test, with the default limits.
    ///
    /// # Errors
    /// What is wrong with its routes.
    pub fn new(app: App) -> Result<Self, Error> {
        Self::with(app, Limits::default(), Timeouts::default(), Order::Fifo)
    }

    /// Puts an app under test.
    ///
    /// # Errors
    /// What is wrong with its routes.
    pub fn with(app: App, limits: Limits, timeouts: Timeouts, order: Order) -> Result<Self, Error> {
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

    /// A client that has connected.
    pub fn connect(&mut self) -> Client {
        Client { peer: self.net.connect(), got: Vec::new() }
    }

    /// Sends one request on a connection of its own and gives the answer, however long the handler sleeps. No time passes while it waits
    /// for [offloaded](crate::offload()) work.
    ///
    /// # Panics
    /// If there is none within a day of the app's time; and as [`settle_offloaded`](Self::settle_offloaded).
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        let mut client = self.connect();
        client.send(request);
        let end_ms = self.net.now_ms() + 24 * 3600 * 1000;
        loop {
            self.settle_offloaded();
            if let Some(answer) = client.answer() {
                return answer;
            }
            assert!(self.net.now_ms() < end_ms, "no answer within a day; what came: {:?}", client.unread());
            self.pass(STEP);
        }
    }

    /// `GET` of a target: see [`ask`](Self::ask).
    ///
    /// # Panics
    /// As there.
    pub fn get(&mut self, target: &str) -> Answer {
        self.ask(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"))
    }

    /// `POST` of a body: see [`ask`](Self::ask).
    ///
    /// # Panics
    /// As there.
    pub fn post(&mut self, target: &str, body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let head = format!("POST {target} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len());
        self.ask([head.as_bytes(), body].concat())
    }

    /// One turn of the worker: it takes what has arrived and calls what is ready.
    ///
    /// # Panics
    /// If it breaks a rule of the kernel's contract: a fault of the server.
    pub fn turn(&mut self) {
        self.outstanding.during(|| self.worker.turn()).expect("the simulated kernel doesn't break");
    }

    /// Turns until there is nothing left to do but to wait for clients, timers or other threads.
    ///
    /// # Panics
    /// If that moment doesn't come.
    pub fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            if !self.worker.is_busy() && !self.net.is_ready() && self.net.next_due_ms().is_none() {
                return;
            }
            self.turn();
        }
        panic!("the worker doesn't come to rest");
    }

    /// Settles, and waits meanwhile for what handlers have [offloaded](crate::offload()) and still wait for. What else other threads do for
    /// them is not waited for: take [turns](Self::turn) until it has arrived.
    ///
    /// # Panics
    /// If none of that work is done within [`OFFLOADED_PATIENCE`]; and as [`settle`](Self::settle).
    pub fn settle_offloaded(&mut self) {
        assert!(
            self.settle_within(OFFLOADED_PATIENCE),
            "offloaded work doesn't end; where it shouldn't, use `connect`, `settle` and `pass`"
        );
    }

    /// False where offloaded work isn't done in time, or always leads to more.
    fn settle_within(&mut self, patience: Duration) -> bool {
        for _ in 0..TURNS_MAX {
            let seen = self.outstanding.over();
            self.settle();
            match self.outstanding.wait(seen, patience) {
                Waited::Nothing => return true,
                Waited::Over => {}
                Waited::InVain => return false,
            }
        }
        false
    }

    /// Lets time pass, and the worker act on it. It passes for [offloaded](crate::offload()) work too, done or not:
    /// [`settle_offloaded`](Self::settle_offloaded) before it makes that certain.
    ///
    /// # Panics
    /// As [`settle`](Self::settle).
    pub fn pass(&mut self, duration: Duration) {
        self.settle();
        let waker = self.worker.driver_mut().waker();
        let mut left = duration;
        while !left.is_zero() {
            let step = left.min(STEP);
            self.net.advance(step.as_millis() as u64);
            left -= step;
            waker.wake();
            self.settle();
        }
    }

    /// Milliseconds of the worker's clock.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.net.now_ms()
    }

    /// What the worker has counted.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.control.totals()
    }
}

/// A client of an app under test.
pub struct Client {
    peer: SimPeer,
    got: Vec<u8>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl Client {
    /// Sends bytes: whole requests, or parts of them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.peer.write(bytes.as_ref());
    }

    /// The next answer, if it has come as a whole: whatever stands before it, such as `100 Continue`, is passed over. For requests other than
    /// `HEAD`.
    pub fn answer(&mut self) -> Option<Answer> {
        self.got.extend(self.peer.read());
        let (answer, len) = Answer::parse(&self.got, self.peer.saw_fin())?;
        self.got.drain(..len);
        Some(answer)
    }

    /// What has come and was not given as an answer.
    pub fn unread(&mut self) -> &[u8] {
        self.got.extend(self.peer.read());
        &self.got
    }

    /// Ends the sending side.
    pub fn finish(&mut self) {
        self.peer.finish();
    }

    /// Goes away without a word.
    pub fn reset(&mut self) {
        self.peer.reset();
    }

    /// Whether the server has ended the connection.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.peer.saw_fin() || self.peer.saw_reset()
    }

    /// Whether it takes what it is sent: one that doesn't makes handlers wait.
    pub fn set_reading(&mut self, is_reading: bool) {
        self.peer.set_reading(is_reading);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    use super::{OFFLOADED_PATIENCE, Tested};
    use crate::{App, Call, Offloaded, offload};

    #[test]
    fn the_wait_for_offloaded_work_has_its_bound() {
        let gate = Arc::new(Barrier::new(2));
        let there = Arc::clone(&gate);
        let mut app = App::new();
        app.get_async("/", async move |call: &mut Call| -> Result<(), Offloaded> {
            let there = Arc::clone(&there);
            offload(move || there.wait().is_leader()).await?;
            call.response().text("done");
            Ok(())
        });
        let mut tested = Tested::new(app).expect("one route");
        let mut client = tested.connect();
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        assert!(!tested.settle_within(Duration::ZERO), "it isn't done");
        assert!(client.answer().is_none());
        gate.wait();
        assert!(tested.settle_within(OFFLOADED_PATIENCE), "it is done");
        assert_eq!(client.answer().expect("the work is done").text(), "done");
        assert!(tested.settle_within(Duration::ZERO), "there is nothing to wait for");
    }
}
