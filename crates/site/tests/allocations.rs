//! A busy server of sites allocates nothing in 10,000 requests for cached files, redirects, fixed responses and error pages, on each
//! driver. A binary of its own, since the counter replaces the allocator of the process.
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
use shearwater_files::{CacheLimits, Folder};
use shearwater_site::{
    Content, ErrorPage, Fixed, Headers, Options, Redirect, Route, Site, SiteService, Sites,
};

const WORKERS: usize = 2;
/// Enough that each worker gets some.
const CONNECTIONS: usize = 32;
const REQUESTS: usize = 10_000;
/// Maximum number of measured rounds; the last must not allocate.
const ROUNDS_MAX: usize = 5;
/// Requests of one round of warming up.
const WARM_UP: usize = 1_000;
/// Time without allocations that ends the warm-up: each file has been revalidated twice by then.
const QUIET: Duration = Duration::from_millis(1500);
/// Buffers, tables and queues reach their size soon; a file that was written a moment ago is read again for two seconds.
const WAIT_MAX: Duration = Duration::from_secs(30);
const FILES: usize = 16;
const FILE_BYTES: usize = 1024;

/// Allocations, reallocations and frees of all threads together.
static CALLS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; counting is one addition to a static.
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
    service: SiteService,
    worker: usize,
    responded: Arc<[AtomicU64; WORKERS]>,
}

impl Service for Counted {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        self.responded[self.worker].fetch_add(1, Ordering::Relaxed);
        self.service.respond(request, response);
    }
}

/// Paths and statuses. Most routes are cached, those beyond `CACHED_ROUTES_MAX` are looked up.
const ASKED: [(&str, &str); 8] = [
    ("/", "HTTP/1.1 200"),
    ("/assets/", "HTTP/1.1 200"),
    ("/%61ssets//", "HTTP/1.1 200"),
    ("/old/", "HTTP/1.1 308"),
    ("/health?", "HTTP/1.1 200"),
    ("/closed/", "HTTP/1.1 403"),
    ("/gone/", "HTTP/1.1 410"),
    ("/none/../", "HTTP/1.1 400"),
];

/// Hosts: one of the site's own, one beneath a star, the default's.
const HOSTS: [&str; 4] = ["example.org", "WWW.Example.org:8080", "a.b.example.org.", "other.example"];

/// Asks `count` times, over the connections in turn, no two heads alike. Allocates nothing itself.
fn ask(clients: &mut [TcpStream], count: usize) {
    let mut head = [0; 512];
    let mut response = [0; 4096];
    for number in 0..count {
        let client = &mut clients[number % CONNECTIONS];
        let len = write_head(&mut head, number);
        client.write_all(&head[..len]).expect("the server reads");
        let mut got = 0;
        while !is_whole(&response[..got]) {
            let read = client.read(&mut response[got..]).expect("the server answers");
            assert!(read > 0, "the server closed");
            got += read;
        }
        let (path, status) = ASKED[number % ASKED.len()];
        assert!(
            response.starts_with(status.as_bytes()),
            "{path}: {}",
            String::from_utf8_lossy(&response[..got])
        );
        let has = |line: &[u8]| response[..got].windows(line.len()).any(|window| window == line);
        assert!(has(b"\r\nX-Frame-Options: DENY\r\n") && !has(b"\r\nLast-Modified:"));
    }
}

fn write_head(head: &mut [u8], number: usize) -> usize {
    let room = head.len();
    let mut rest = &mut head[..];
    // Of one length: a buffer that has held one holds all.
    let (path, host, own) =
        (ASKED[number % ASKED.len()].0, HOSTS[number / ASKED.len() % HOSTS.len()], 1_000_000 + number * 7);
    // Fixed responses get new paths every time.
    let (file, page) = match path {
        "/" | "/assets/" | "/%61ssets//" => (number / 64 % FILES, ".txt"),
        _ => (own, ""),
    };
    let accept = if number.is_multiple_of(2) { "text/html,*/*;q=0.8" } else { "*/*" };
    let written = if path.ends_with('?') {
        write!(rest, "GET {path}{own} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n")
    } else {
        write!(
            rest,
            "GET {path}{file}{page} HTTP/1.1\r\nX-Own: {own}\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n"
        )
    };
    written.expect("a head fits");
    room - rest.len()
}

