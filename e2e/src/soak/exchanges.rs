//! The two servers of the soak, and every request with the response that it must get.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testkit::random::{self, Rng};
use testkit::{Client, Error, Program, Response, request};

use crate::context::CaseContext;
use crate::expected::ExactResponse;

/// Files that are kept in memory: name and length.
const SMALL: [(&str, usize); 6] = [
    ("empty.bin", 0),
    ("one.txt", 1),
    ("hundred.txt", 100),
    ("page.html", 1_024),
    ("style.css", 5_000),
    ("picture.png", 16_384),
];
/// Files that are sent from their descriptors.
const MEDIUM: [(&str, usize); 2] = [("photo.jpg", 100_000), ("song.ogg", 1_000_000)];
/// A file that no socket buffer holds.
const LARGE: (&str, usize) = ("large.bin", 4 * 1024 * 1024);
const INDEX: &[u8] = b"<!doctype html><title>sub</title>\n";
/// Returns a part of a file.
type PartOf = fn(&[u8]) -> Option<&[u8]>;
/// Ranges, each as part of a file.
const RANGES: [(&str, PartOf); 4] = [
    ("0-99", |file| file.get(..file.len().min(100)).filter(|part| !part.is_empty())),
    ("500-", |file| file.get(500..).filter(|part| !part.is_empty())),
    ("-200", |file| file.get(file.len().saturating_sub(200)..).filter(|part| !part.is_empty())),
    ("7-7", |file| file.get(7..8)),
];
/// Responses up to this length may be requested by the dozen, bytes.
const SHORT_BYTES_MAX: usize = 20_000;
const BODIES: [usize; 6] = [0, 1, 100, 1_000, 10_000, 60_000];
const CHUNK_BYTES_MAX: usize = 20_000;

/// A request with the response that it must get.
#[derive(Debug)]
pub(super) struct ExactExchange {
    pub(super) request: Vec<u8>,
    pub(super) response: Arc<ExactResponse>,
}

/// An exchange on a connection that stays, and with `Connection: close`.
#[derive(Debug)]
pub(super) struct ExchangePair {
    pub(super) staying: ExactExchange,
    pub(super) closing: ExactExchange,
}

/// Both servers with everything that may be requested.
pub(super) struct SoakServers {
    pub(super) files: Program,
    pub(super) handlers: Program,
    /// Short responses of the server of files.
    pub(super) short: Vec<ExchangePair>,
    /// Longer responses of the server of files.
    pub(super) medium: Vec<ExchangePair>,
    pub(super) large: Vec<ExchangePair>,
    /// Requests with bodies, for the server of handlers.
    pub(super) posts: Vec<ExchangePair>,
    /// Refused requests of each server.
    pub(super) refused: [Vec<ExactExchange>; 2],
    /// Requests that were sent to learn the responses, each on a connection of its own.
    pub(super) learnt: u64,
}

/// A request, and what is known of its response beforehand.
struct Draft {
    line: String,
    headers: String,
    body: Vec<u8>,
    status: u16,
    content: Vec<u8>,
}

impl Draft {
    fn new(line: impl Into<String>, headers: impl Into<String>, status: u16, content: &[u8]) -> Self {
        let (line, headers, content) = (line.into(), headers.into(), content.to_vec());
        Self { line, headers, body: Vec::new(), status, content }
    }

    fn with_body(self, body: &[u8]) -> Self {
        Self { body: body.to_vec(), ..self }
    }

    /// Sends the request in both forms, and takes the responses as the expected ones.
    fn learn(&self, address: SocketAddr) -> Result<ExchangePair> {
        let learn = |close: &str| {
            let head = format!("{} HTTP/1.1\r\nHost: localhost\r\n{}{close}\r\n", self.line, self.headers);
            let request = [head.as_bytes(), &self.body].concat();
            let method = self.line.split(' ').next().unwrap_or_default();
            let response = send(address, &request, method, !close.is_empty())?;
            let right = response.status() == self.status && response.body == self.content;
            ensure!(right, "unexpected response: {:?}", response.head.text());
            ExactExchange::new(request, &response)
        };
        let pair =
            || anyhow::Ok(ExchangePair { staying: learn("")?, closing: learn("Connection: close\r\n")? });
        pair().with_context(|| format!("first response to {:?} {:?}", self.line, self.headers))
    }
}

