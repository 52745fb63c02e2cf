//! A busy server doesn't allocate: 10,000 requests for cached files on real sockets, with every worker and each driver.
//!
//! Its own test binary, since the counter replaces the allocator of the whole process.
#![expect(
    unsafe_code,
    reason = "the only way to count allocations is to be the allocator, which is an unsafe trait"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shearwater::{DriverChoice, Request, Response, Server, Service, StartError, Verbosity};
use shearwater_files::{Files, Folder};

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
const WAIT_MAX: Duration = Duration::from_secs(30);
const FILES: usize = 16;
const FILE_BYTES: usize = 1024;

/// Number of allocations, reallocations and frees of all threads.
static CALLS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is forwarded to the system's allocator unchanged; counting is one addition to a static.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same; `pointer` came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts the requests of each worker.
struct Counted {
    files: Files,
    worker: usize,
    responded: Arc<[AtomicU64; WORKERS]>,
}

impl Service for Counted {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        self.responded[self.worker].fetch_add(1, Ordering::Relaxed);
        self.files.respond(request, response);
    }
}

/// Sends `count` requests, over the connections in turn, with different heads. Doesn't allocate.
fn ask(clients: &mut [TcpStream], count: usize) {
    let mut head = [0; 512];
    let mut response = [0; 4096];
    for number in 0..count {
        let client = &mut clients[number % CONNECTIONS];
        let len = write_head(&mut head, number);
        client.write_all(&head[..len]).expect("the server reads");
        let mut got = 0;
        while !is_whole(&response[..got]) {
            let read = client.read(&mut response[got..]).expect("the server responds");
            assert!(read > 0, "the server closed");
            got += read;
        }
        assert!(response.starts_with(b"HTTP/1.1 200 OK\r\n"));
        // Every second file has a gzip sibling.
        assert_eq!(response[got - 1], if number.is_multiple_of(2) { b'x' } else { b'y' });
    }
}

fn write_head(head: &mut [u8], number: usize) -> usize {
    let room = head.len();
    let mut rest = &mut head[..];
    let (file, own) = (number % FILES, number * 7);
    let written = if number.is_multiple_of(2) {
        write!(rest, "GET /{file}.txt HTTP/1.1\r\nHost: localhost\r\nCookie: id={own}\r\nAccept: */*\r\n\r\n")
    } else {
        write!(
            rest,
            "GET /{file}.txt?{own} HTTP/1.1\r\nX-Own: {own}\r\nAccept-Encoding: br, gzip\r\nHost: b:80\r\n\r\n"
        )
    };
    written.expect("a head fits");
    room - rest.len()
}

fn is_whole(response: &[u8]) -> bool {
    let end = response.windows(4).position(|window| window == b"\r\n\r\n");
    end.is_some_and(|end| response.len() == end + 4 + FILE_BYTES)
}

/// Returns the allocator calls in [`REQUESTS`] requests; `None` if the driver isn't available.
fn calls(folder: &Folder, driver: DriverChoice) -> Option<u64> {
    let responded = Arc::new([const { AtomicU64::new(0) }; WORKERS]);
    let counted = Arc::clone(&responded);
    let folder = folder.clone();
    let service = move |worker| Counted { files: folder.files(), worker, responded: Arc::clone(&counted) };
    let server = Server::new("127.0.0.1:0").workers(WORKERS).driver(driver).verbosity(Verbosity::Off);
    let running = match server.start(service) {
        Ok(running) => running,
        Err(shearwater::Error::Start(StartError::Driver { .. })) => return None,
        Err(error) => panic!("{error}"),
    };
    let mut clients = connect(running.address());
    warm_up(&mut clients);
    let calls = settled(|| {
        let before = CALLS.load(Ordering::Relaxed);
        let responded_before = responded.each_ref().map(|count| count.load(Ordering::Relaxed));
        ask(&mut clients, REQUESTS);
        let calls = CALLS.load(Ordering::Relaxed) - before;
        for (count, before) in responded.iter().zip(responded_before) {
            assert!(count.load(Ordering::Relaxed) > before, "a worker got no requests");
        }
        calls
    });
    drop(clients);
    running.control().drain(1_000);
    running.wait().expect("the server ends");
    Some(calls)
}

/// Returns the calls of a round once nothing is new. On a busy machine a response may be in flight longer than ever
/// before, and the next one needs another output buffer: a few calls for each, once.
fn settled(mut round: impl FnMut() -> u64) -> u64 {
    let mut calls = round();
    for _ in 1..ROUNDS_MAX {
        assert!(
            calls <= 4 * CONNECTIONS as u64,
            "{calls} calls: more than an output buffer for each connection"
        );
        if calls == 0 {
            break;
        }
        calls = round();
    }
    calls
}

fn warm_up(clients: &mut [TcpStream]) {
    let start = Instant::now();
    let (mut seen, mut since) = (0, start);
    while since.elapsed() < QUIET {
        ask(clients, WARM_UP);
        let calls = CALLS.load(Ordering::Relaxed);
        if calls != seen {
            assert!(start.elapsed() < WAIT_MAX, "each round of {WARM_UP} requests calls the allocator");
            (seen, since) = (calls, Instant::now());
        }
    }
}

fn connect(address: SocketAddr) -> Vec<TcpStream> {
    (0..CONNECTIONS).map(|_| TcpStream::connect(address).expect("a connection")).collect()
}

#[test]
fn ten_thousand_requests_allocate_nothing() {
    let path = std::env::temp_dir().join(format!("shearwater-allocations-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a temporary folder");
    for file in 0..FILES {
        std::fs::write(path.join(format!("{file}.txt")), [b'x'; FILE_BYTES]).expect("a file");
        if !file.is_multiple_of(2) {
            std::fs::write(path.join(format!("{file}.txt.gz")), [b'y'; FILE_BYTES]).expect("a sibling");
        }
    }
    let before = CALLS.load(Ordering::Relaxed);
    let folder = Folder::open(&path).expect("a folder");
    assert!(CALLS.load(Ordering::Relaxed) > before, "the counter works");
    let drivers = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    let figures = drivers.map(|driver| calls(&folder, driver));
    std::fs::remove_dir_all(&path).expect("removed");
    for (driver, calls) in drivers.iter().zip(figures) {
        match calls {
            Some(calls) => println!("{REQUESTS} requests, {driver:?}: lab-figure allocations={calls}"),
            None => println!("{driver:?} can't be had here"),
        }
    }
    assert!(figures.iter().any(Option::is_some), "no driver");
    assert!(figures.iter().flatten().all(|&calls| calls == 0), "{figures:?}");
}
