//! The training of a profile: requests of browsers, tools and programs to files and handlers of every kind, on both drivers.
//!
//! This is no benchmark: a profile trained on one request makes that request fast and others slow. Every request is probed
//! once, and every response checked for status and length after that; a wrong one ends the training.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bench::{exchange, length};
use crate::client::{self, CheckedRequest, Load};
use crate::folder::RunFolder;
use crate::process::{ServerProcess, free_address};
use crate::scenario::{self, PLAINTEXT, file_bytes};

/// Responses of one load, and an upper bound of its time.
const RESPONSES: u64 = 15_000;
const MILLIS: u64 = 120_000;
/// Time for a server to end, in which it writes its trace.
const END: Duration = Duration::from_secs(30);
/// Connections, pipelined requests, and requests after which a connection ends (0: never).
const LOADS: [(u32, u32, u32); 5] = [(1, 1, 0), (32, 1, 0), (16, 8, 0), (32, 1, 10), (256, 1, 0)];

/// Headers of browsers, a tool, a program and a proxy, in today's shapes.
const CLIENTS: &str = include_str!("../clients.txt");
/// Files: name, length, and true if siblings in Brotli and gzip are beside it.
const FILES: [(&str, usize, bool); 7] = [
    ("index.html", 1_024, false),
    ("about/index.html", 6_400, true),
    ("css/site.css", 9_000, true),
    ("js/app.js", 40_000, true),
    ("img/icon.png", 700, false),
    ("img/photo.jpg", 150_000, false),
    ("fonts/text.woff2", 25_000, false),
];
const JSON: &str = r#"{"message":"Hello, World!"}"#;
/// Routes that respond with [`PLAINTEXT`], of the examples `kinds` and `plaintext`.
const KINDS: &[&str] = &["/plaintext", "/fast-text", "/asynctext", "/asyncturn", "/coroutine", "/corouturn"];
const ROUTES: &[&str] = &["/plaintext", "/item/00", "/item/31", "/item/63"];

/// A request, and its response's status and body.
type TrainingRequest = (String, u16, Vec<u8>);