impl ExactExchange {
    fn new(request: Vec<u8>, response: &Response) -> Result<Self> {
        let response = ExactResponse::new(response).map_err(Error::Malformed)?;
        Ok(Self { request, response: Arc::new(response) })
    }
}

/// Sends a request on a connection of its own.
fn send(address: SocketAddr, request: &[u8], method: &str, closes: bool) -> Result<Response> {
    let mut client = Client::connect(address)?;
    client.send(request)?;
    let response = client.response_to(method)?;
    ensure!(response.head.closes() == closes, "Connection: {:?}", response.head.text());
    if closes {
        client.finish_sending()?;
        client.end()?;
    }
    Ok(response)
}

/// Length of an entity tag that is the hash of a file.
const HASH_TAG_LEN: usize = "\"\"".len() + 32;
/// Time until a file has its hash: it must not have changed for two seconds.
const HASH_WAIT_MAX: Duration = Duration::from_secs(20);

/// Waits until the entity tag of a file is the hash of its content, and stays. Returns the number of connections.
fn await_hash(address: SocketAddr, name: &str) -> Result<usize> {
    let end = Instant::now() + HASH_WAIT_MAX;
    for connections in 1.. {
        let response = send(address, &request("HEAD", &format!("/{name}"), &[]), "HEAD", false)?;
        if response.header("etag").is_some_and(|tag| tag.len() == HASH_TAG_LEN) {
            return Ok(connections);
        }
        ensure!(Instant::now() < end, "no hash of {name}");
        thread::sleep(Duration::from_millis(100));
    }
    unreachable!("it ends in time")
}

impl SoakServers {
    /// Starts both servers and sends each request once.
    pub(super) fn start(context: &CaseContext<'_>) -> Result<Self> {
        let mut random = context.random(u64::MAX);
        let mut contents = Vec::new();
        for (name, size) in SMALL.into_iter().chain(MEDIUM).chain([LARGE]) {
            let bytes = random::bytes(&mut random, size);
            context.write_file(&format!("public/{name}"), &bytes)?;
            contents.push((name, bytes));
        }
        context.write_file("public/sub/index.html", INDEX)?;
        let files = context.serve(&context.folder.join("public"))?;
        let mut awaited = 0;
        for (name, _) in &contents {
            awaited += await_hash(files.address(), name)?;
        }
        let handlers = context.example(&[])?;

        let mut drafts = other_requests();
        for (name, bytes) in &contents[..SMALL.len()] {
            let tag = send(files.address(), &request("GET", &format!("/{name}"), &[]), "GET", false)?;
            drafts.extend(of_small_file(name, bytes, tag.header("etag").context("no ETag")?));
        }
        for (name, bytes) in &contents[SMALL.len()..SMALL.len() + MEDIUM.len()] {
            drafts.push(Draft::new(format!("GET /{name}"), "", 200, bytes));
            drafts.extend(ranges(name, bytes));
        }
        let (short, medium): (Vec<_>, Vec<_>) =
            drafts.into_iter().partition(|draft| draft.content.len() <= SHORT_BYTES_MAX);
        let large = vec![Draft::new(format!("GET /{}", LARGE.0), "", 200, &contents[contents.len() - 1].1)];
        let (posts, refused) = (posts(&mut random), refused_requests());
        let learnt = 2 * (short.len() + medium.len() + large.len() + posts.len() + refused.len())
            + SMALL.len()
            + awaited;
        let learn_all = |server: &Program, drafts: Vec<Draft>| {
            drafts.iter().map(|draft| draft.learn(server.address())).collect::<Result<Vec<ExchangePair>>>()
        };
        let learn_refused = |server: &Program| {
            let learn = |(request, status): &(Vec<u8>, u16)| {
                let response = send(server.address(), request, "GET", true)?;
                ensure!(response.status() == *status, "status {} instead of {status}", response.status());
                ExactExchange::new(request.clone(), &response)
            };
            let exchanges: Result<Vec<ExactExchange>> = refused.iter().map(learn).collect();
            exchanges.context("first response to a refused request")
        };
        Ok(Self {
            short: learn_all(&files, short)?,
            medium: learn_all(&files, medium)?,
            large: learn_all(&files, large)?,
            posts: learn_all(&handlers, posts)?,
            refused: [learn_refused(&files)?, learn_refused(&handlers)?],
            learnt: learnt as u64,
            files,
            handlers,
        })
    }

