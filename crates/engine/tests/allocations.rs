//! Heap memory: everything that unfinished requests hold is accounted for, and large responses leave little.
//! A separate binary, because the counter replaces the process's allocator.

use std::sync::{Arc, Mutex, PoisonError};

use shearwater_engine::http1::Head;
use shearwater_engine::io::sim::{Sim, SimNet, SimOptions, SimPeer};
use shearwater_engine::limits::SPARE_RESPONSE_BYTES_MAX;
use shearwater_engine::{BodyPolicy, Control, Limits, Request, Response, Service, Setup, Timeouts, Worker};
use testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Serializes the tests: allocations are counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

const CLIENTS: usize = 300;
/// Length of a request: too short for mapped pages, which the allocator doesn't see.
const LEN: usize = 3000;
/// Lists of the worker and of the simulated kernel that grow with each client, and rounded sizes of futures, in bytes.
const ELSEWHERE_BYTES: usize = 344;

/// Length of a large response.
const LARGE_BYTES: usize = 20_000_000;

struct CountedApp;

impl Service for CountedApp {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        match head.path() {
            "/kept" => BodyPolicy::Buffer { bytes_max: u64::MAX },
            "/taken" | "/held" => BodyPolicy::Call,
            _ => BodyPolicy::Discard,
        }
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match request.path() {
            "/taken" | "/waits" => response.defer(request, |call| async move {
                std::future::pending::<()>().await;
                drop(call);
            }),
            "/held" => response.defer(request, |mut call| async move {
                call.read().await;
                std::future::pending::<()>().await;
            }),
            "/field-waits" => response.field("X-Before", "1").defer(request, |call| async move {
                std::future::pending::<()>().await;
                drop(call);
            }),
            "/large" => drop(response.body_with(|out| out.resize(LARGE_BYTES, b'x'))),
            "/large-later" => response.defer(request, |mut call| async move {
                call.response().body_with(|out| out.resize(LARGE_BYTES, b'x'));
            }),
            _ => drop(response.text("done")),
        }
    }
}

struct CountedWorld {
    worker: Worker<Sim, CountedApp>,
    net: SimNet,
}

impl CountedWorld {
    fn new() -> Self {
        let sim = Sim::new(SimOptions::default());
        let net = sim.net();
        let (control, _notices) = Control::new();
        let setup = Setup::new(0, Limits::default(), Timeouts::default(), Arc::new(control));
        Self { worker: Worker::new(sim, CountedApp, setup), net }
    }

    /// Sends `bytes` from each client; returns how many bytes it got in total.
    fn send(&mut self, peers: &[SimPeer], bytes: &[u8]) -> usize {
        for peer in peers {
            assert!(peer.write(bytes), "the connection is open");
        }
        while self.worker.is_busy() || self.net.is_ready() {
            self.worker.turn().expect("the simulated driver doesn't break");
        }
        peers.iter().map(|peer| peer.read().len()).sum()
    }

    /// Returns bytes allocated and not freed, and those that the worker counts.
    fn held(&self) -> (usize, usize) {
        (ALLOCATOR.in_process().live_bytes() as usize, self.worker.buffered_bytes())
    }
}

/// Returns the bytes that each client makes the worker allocate by sending `bytes`, and those that it counts.
fn held_by_each(bytes: &[u8]) -> (usize, usize) {
    let mut world = CountedWorld::new();
    let peers = world.net.connect_many(CLIENTS);
    // The simulated network has allocated its own buffers after some requests.
    let whole = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(2 * LEN));
    for _ in 0..5 {
        world.send(&peers, whole.as_bytes());
    }
    let before = world.held();
    world.send(&peers, bytes);
    let after = world.held();
    assert_eq!(before.1, 0, "nothing is unfinished");
    ((after.0 - before.0) / CLIENTS, after.1 / CLIENTS)
}

#[test]
fn counts_all_memory_of_an_unfinished_request() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let filler = "x".repeat(LEN);
    for part in [
        "G".to_owned(),
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: {filler}"),
        "POST /kept HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n".to_owned(),
        format!("POST /kept HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n{filler}"),
        format!("POST /kept HTTP/1.1\r\nHost: a\r\nX: {filler}\r\nContent-Length: 9\r\n\r\n"),
        format!("POST /taken HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n{filler}"),
        format!("POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n{filler}"),
        format!("GET /waits HTTP/1.1\r\nHost: a\r\nX: {filler}\r\n\r\n"),
        format!("GET /field-waits HTTP/1.1\r\nHost: a\r\nX: {filler}\r\n\r\n"),
        format!("GET /waits HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: {filler}"),
    ] {
        let (allocated, counted) = held_by_each(part.as_bytes());
        let line = part.lines().next().unwrap_or_default();
        let is_exact = allocated.abs_diff(counted) <= ELSEWHERE_BYTES;
        assert!(is_exact && counted >= part.len(), "{line}: {allocated} allocated, {counted} counted");
    }
}

#[test]
fn a_large_response_leaves_little_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for target in ["/large", "/large-later"] {
        let mut world = CountedWorld::new();
        let peers = world.net.connect_many(1);
        let request = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        world.send(&peers, &request("/"));
        let before = world.held().0;
        assert!(world.send(&peers, &request(target)) > LARGE_BYTES);
        let left = world.held().0.saturating_sub(before);
        // Memory of the simulated network, and a spare output.
        let elsewhere = 1 << 20;
        assert!(left <= SPARE_RESPONSE_BYTES_MAX + elsewhere, "{target}: {left} bytes left");
    }
}
