//! A busy server with metrics allocates nothing in 10,000 requests. A binary of its own, since the counter replaces the
//! allocator of the process.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use shearwater::{App, DriverChoice, Error, Request, Response, Server, StartError, Verbosity, get};
use shearwater_metrics::Metrics;
use testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const REQUESTS: usize = 10_000;
/// Rounds at most: the last one must not allocate.
const ROUNDS_MAX: usize = 5;
/// Warm-up ends after this time without an allocator call.
const QUIET: Duration = Duration::from_millis(500);
const WARM_UP_MAX: Duration = Duration::from_secs(30);

/// Requests in turn: found, missing, and with an unknown method.
const ASKED: [&[u8]; 3] = [
    b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /none HTTP/1.1\r\nHost: b\r\n\r\n",
    b"BREW /page HTTP/1.1\r\nHost: c\r\n\r\n",
];

#[test]
fn ten_thousand_counted_requests_allocate_nothing() {
    assert!(ALLOCATOR.in_process().calls() > 0, "the counter works");
    let drivers = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    let figures: Vec<_> = drivers.into_iter().filter_map(calls).collect();
    assert!(!figures.is_empty() && figures.iter().all(|calls| *calls == 0), "{figures:?}");
}

/// Returns the allocator calls in a round of requests; `None` if the driver isn't available.
fn calls(driver: DriverChoice) -> Option<u64> {
    let metrics = Metrics::new("0");
    let tag = metrics.site_tag("site");
    let app = App::new().route(
        "/page",
        get(move |_: &Request, response: &mut Response| {
            response.exchange_tag(tag).text("hello");
        }),
    );
    let server = metrics.observe(Server::bind("127.0.0.1:0").workers(1).driver(driver));
    let running = match server.verbosity(Verbosity::Off).start(app) {
        Ok(running) => running,
        Err(Error::Start(StartError::Driver { .. })) => return None,
        Err(error) => panic!("{error}"),
    };
    metrics.serving(&running);
    let mut client = TcpStream::connect(running.address()).expect("a connection");
    let start = Instant::now();
    let (mut seen, mut since) = (0, start);
    while since.elapsed() < QUIET {
        round(&mut client, 1_000);
        let calls = ALLOCATOR.in_process().calls();
        if calls != seen {
            assert!(start.elapsed() < WARM_UP_MAX, "each round calls the allocator");
            (seen, since) = (calls, Instant::now());
        }
    }
    let mut measure = || {
        let before = ALLOCATOR.in_process();
        round(&mut client, REQUESTS);
        (ALLOCATOR.in_process() - before).calls()
    };
    let mut calls = measure();
    for _ in 1..ROUNDS_MAX {
        if calls == 0 {
            break;
        }
        calls = measure();
    }
    let snapshot = metrics.snapshot();
    let counted = shearwater_metrics::document::Status::from(&snapshot).requests;
    assert!(counted.total >= REQUESTS as u64 && counted.by_method["other"] > 0);
    drop(client);
    running.control().drain(1_000);
    running.wait_for_control().expect("it ends");
    Some(calls)
}

/// Sends requests one by one, and reads each response. Doesn't allocate.
fn round(client: &mut TcpStream, requests: usize) {
    let mut response = [0; 1024];
    for number in 0..requests {
        client.write_all(ASKED[number % ASKED.len()]).expect("the server reads");
        let mut got = 0;
        while !is_whole(&response[..got]) {
            let read = client.read(&mut response[got..]).expect("the server responds");
            assert!(read > 0, "the server closed");
            got += read;
        }
    }
}

/// Returns true once the body has begun: the server sends each of these responses with one call.
fn is_whole(response: &[u8]) -> bool {
    let end = response.windows(4).position(|window| window == b"\r\n\r\n");
    end.is_some_and(|end| response.len() > end + 4)
}
