//! A client of HTTP/2 by prior knowledge on the simulated network, whose frames testkit reads and writes.

use shearwater_engine::io::sim::OperationKind;
use shearwater_engine::{Http2Options, Limits, Service, Timeouts};
use testkit::ClientResponse;
use testkit::http2::{Session, request_fields};

use crate::harness::{Setting, SimClient, SimWorld};

/// Returns a world that serves HTTP/2 by prior knowledge.
pub(super) fn world() -> SimWorld {
    world_with(Limits::default(), Timeouts::default())
}

pub(super) fn world_with(limits: Limits, timeouts: Timeouts) -> SimWorld {
    SimWorld::new(setting(limits, timeouts))
}

/// Returns a setting with HTTP/2 by prior knowledge.
pub(super) fn setting(limits: Limits, timeouts: Timeouts) -> Setting {
    let http2 = Http2Options { prior_knowledge: true, ..Http2Options::default() };
    Setting { http2, limits, timeouts, ..Setting::default() }
}

/// Returns the number of sends so far.
pub(super) fn sends(world: &SimWorld) -> usize {
    world.net.trace().iter().filter(|operation| operation.kind == OperationKind::SendAttempt).count()
}

/// A client of HTTP/2 on the simulated network.
pub(super) struct SimHttp2Client {
    pub(super) sim: SimClient,
    pub(super) session: Session,
}

impl SimHttp2Client {
    /// Connects; the preface and both SETTINGS are exchanged.
    pub(super) fn connect<S: Service>(world: &mut SimWorld<S>) -> Self {
        Self::with_settings(world, &[])
    }

    pub(super) fn with_settings<S: Service>(world: &mut SimWorld<S>, settings: &[(u16, u32)]) -> Self {
        let mut client = Self { sim: world.connect(), session: Session::new(settings) };
        client.exchange(world);
        client
    }

    /// Queues a request without content.
    pub(super) fn get(&mut self, target: &str) -> u32 {
        self.session.begin_whole(&request_fields("http", "GET", target, &[]))
    }

    /// Queues a request whose content follows.
    pub(super) fn begin(&mut self, target: &str, fields: &[(&str, &str)]) -> u32 {
        self.session.begin(&request_fields("http", "POST", target, fields))
    }

    /// Queues a request with content, whose length it doesn't announce.
    pub(super) fn post(&mut self, target: &str, content: &[u8]) -> u32 {
        let stream = self.begin(target, &[]);
        self.session.send_data(stream, content, true);
        stream
    }

    /// Sends what is queued, and reads, until neither side has anything.
    #[track_caller]
    pub(super) fn exchange<S: Service>(&mut self, world: &mut SimWorld<S>) {
        loop {
            let output = self.session.take_output();
            if !output.is_empty() {
                self.sim.send(&output);
            }
            world.settle();
            let received = self.sim.peer.read();
            self.session.receive(&received).unwrap_or_else(|error| panic!("{error}"));
            if self.sim.peer.saw_fin() {
                return self.session.receive_end().unwrap_or_else(|error| panic!("{error}"));
            }
            if output.is_empty() && received.is_empty() {
                return;
            }
        }
    }

    /// Exchanges, lets time pass, and exchanges.
    #[track_caller]
    pub(super) fn pass<S: Service>(&mut self, world: &mut SimWorld<S>, ms: u64) {
        self.exchange(world);
        world.pass(ms);
        self.exchange(world);
    }

    /// Returns the whole response of a stream, which has arrived.
    #[track_caller]
    pub(super) fn response(&mut self, stream: u32) -> ClientResponse {
        let response = self.session.response(stream).unwrap_or_else(|error| panic!("{error}"));
        response.unwrap_or_else(|| panic!("no response of stream {stream}"))
    }

    /// Asserts that a stream has no whole response yet.
    #[track_caller]
    pub(super) fn assert_pending(&mut self, stream: u32) {
        assert_eq!(self.session.response(stream), Ok(None));
    }

    /// Asserts that the connection serves another request, for which the windows may be empty.
    #[track_caller]
    pub(super) fn assert_usable<S: Service>(&mut self, world: &mut SimWorld<S>) {
        let stream = self.get("/empty");
        self.exchange(world);
        assert_eq!(self.response(stream).status, 200);
        assert_eq!((self.session.go_away(), self.session.is_over()), (None, false));
    }

    /// Closes the client's side, and checks that nothing is left.
    #[track_caller]
    pub(super) fn finish<S: Service>(&self, world: &mut SimWorld<S>) {
        world.finish(&self.sim);
    }
}