/// Trains all programs and returns the number of responses.
pub(crate) fn train(programs: &Path, uring: bool) -> Result<u64, String> {
    let mut folder = RunFolder::create()?;
    for (name, length, is_coded) in FILES {
        let siblings = ["br", "gz"].map(|extension| (format!("{name}.{extension}"), length / 3));
        // Siblings last: one that is older than its file is not served.
        let written =
            [(name.to_owned(), length)].into_iter().chain(siblings.into_iter().filter(|_| is_coded));
        for (name, length) in written {
            folder.serve(&name, &file_bytes(length)).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    // The validators of a new file change, and with them the length of its responses.
    folder.settle(scenario::find("100k")?);
    let mut responses = 0;
    for driver in if uring { ["epoll", "uring"].as_slice() } else { &["epoll"] } {
        for program in ["shearwater", "examples/kinds", "examples/plaintext"] {
            crate::progress(&format!("{driver}: {program}"));
            let trained = train_one(&programs.join(program), driver, &folder);
            responses += trained.map_err(|error| format!("{driver}, {program}: {error}"))?;
        }
    }
    Ok(responses)
}

fn train_one(program: &Path, driver: &str, folder: &RunFolder) -> Result<u64, String> {
    let address = free_address()?;
    // One worker: threads that count at the same place lose counts.
    let settings =
        [("LISTEN", address.to_string()), ("WORKERS", "1".to_owned()), ("DRIVER", driver.to_owned())];
    let mut command = Command::new(program);
    if program.ends_with("shearwater") {
        command.arg(folder.public());
        command.args(settings.map(|(name, value)| format!("--{}={value}", name.to_lowercase())));
    } else {
        command.envs(settings.map(|(name, value)| (format!("SHEARWATER_{name}"), value)));
    }
    let mut server = ServerProcess::start(&command, address, &folder.path().join("server.log"))?;
    let wanted = match program.file_name().and_then(|name| name.to_str()) {
        Some("shearwater") => files(address)?,
        Some("kinds") => handlers(KINDS, true),
        _ => handlers(ROUTES, false),
    };
    let requests = wanted.into_iter().map(|it| probe(address, it)).collect::<Result<Vec<_>, _>>()?;
    let mut responses = 0;
    for (connections, depth, requests_per_connection) in LOADS {
        let load = Load {
            responses_max: Some(RESPONSES),
            connections,
            depth,
            requests_per_connection,
            requests: requests.clone(),
            ..scenario::find("plaintext")?.load(address, 0, MILLIS)
        };
        let counts = client::run(&load)?;
        if counts.socket_errors() + counts.status_errors > 0 || counts.responses < RESPONSES {
            return Err(format!("wrong or missing responses: {counts:?}"));
        }
        responses += counts.responses;
    }
    if server.end_within(END) { Ok(responses) } else { Err("the server did not exit cleanly".to_owned()) }
}

/// Compares one response and returns the request with its response's length.
fn probe(address: SocketAddr, (request, status, body): TrainingRequest) -> Result<CheckedRequest, String> {
    let response = exchange(address, &request)?;
    if response.status() != status || response.body != body {
        return Err(format!("{request:?}: {:?}, {} bytes", response.head.text(), response.body.len()));
    }
    Ok(CheckedRequest { request, status, bytes: length(&response), content: None })
}

/// Returns the headers of each client.
fn clients() -> impl Iterator<Item = String> {
    CLIENTS.trim_end().split("\n\n").map(|headers| headers.replace('\n', "\r\n") + "\r\n")
}

fn request(line: &str, headers: &str, status: u16, body: &[u8]) -> TrainingRequest {
    (format!("{line} HTTP/1.1\r\n{headers}\r\n"), status, body.to_vec())
}

/// Returns requests for files: whole, in part, again, by HEAD, coded; for what is missing or not allowed.
fn files(address: SocketAddr) -> Result<Vec<TrainingRequest>, String> {
    let mut wanted = Vec::new();
    for headers in clients() {
        let headers = headers.as_str();
        for (name, length, is_coded) in FILES {
            let target = format!("/{}", name.strip_suffix("index.html").unwrap_or(name));
            let is_coded = is_coded && headers.contains("Accept-Encoding");
            let (get, body) =
                (format!("GET {target}"), file_bytes(if is_coded { length / 3 } else { length }));
            let plain = request(&get, headers, 200, &body);
            let etag = exchange(address, &plain.0)?.header("etag").unwrap_or_default().to_owned();
            wanted.extend([
                plain,
                request(&format!("{get}?v=17637&utm_source=mail"), headers, 200, &body),
                request(&get, &format!("{headers}If-None-Match: {etag}\r\n"), 304, b""),
                request(&format!("HEAD {target}"), headers, 200, b""),
            ]);
            if !is_coded {
                wanted.push(request(&get, &format!("{headers}Range: bytes=100-\r\n"), 206, &body[100..]));
            }
        }
        wanted.push(request("GET /favicon.ico", headers, 404, b"Not Found\n"));
        wanted.push(request("DELETE /img/icon.png", headers, 405, b"Method Not Allowed\n"));
    }
    // A browser that names text/html gets a page for an error: only the others' text is known.
    wanted.retain(|(request, status, _)| *status < 400 || !request.contains("text/html"));
    Ok(wanted)
}

/// Returns requests to routes that respond with a text, with JSON, and, of the example `kinds`, with the body sent.
fn handlers(targets: &[&str], is_kinds: bool) -> Vec<TrainingRequest> {
    let mut wanted = Vec::new();
    for headers in clients() {
        let headers = headers.as_str();
        for target in targets {
            wanted.push(request(&format!("GET {target}"), headers, 200, PLAINTEXT.as_bytes()));
            wanted.push(request(&format!("GET {target}?q=a+b&page=2"), headers, 200, PLAINTEXT.as_bytes()));
            wanted.push(request(&format!("HEAD {target}"), headers, 200, b""));
        }
        let json = if is_kinds { "GET /json-text" } else { "GET /json" };
        wanted.push(request(json, headers, 200, JSON.as_bytes()));
        let bodies = if is_kinds {
            [("/post-body", 40), ("/post-body", 5_000), ("/take-body", 40), ("/take-body", 5_000)].as_slice()
        } else {
            &[]
        };
        for (target, length) in bodies {
            let body = String::from_utf8_lossy(&file_bytes(*length)).into_owned();
            for framing in [
                format!("Content-Length: {length}\r\n\r\n{body}"),
                format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"),
            ] {
                let request = format!("POST {target} HTTP/1.1\r\n{headers}{framing}");
                wanted.push((request, 200, body.clone().into_bytes()));
            }
        }
    }
    wanted
}
