//! Allocations per request of one router: on the engine, and on hyper with `axum::serve`. A separate binary, because
//! the counter replaces the process's allocator.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use http_body_util::Full;
use shearwater::Verbosity;
use shearwater_tower::{Body, bind};
use testkit::CountingAllocator;

/// Requests per round.
const REQUESTS: u64 = 1000;
/// Number of rounds, of which the best counts, because other code in the process may allocate too.
const ROUNDS: usize = 5;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Returns the number of allocations and reallocations of all threads.
fn allocations() -> u64 {
    let counts = ALLOCATOR.in_process();
    counts.allocations + counts.reallocations
}

/// The requests, each with the end of its response.
const ASKED: [(&str, &str, &str); 4] = [
    ("plaintext, the least fields", "GET /plaintext HTTP/1.1\r\nHost: localhost\r\n\r\n", "Hello, World!"),
    (
        "plaintext, a browser's fields",
        "GET /plaintext HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nUser-Agent: a browser of some kind\r\n\
         Accept: text/html,*/*\r\nAccept-Encoding: gzip, br\r\nAccept-Language: en\r\nCookie: a=b; c=d\r\n\
         Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Mode: navigate\r\nX-Own: 1\r\n\r\n",
        "Hello, World!",
    ),
    ("a parameter", "GET /user/17 HTTP/1.1\r\nHost: localhost\r\n\r\n", "user 17"),
    ("a body", "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "hello"),
];

fn router() -> Router {
    Router::new()
        .route("/plaintext", get(|| async { "Hello, World!" }))
        .route(
            "/user/{id}",
            get(|axum::extract::Path(id): axum::extract::Path<u32>| async move { format!("user {id}") }),
        )
        .route("/echo", post(|body: Bytes| async { body }))
}

/// Sends requests one after the other. Doesn't allocate.
fn ask(client: &mut TcpStream, request: &str, end: &str, count: u64) {
    let mut response = [0; 1024];
    for _ in 0..count {
        client.write_all(request.as_bytes()).expect("the server reads");
        let mut len = 0;
        while !response[..len].ends_with(end.as_bytes()) {
            len += client.read(&mut response[len..]).expect("the server responds");
        }
        assert!(response.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}

/// Returns the allocations per request of the best round.
fn per_request(address: SocketAddr, request: &str, end: &str) -> f64 {
    let mut client = TcpStream::connect(address).expect("it listens");
    ask(&mut client, request, end, REQUESTS);
    let round = |_| {
        let before = allocations();
        ask(&mut client, request, end, REQUESTS);
        allocations() - before
    };
    let best = (0..ROUNDS).map(round).min().expect("there are rounds");
    best as f64 / REQUESTS as f64
}

/// Serves the same router with `axum::serve`, on one thread.
fn on_hyper() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it can");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it listens");
            axum::serve(listener, router()).await.expect("it serves");
        });
    });
    address
}

#[test]
fn allocates_no_more_than_hyper() {
    let ours = bind("127.0.0.1:0", router()).workers(1).verbosity(Verbosity::Off).start().expect("starts");
    let theirs = on_hyper();
    for (what, request, end) in ASKED {
        let (here, there) = (per_request(ours.address(), request, end), per_request(theirs, request, end));
        println!("{what}: {here:.2} allocations, {there:.2} on hyper");
        assert!(here > 0.5 && here <= there, "{what}: {here} allocations, {there} on hyper");
    }
    // The remainder if the service allocates nothing: part of a block now and then.
    let service = tower::service_fn(|_: axum::http::Request<Body>| async {
        Ok::<_, Infallible>(axum::http::Response::new(Full::new(Bytes::from_static(b"Hello, World!"))))
    });
    let bare = bind("127.0.0.1:0", service).workers(1).verbosity(Verbosity::Off).start().expect("starts");
    let (_, request, end) = ASKED[0];
    let here = per_request(bare.address(), request, end);
    println!("a bare service: {here:.2} allocations");
    assert!(here < 2.5, "{here} allocations");
}
