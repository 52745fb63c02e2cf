//! The tool against servers that are right, slow and wrong.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;

use super::*;

const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: LoadArgs,
}

/// One request as a server saw it.
struct SeenRequest {
    head: String,
    body_bytes: u64,
    /// Number of all requests before it.
    number: u64,
}

/// Responds to each request with what `respond` returns, a thread per connection, as long as the test's process lives. A
/// response with `Connection: close` ends its connection.
fn serve(respond: impl Fn(&SeenRequest) -> String + Copy + Send + 'static) -> SocketAddr {
    let requests: &AtomicU64 = Box::leak(Box::default());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || converse(stream, respond, requests));
        }
    });
    address
}

fn converse(mut stream: TcpStream, respond: impl Fn(&SeenRequest) -> String, requests: &AtomicU64) {
    let (mut unread, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    stream.set_nodelay(true).expect("a socket");
    loop {
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(unread.drain(..end + 4).collect()).expect("ASCII");
            let length = head.split("Content-Length: ").nth(1).and_then(|it| it.split("\r\n").next());
            let body_bytes = length.map_or(0, |it| it.parse().expect("a number"));
            while (unread.len() as u64) < body_bytes {
                match stream.read(&mut buffer) {
                    Ok(length @ 1..) => unread.extend_from_slice(&buffer[..length]),
                    _ => return,
                }
            }
            unread.drain(..body_bytes as usize);
            let number = requests.fetch_add(1, Ordering::Relaxed);
            let response = respond(&SeenRequest { head, body_bytes, number });
            if stream.write_all(response.as_bytes()).is_err() || response.contains("Connection: close") {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(length @ 1..) => unread.extend_from_slice(&buffer[..length]),
            _ => return,
        }
    }
}

/// Runs the tool with options and returns its JSON; an error is that of the options or the probe.
fn load(address: SocketAddr, options: &str) -> Result<Value, String> {
    let url = format!("http://{address}/path?query");
    let words = ["load", &url, "-c", "4", "-d", "150ms"].into_iter().map(str::to_owned);
    let is_staged = options.contains("--stages");
    let words = words.take(if is_staged { 2 } else { 6 });
    let args = Cli::try_parse_from(words.chain(options.split_whitespace().map(str::to_owned)))
        .map_err(|error| error.to_string())?
        .args;
    args.check(1_000)?;
    let (address, expected) = args.probe()?;
    let (load, outcome, cpu_ns) = args.measure(address, expected)?;
    let summary = LoadSummary::of(&args, &load, &outcome, cpu_ns);
    assert!(summary.text().contains("requests/s"));
    Ok(summary.json())
}

fn failures(summary: &Value) -> String {
    summary["failures"].to_string()
}

#[test]
fn right_responses_of_any_framing_pass() {
    const CHUNKED: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n";
    const CLOSING: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok";
    const INTERIM: &str = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for response in [RESPONSE, CHUNKED, CLOSING, INTERIM] {
        let summary = load(serve(move |_| response.to_owned()), "").expect("it responds");
        let responses = summary["counts"]["responses"].as_u64().expect("a count");
        assert_eq!((failures(&summary).as_str(), responses > 0), ("[]", true), "{response}: {summary:#}");
        assert_eq!(summary["histogram"].as_array().and_then(|points| points.last()?[0].as_f64()), Some(1.0));
    }
    // A date of another second, and a head of another length.
    let dated = serve(|seen| {
        let (second, id) = (seen.number % 60, seen.number % 3 * 1_000);
        format!(
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:{second:02} GMT\r\nId: {id}\r\nContent-Length: 2\r\n\r\nok"
        )
    });
    for options in ["", "--pipeline 8", "--requests-per-connection 2"] {
        assert_eq!(failures(&load(dated, options).expect("it responds")), "[]", "{options}");
    }
}

#[test]
fn each_wrong_response_is_counted_under_its_kind() {
    for (every_third, kind) in [
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nok", "status_errors"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok!", "length_errors"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", "content_errors"),
        ("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok", "malformed_errors"),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok", "read_errors"),
    ] {
        // The first is right, for the probe.
        let address = serve(
            move |seen| {
                if seen.number % 3 == 1 { every_third.to_owned() } else { RESPONSE.to_owned() }
            },
        );
        let sha = "2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df";
        let summary = load(address, &format!("--expect-sha {sha}")).expect("the first is right");
        let [count, responses] =
            [kind, "responses"].map(|it| summary["counts"][it].as_u64().expect("a count"));
        assert!(0 < count && count < responses, "{kind}: {summary:#}");
        assert_ne!(failures(&summary), "[]", "{summary:#}");
    }
}

#[test]
fn the_first_response_must_be_as_expected() {
    let address = serve(|_| "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_owned());
    let zeros = "0".repeat(64);
    for (options, reason) in [
        ("", "expected status 200, found 404"),
        ("--expect-status 404 --expect-bytes 3", "expected a body of 3 bytes, found one of 2"),
        (&format!("--expect-status 404 --expect-sha {zeros}"), "expected a body with SHA-256 0000"),
        ("--requests-per-connection 3 --pipeline 2", "help: 20"),
        ("--rate 0", "--rate must be"),
        ("--arrivals poisson", "--rate"),
        ("--body-bytes 5 --pipeline 2", "can't be pipelined"),
        ("--stages 5000:1s", "help: ulimit -n 5032"),
        ("--stages 5000", "no duration"),
        ("-X G@T", "no method"),
        ("--expect-sha 12", "64 hexadecimal digits"),
    ] {
        let error = load(address, options).expect_err(options);
        assert!(error.contains(reason), "{options}: {error}");
    }
    assert_eq!(failures(&load(address, "--expect-status 404 -n 9").expect("as expected")), "[]");
}

#[test]
fn generated_headers_and_bodies_have_the_lengths_of_the_options() {
    // A response says what is wrong with its request by a status.
    let address = serve(|seen| {
        let value = seen.head.split("X-Large-Header: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let is_right = value.is_none_or(|value| (30..=90).contains(&value.len()))
            && (100_000..=3_000_000).contains(&seen.body_bytes)
            && seen.head.starts_with("PUT /path?query HTTP/1.1\r\nHost: h\r\nA: b\r\n");
        let status = if is_right { 200 } else { 400 };
        let share = if value.is_some() { "with" } else { "without" };
        format!("HTTP/1.1 {status} OK\r\nContent-Length: {}\r\n\r\n{share}", share.len())
    });
    let options = "-X PUT -H A:b -H host:h --header-bytes 30-90 --header-percent 50 --body-bytes 100k-3M --expect-bytes";
    let options = options.replace("-H A:b -H host:h", "-H host:h -H A:b").replace("host", "Host");
    let any = load(address, &format!("{options} any")).expect("right requests");
    assert_eq!(failures(&any), "[]");
    let seeds = (1..20).find_map(|seed| load(address, &format!("{options} 4 --seed {seed}")).ok());
    let with = seeds.expect("a first request with the header");
    let [other, all] = ["length_errors", "responses"].map(|it| with["counts"][it].as_u64().expect("a count"));
    assert!(0 < other && other < all, "about half: {with:#}");
}

#[test]
fn a_rate_that_is_not_kept_fails_the_run() {
    let fast = serve(|_| RESPONSE.to_owned());
    for options in ["--rate 400", "--rate 400 --arrivals poisson"] {
        let summary = load(fast, options).expect("it responds");
        let due = summary["due"].as_u64().expect("a count");
        assert_eq!(summary["counts"]["requests"], due, "{summary:#}");
        // 60 in 150 ms; random ones within five standard deviations.
        let bounds = if options.contains("poisson") { 22..=98 } else { 60..=60 };
        assert!(bounds.contains(&due), "{summary:#}");
    }
    let slow = serve(|_| {
        thread::sleep(Duration::from_millis(20));
        RESPONSE.to_owned()
    });
    let summary = load(slow, "--rate 1000").expect("it responds");
    assert!(failures(&summary).contains("the rate was not kept"), "{summary:#}");
    // Queueing counts: a latency begins when its request was due.
    assert!(summary["latency_ns"]["p90"].as_u64() > Some(100_000_000), "{summary:#}");
}

#[test]
fn stages_open_and_close_connections() {
    let address = serve(|_| RESPONSE.to_owned());
    for pacing in ["", "--rate 2000"] {
        let summary =
            load(address, &format!("{pacing} --stages 3,3:60ms,12:60ms,0:60ms,6:60ms")).expect("it responds");
        let opened = summary["counts"]["connections_opened"].as_u64().expect("a count");
        // 12, and after all have closed up to 6 more.
        assert!((12..=18).contains(&opened), "{summary:#}");
        let responses = summary["stages"].as_array().expect("stages").iter().map(|it| &it["responses"]);
        let responses: Vec<u64> = responses.map(|it| it.as_u64().expect("a count")).collect();
        assert!(
            responses.len() == 5 && responses[0] == 0 && responses[1..].iter().all(|it| *it > 0),
            "{summary:#}"
        );
        assert_eq!(summary["counts"]["read_errors"], 0, "{summary:#}");
    }
}

#[test]
fn slow_connections_keep_their_speed() {
    let body = "x".repeat(400_000);
    let body: &'static str = body.leak();
    let address = serve(move |_| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    let slow = load(address, "-n 1 --read-bytes-per-s 2M").expect("it responds");
    let seconds = slow["seconds"].as_f64().expect("a number");
    // The run ends before the 200 ms that a response takes.
    assert!(slow["counts"]["responses"] == 0 && (0.15..2.0).contains(&seconds), "{slow:#}");
    assert!(
        (4 * 100_000..=4 * 400_000).contains(&slow["counts"]["bytes"].as_u64().expect("a count")),
        "{slow:#}"
    );
    let address = serve(|_| RESPONSE.to_owned());
    let slow = load(address, "--body-bytes 1000 --write-bytes-per-s 1000").expect("it responds");
    assert_eq!(
        (&slow["counts"]["responses"], slow["counts"]["requests"].as_u64()),
        (&Value::from(0), Some(4))
    );
}
