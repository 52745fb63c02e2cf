//! A busy server that must not allocate: 10,000 requests on real sockets, with every worker and each driver. Also used
//! by the tests of `site`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use shearwater::{DriverChoice, Error, Response, Server, Service, StartError, Verbosity};
use testkit::CountingAllocator;

/// The allocator of the test binary.
#[global_allocator]
pub(crate) static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const WORKERS: usize = 2;
/// Enough for the kernel to give some to each worker.
const CONNECTIONS: usize = 32;
const REQUESTS: usize = 10_000;
/// Maximum of measured rounds; the last must not allocate.
const ROUNDS_MAX: usize = 5;
/// Requests of a warm-up round.
const WARM_UP: usize = 1_000;
/// Warm-up ends after this time without an allocator call: each file has then been checked again twice.
const QUIET: Duration = Duration::from_millis(1500);
/// Time limit of the warm-up. Buffers, tables and queues reach their size soon; a new file is read again for two
/// seconds.
const WARM_UP_MAX: Duration = Duration::from_secs(30);

/// Requests to a server: writes the head of each into a buffer, and checks its response. Neither allocates.
pub(crate) struct SteadyLoad {
    pub(crate) write: fn(&mut &mut [u8], usize) -> std::io::Result<()>,
    pub(crate) check: fn(&[u8], usize),
}

/// Counts the requests of each worker.
struct CountingService<S> {
    service: S,
    worker: usize,
    responses: Arc<[AtomicU64; WORKERS]>,
}

impl<S: Service> Service for CountingService<S> {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        self.responses[self.worker].fetch_add(1, Relaxed);
        self.service.respond(request, response);
    }
}

/// Checks that no driver's server allocates, and prints each figure.
pub(crate) fn assert_no_calls<S: Service + 'static>(make: fn(&Path) -> S, folder: &Path, load: &SteadyLoad) {
    assert!(ALLOCATOR.in_process().calls() > 0, "the counter works");
    let drivers = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    let figures = drivers.map(|driver| calls(make, folder, driver, load));
    for (driver, calls) in drivers.iter().zip(figures) {
        match calls {
            Some(calls) => println!("{REQUESTS} requests, {driver:?}: lab-figure allocations={calls}"),
            None => println!("{driver:?} isn't available here"),
        }
    }
    assert!(figures.iter().any(Option::is_some), "no driver");
    assert!(figures.iter().flatten().all(|&calls| calls == 0), "{figures:?}");
}

/// Returns the allocator calls in [`REQUESTS`] requests; `None` if the driver isn't available.
fn calls<S: Service + 'static>(
    make: fn(&Path) -> S,
    folder: &Path,
    driver: DriverChoice,
    load: &SteadyLoad,
) -> Option<u64> {
    let responses = Arc::new([const { AtomicU64::new(0) }; WORKERS]);
    let (counted, folder) = (Arc::clone(&responses), folder.to_owned());
    let service =
        move |worker| CountingService { service: make(&folder), worker, responses: Arc::clone(&counted) };
    let server = Server::bind("127.0.0.1:0").workers(WORKERS).driver(driver).verbosity(Verbosity::Off);
    let running = match server.start_service(service) {
        Ok(running) => running,
        Err(Error::Start(StartError::Driver { .. })) => return None,
        Err(error) => panic!("{error}"),
    };
    let connect = || TcpStream::connect(running.address()).expect("a connection");
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    warm_up(&mut clients, load);
    let mut round = || {
        let before = ALLOCATOR.in_process();
        let responses_before = responses.each_ref().map(|count| count.load(Relaxed));
        ask(&mut clients, REQUESTS, load);
        let calls = (ALLOCATOR.in_process() - before).calls();
        for (count, before) in responses.iter().zip(responses_before) {
            assert!(count.load(Relaxed) > before, "a worker got no requests");
        }
        calls
    };
    // On a busy machine a response may be in flight longer than ever before, and the next one needs another output
    // buffer: a few calls for each, once.
    let mut calls = round();
    for _ in 1..ROUNDS_MAX {
        assert!(calls <= 4 * CONNECTIONS as u64, "{calls} calls: more than an output buffer per connection");
        if calls == 0 {
            break;
        }
        calls = round();
    }
    drop(clients);
    running.control().drain(1_000);
    running.wait().expect("the server ends");
    Some(calls)
}

fn warm_up(clients: &mut [TcpStream], load: &SteadyLoad) {
    let start = Instant::now();
    let (mut seen, mut since) = (0, start);
    while since.elapsed() < QUIET {
        ask(clients, WARM_UP, load);
        let calls = ALLOCATOR.in_process().calls();
        if calls != seen {
            assert!(start.elapsed() < WARM_UP_MAX, "each round of {WARM_UP} requests calls the allocator");
            (seen, since) = (calls, Instant::now());
        }
    }
}

/// Sends `count` requests, over the connections in turn. Doesn't allocate.
fn ask(clients: &mut [TcpStream], count: usize, load: &SteadyLoad) {
    let (mut head, mut response) = ([0; 512], [0; 4096]);
    for number in 0..count {
        let client = &mut clients[number % CONNECTIONS];
        let mut rest = &mut head[..];
        (load.write)(&mut rest, number).expect("a head fits");
        let left = rest.len();
        let len = head.len() - left;
        client.write_all(&head[..len]).expect("the server reads");
        let mut got = 0;
        while !is_whole(&response[..got]) {
            let read = client.read(&mut response[got..]).expect("the server responds");
            assert!(read > 0, "the server closed");
            got += read;
        }
        (load.check)(&response[..got], number);
    }
}

/// Returns whether the response is complete by its `Content-Length`.
fn is_whole(response: &[u8]) -> bool {
    const LENGTH: &[u8] = b"\r\nContent-Length: ";
    let at = |text: &[u8]| response.windows(text.len()).position(|window| window == text);
    let (Some(end), Some(length)) = (at(b"\r\n\r\n"), at(LENGTH)) else { return false };
    let digits = response[length + LENGTH.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
    response.len() == end + 4 + length
}
