//! Requests of routes don't allocate: 10,000 requests of each kind on real sockets, with each driver. A separate
//! binary, because the counter replaces the process's allocator.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;

use shearwater::{
    App, Cors, DriverChoice, Error, Fast, FinishedExchange, Request, Response, Server, StartError, Verbosity,
    after, get, guard,
};
use testkit::CountingAllocator;

const WORKERS: usize = 2;
const CONNECTIONS: usize = 16;
const REQUESTS: usize = 10_000;
/// Maximum number of rounds: buffers, tables and queues grow in the first ones, and the last must not allocate.
const ROUNDS_MAX: usize = 10;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// The requests, in turn, and the status of their responses.
const KINDS: &[(&str, &str)] = &[
    ("GET /handler", "200"),
    ("GET /fast", "200"),
    ("GET /shared", "200"),
    ("OPTIONS /shared", "204"),
    ("GET /written", "200"),
    ("GET /user/7", "200"),
    ("GET /user/7/of/8/and/9", "200"),
    ("GET /api/local", "200"),
    ("GET /api/else", "200"),
    ("GET /none", "404"),
    ("DELETE /handler", "405"),
];

fn app() -> App<State> {
    let origins = ["https://a.example", "https://b.example"];
    let cors = Cors::origins(origins).max_age_s(60);
    App::with_state(|_| State { step: 1, count: Cell::new(0) })
        .route("/handler", get(handler))
        .route("/fast", get(Fast::text("fast").cache_control("no-store")))
        .route("/shared", get(Fast::json("[]")).cors(cors))
        .route("/written", get(write).post(write))
        .route("/user/{id}", get(user))
        .route("/user/{id}/of/{other}/and/{third}", get(user))
        .scope("/api", |api| {
            api.with(guard(|_: &Request<State>, _: &mut Response| ControlFlow::Continue(())))
                .with(after(|_: &Request<State>, response: &mut Response| {
                    response.field("X-After", "1");
                }))
                .route("/local", get(count))
                .fallback(|_: &Request<State>| "fallback")
        })
}

struct State {
    step: u64,
    count: Cell<u64>,
}

fn handler(_: &Request<State>, response: &mut Response) {
    response.field("X-A", "b").text("handler");
}

fn write(_: &Request<State>, response: &mut Response) {
    response.body_with(|out| write!(out, "{}", 7 * 6).expect("writing to a vector can't fail"));
}

fn user(request: &Request<State>, response: &mut Response) {
    response.text(request.param_raw("id").unwrap_or("none"));
}

fn count(request: &Request<State>) -> &'static str {
    let State { step, count } = request.state();
    count.set(count.get() + step);
    "local"
}

/// Sends `count` requests round-robin over the connections. Doesn't allocate.
fn ask(clients: &mut [TcpStream], count: usize) {
    let mut head = [0; 512];
    let mut response = [0; 4096];
    for number in 0..count {
        let client = &mut clients[number % CONNECTIONS];
        let (line, status) = KINDS[number % KINDS.len()];
        let len = write_head(&mut head, line, number);
        client.write_all(&head[..len]).expect("the server reads");
        let mut got = 0;
        while !is_whole(&response[..got]) {
            let read = client.read(&mut response[got..]).expect("the server responds");
            assert!(read > 0, "the server closed");
            got += read;
        }
        assert_eq!(response[..got].get(9..12), Some(status.as_bytes()), "{line}");
    }
}

fn write_head(head: &mut [u8], line: &str, number: usize) -> usize {
    let room = head.len();
    let mut rest = &mut head[..];
    let origin = if number.is_multiple_of(3) { "https://b.example" } else { "https://evil.example" };
    write!(rest, "{line}?{number} HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\n\r\n").expect("a head fits");
    room - rest.len()
}

/// Returns true if a complete response has arrived.
fn is_whole(response: &[u8]) -> bool {
    const LENGTH: &[u8] = b"\r\nContent-Length: ";
    let find = |what: &[u8]| response.windows(what.len()).position(|window| window == what);
    let Some(end) = find(b"\r\n\r\n") else { return false };
    let digits = find(LENGTH).map_or(&b"0"[..], |at| &response[at + LENGTH.len()..end]);
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let len = digits.fold(0, |len, digit| len * 10 + usize::from(digit - b'0'));
    response.len() == end + 4 + len
}

/// Returns the number of allocator calls in a steady round; `None` if the driver isn't available.
fn calls(driver: DriverChoice, listens: bool) -> Option<u64> {
    let mut server = Server::bind("127.0.0.1:0").workers(WORKERS).driver(driver).verbosity(Verbosity::Off);
    if listens {
        server = server.on_exchange(&["user-agent", "origin"], |_| {
            |exchange: &FinishedExchange<'_>| assert!(exchange.field("origin").is_some())
        });
    }
    let running = match server.start(app()) {
        Ok(running) => running,
        Err(Error::Start(StartError::Driver { .. })) => return None,
        Err(error) => panic!("{error}"),
    };
    let address = running.address();
    let mut clients: Vec<_> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    let mut round = || {
        let before = ALLOCATOR.in_process().calls();
        ask(&mut clients, REQUESTS);
        ALLOCATOR.in_process().calls() - before
    };
    let calls = (0..ROUNDS_MAX).map(|_| round()).find(|&calls| calls == 0).unwrap_or_else(&mut round);
    drop(clients);
    running.control().drain(1_000);
    running.wait().expect("it ends");
    Some(calls)
}

#[test]
fn allocates_nothing_in_ten_thousand_requests() {
    let before = ALLOCATOR.in_process().calls();
    drop(std::hint::black_box(Box::new(1)));
    assert!(ALLOCATOR.in_process().calls() > before, "the counter counts");
    let drivers = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    for listens in [false, true] {
        let figures = drivers.map(|driver| calls(driver, listens));
        assert!(figures.iter().any(Option::is_some), "there is a driver");
        assert!(figures.iter().flatten().all(|&calls| calls == 0), "{figures:?} listens {listens}");
    }
}