/// Returns whether the response is complete by its Content-Length.
fn is_whole(response: &[u8]) -> bool {
    const LENGTH: &[u8] = b"\r\nContent-Length: ";
    let at = |text: &[u8]| response.windows(text.len()).position(|window| window == text);
    let (Some(end), Some(length)) = (at(b"\r\n\r\n"), at(LENGTH)) else { return false };
    let digits = response[length + LENGTH.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
    response.len() == end + 4 + length
}

/// The allocator's calls in [`REQUESTS`] requests; `None` where the driver can't be had.
fn calls(sites: &Sites, driver: DriverChoice) -> Option<u64> {
    let responded = Arc::new([const { AtomicU64::new(0) }; WORKERS]);
    let counted = Arc::clone(&responded);
    let sites = sites.clone();
    let service = move |worker| Counted { service: sites.service(), worker, responded: Arc::clone(&counted) };
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
            assert!(count.load(Ordering::Relaxed) > before, "a worker had nothing to do");
        }
        calls
    });
    drop(clients);
    running.control().drain(1_000);
    running.wait().expect("it ends");
    Some(calls)
}

/// Repeats rounds until one doesn't allocate. On a busy machine a response may take longer than ever before, so that the next one needs
/// another output buffer, once.
fn settled(mut round: impl FnMut() -> u64) -> u64 {
    let mut calls = round();
    for _ in 1..ROUNDS_MAX {
        assert!(calls <= 4 * CONNECTIONS as u64, "{calls} calls: more than an output for each connection");
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
    (0..CONNECTIONS).map(|_| TcpStream::connect(address).expect("it listens")).collect()
}

fn sites(folder: Folder) -> Sites {
    let route = |path: &str| Route { path: path.to_owned(), ..Route::default() };
    let fixed = |path: &str, status, text: &str| {
        let response = Fixed { status, media_type: "text/plain".to_owned(), body: text.into() };
        Route { content: Some(Content::Fixed(response)), ..route(path) }
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let set =
        vec![pair("X-Frame-Options", "DENY"), pair("Referrer-Policy", "same-origin"), pair("Server", "s")];
    let site = Site {
        hosts: vec!["example.org".to_owned(), "*.example.org".to_owned()],
        content: Content::Files(0),
        headers: Headers { set, remove: vec!["Last-Modified".to_owned()] },
        error_pages: vec![ErrorPage { status: 403, path: "/403.html".to_owned() }],
        redirects: vec![Redirect { from: "/old/*".to_owned(), to: "/new/{rest}".to_owned(), status: 308 }],
        routes: vec![
            route("/assets/*"),
            fixed("/health", 200, "up"),
            fixed("/closed/*", 403, ""),
            fixed("/gone/*", 410, ""),
        ],
    };
    let default = Site { hosts: Vec::new(), ..site.clone() };
    let options =
        Options { folders: vec![folder], cache: CacheLimits::default(), sites: vec![site, default] };
    Sites::new(options).expect("sites")
}

#[test]
fn ten_thousand_requests_allocate_nothing() {
    let path = std::env::temp_dir().join(format!("shearwater-site-allocations-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a temporary folder");
    std::fs::create_dir_all(path.join("assets")).expect("a folder");
    for file in 0..FILES {
        std::fs::write(path.join(format!("{file}.txt")), [b'x'; FILE_BYTES]).expect("a file");
        std::fs::write(path.join(format!("assets/{file}.txt")), [b'y'; FILE_BYTES]).expect("a file");
    }
    std::fs::write(path.join("403.html"), [b'z'; FILE_BYTES]).expect("a file");
    let before = CALLS.load(Ordering::Relaxed);
    let sites = sites(Folder::open(&path).expect("a folder"));
    assert!(CALLS.load(Ordering::Relaxed) > before, "the counter counts");
    let drivers = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    let figures = drivers.map(|driver| calls(&sites, driver));
    std::fs::remove_dir_all(&path).expect("it was made here");
    for (driver, calls) in drivers.iter().zip(figures) {
        match calls {
            Some(calls) => println!("{REQUESTS} requests, {driver:?}: lab-figure allocations={calls}"),
            None => println!("{driver:?} can't be had here"),
        }
    }
    assert!(figures.iter().any(Option::is_some), "there is a driver");
    assert!(figures.iter().flatten().all(|&calls| calls == 0), "{figures:?}");
}