    /// Both servers with their names in the report.
    pub(super) fn both(&self) -> [(&'static str, &Program); 2] {
        [("files", &self.files), ("handlers", &self.handlers)]
    }
}

fn of_small_file(name: &str, bytes: &[u8], tag: &str) -> Vec<Draft> {
    let get = format!("GET /{name}");
    let mut drafts = vec![
        Draft::new(&get, "", 200, bytes),
        Draft::new(format!("{get}?query=1"), "", 200, bytes),
        Draft::new(format!("HEAD /{name}"), "", 200, b""),
        Draft::new(&get, format!("If-None-Match: {tag}\r\n"), 304, b""),
        Draft::new(&get, "If-None-Match: \"other\"\r\n", 200, bytes),
    ];
    drafts.extend(ranges(name, bytes));
    drafts
}

/// Requests every range that the file has.
fn ranges<'a>(name: &'a str, bytes: &'a [u8]) -> impl Iterator<Item = Draft> + 'a {
    RANGES.iter().filter_map(move |(range, part)| {
        Some(Draft::new(format!("GET /{name}"), format!("Range: bytes={range}\r\n"), 206, part(bytes)?))
    })
}

fn other_requests() -> Vec<Draft> {
    vec![
        Draft::new("GET /missing.html", "", 404, b"Not Found\n"),
        Draft::new("GET /sub/missing/deep", "", 404, b"Not Found\n"),
        Draft::new("HEAD /missing.html", "", 404, b""),
        Draft::new("GET /sub/", "", 200, INDEX),
        Draft::new("OPTIONS /one.txt", "", 204, b""),
        Draft::new("POST /one.txt", "Content-Length: 5\r\n", 405, b"Method Not Allowed\n")
            .with_body(b"hello"),
    ]
}

fn posts(random: &mut Rng) -> Vec<Draft> {
    let mut drafts =
        vec![Draft::new("GET /", "", 200, b"Hello, world\n"), Draft::new("POST /count", "", 200, b"POST")];
    for size in BODIES {
        let bytes = random::bytes(random, size);
        let length = format!("Content-Length: {size}\r\n");
        let chunks = ("Transfer-Encoding: chunked\r\n".to_owned(), in_chunks(&bytes, random));
        for (headers, body) in [(length, bytes.clone()), chunks] {
            // Buffered and sent back; and discarded as it arrives.
            drafts.push(Draft::new("POST /echo", &headers, 200, &bytes).with_body(&body));
            drafts.push(Draft::new("POST /count", &headers, 200, b"POST").with_body(&body));
            drafts.push(Draft::new("POST /none", &headers, 404, b"Not Found\n").with_body(&body));
        }
    }
    drafts
}

/// A body in chunks of random lengths (RFC 9112 section 7.1).
fn in_chunks(mut rest: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut wire = Vec::new();
    while !rest.is_empty() {
        let (chunk, later) = rest.split_at(random.usize(1..=CHUNK_BYTES_MAX.min(rest.len())));
        wire.extend_from_slice(&[format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
        rest = later;
    }
    wire.extend_from_slice(b"0\r\n\r\n");
    wire
}

/// Requests after whose refusal the connection ends, with the status.
fn refused_requests() -> Vec<(Vec<u8>, u16)> {
    let request = |line: &str, headers: &str, body: &str| {
        format!("{line} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n{body}").into_bytes()
    };
    vec![
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n".to_vec(), 400),
        (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n".to_vec(), 505),
        (request("GET /", "A : b\r\n", ""), 400),
        (request("GET /", "A: b\nC: d\r\n", ""), 400),
        (request("POST /", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400),
        (request("POST /", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), 400),
        (request("POST /", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\nno size\r\n"), 400),
        (request("POST /", "Transfer-Encoding: gzip\r\n", ""), 400),
        (request("POST /", "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501),
        (request("POST /", "Content-Length: 99999999999\r\n", &"v".repeat(50_000)), 413),
        (request(&format!("{} /", "M".repeat(100)), "", ""), 501),
        (request(&format!("GET /{}", "t".repeat(9_000)), "", ""), 414),
        (request("GET /", &"Field: value\r\n".repeat(200), ""), 431),
        (request("GET /", &format!("Long: {}\r\n", "l".repeat(70_000)), ""), 431),
    ]
}
