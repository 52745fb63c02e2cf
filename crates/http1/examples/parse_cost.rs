//! Parses one head repeatedly, so that its cost can be counted:
//! `cargo run --release -p shearwater-http1 --example parse_cost -- ours short 1000000`.
//!
//! It prints the time per head. Instructions per head are the difference of two runs under
//! `valgrind --tool=callgrind` whose numbers of rounds differ, divided by that difference. The figures in
//! `docs/decisions/0003-parsing.md` come from here.

use shearwater_http1::{Framing, HeadLimits, HeadParser, KnownField, Method, Parsed, encode};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

/// Request of a load generator.
const SHORT: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

/// Request of an API client, with lower-case names and one unknown name.
const CALL: &[u8] =
    b"POST /api/v1/orders?dry=1 HTTP/1.1\r\nhost: api.example.org\r\nuser-agent: client/2.1\r\n\
    content-type: application/json\r\ncontent-length: 0\r\nx-trace: 5f2c\r\nconnection: keep-alive\r\n\r\n";

/// Navigation request of a browser.
const BROWSER: &[u8] = b"GET /guide/start.html?from=home HTTP/1.1\r\nHost: www.example.org\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-GB,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\nConnection: keep-alive\r\nUpgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: none\r\nPriority: u=0, i\r\n\r\n";

/// Number of heads in the input called `pipelined`.
const DEPTH: usize = 16;
/// Maximum number of fields of a head.
const FIELDS_MAX: usize = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [parser, head, rounds] = &arguments[..] else { return usage() };
    let (input, heads) = match head.as_str() {
        "short" => (SHORT.to_vec(), 1),
        "pipelined" => (SHORT.repeat(DEPTH), DEPTH),
        "call" => (CALL.to_vec(), 1),
        "browser" => (BROWSER.to_vec(), 1),
        _ => return usage(),
    };
    let Ok(rounds) = rounds.parse::<usize>() else { return usage() };
    let run = match parser.as_str() {
        "ours" => ours,
        "httparse" => others,
        "response" => response,
        _ => return usage(),
    };
    let started = Instant::now();
    let seen = run(&input, rounds);
    let nanoseconds = started.elapsed().as_nanos() as f64;
    println!("{parser} {head}: {:.1} ns a head ({seen})", nanoseconds / (rounds * heads) as f64);
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: parse_cost ours|httparse|response short|pipelined|call|browser ROUNDS");
    ExitCode::from(2)
}

/// Parses as a server does: the head, and the properties that every request needs.
fn ours(input: &[u8], rounds: usize) -> usize {
    let mut parser = HeadParser::new(HeadLimits::default());
    let mut seen = 0;
    for _ in 0..rounds {
        let mut rest = black_box(input);
        while !rest.is_empty() {
            parser.reset();
            let Ok(Parsed::Complete { head_len }) = parser.parse(rest) else { return 0 };
            let head = parser.head(rest);
            let plain = head.framing() == Framing::None && head.keep_alive() && head.method() == Method::Get;
            seen += head.path().len() + usize::from(plain);
            rest = &rest[head_len..];
        }
    }
    seen
}

/// The same with httparse, which leaves framing, host and connection to its caller.
fn others(input: &[u8], rounds: usize) -> usize {
    let mut seen = 0;
    for _ in 0..rounds {
        let mut rest = black_box(input);
        while !rest.is_empty() {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
            let mut request = httparse::Request::new(&mut fields);
            let Ok(httparse::Status::Complete(head_len)) = request.parse(rest) else { return 0 };
            seen += request.path.map_or(0, str::len);
            rest = &rest[head_len..];
        }
    }
    seen
}

/// Writes the head of a response for each head of the input.
fn response(input: &[u8], rounds: usize) -> usize {
    let mut out = Vec::with_capacity(1024);
    let mut seen = 0;
    for _ in 0..rounds {
        out.clear();
        encode::status_line(&mut out, black_box(200));
        let written = encode::field(&mut out, black_box("Content-Type"), black_box(b"text/plain"))
            .and_then(|()| encode::field(&mut out, KnownField::CacheControl.name(), black_box(b"no-cache")));
        encode::content_length(&mut out, black_box(input.len() as u64));
        encode::end_of_head(&mut out);
        seen += out.len() + usize::from(written.is_ok());
    }
    seen
}
