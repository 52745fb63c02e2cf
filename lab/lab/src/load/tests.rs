//! The tool against servers that are right, slow and wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;

use super::*;
use crate::client::tests::serve_heads;

const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: LoadArgs,
}

/// Sends what `respond` returns for a head and the number of requests before it.
fn serve(respond: impl Fn(&str, u64) -> String + Copy + Send + 'static) -> SocketAddr {
    let requests: &AtomicU64 = Box::leak(Box::default());
    serve_heads(move |head| respond(head, requests.fetch_add(1, Ordering::Relaxed)).into_bytes())
}

/// Parses options after a short load's.
fn args(address: SocketAddr, options: &str) -> Result<LoadArgs, String> {
    let short = if options.contains("--stages") { "" } else { "-c 4 -d 150ms" };
    let words = format!("load http://{address}/path?query {short} {options}");
    let args = Cli::try_parse_from(words.split_whitespace()).map_err(|error| error.to_string())?.args;
    args.check(1_000).map(|()| args)
}

/// Runs the tool and returns its JSON; an error is the probe's.
fn measured(args: &LoadArgs) -> Result<Value, String> {
    let (address, expected) = args.probe()?;
    let (load, outcome, cpu_ns) = args.measure(address, expected)?;
    let summary = LoadSummary::of(args, &load, &outcome, cpu_ns);
    assert!(summary.text().contains("requests/s"));
    Ok(summary.json())
}

fn load(address: SocketAddr, options: &str) -> Result<Value, String> {
    measured(&args(address, options)?)
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
        let address = serve(move |_, _| response.to_owned());
        // A busy machine may delay the end of a short run.
        let mut at_rate = (0..9).map(|_| load(address, "--rate 400").expect("it responds"));
        assert!(at_rate.any(|summary| failures(&summary) == "[]"), "{response}");
        let summary = load(address, "").expect("it responds");
        let responses = summary["counts"]["responses"].as_u64().expect("a count");
        assert_eq!((failures(&summary).as_str(), responses > 0), ("[]", true), "{response}: {summary:#}");
        assert_eq!(
            summary["latency"]["quantiles_ns"].as_array().and_then(|points| points.last()?[0].as_f64()),
            Some(1.0)
        );
    }
    // A date of another second, and a head of another length.
    let dated = serve(|_, number| {
        let (second, id) = (number % 60, number % 3 * 1_000);
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
    for (wrong, kind) in [
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nok", "status_errors"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok!", "length_errors"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", "content_errors"),
        ("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok", "malformed_errors"),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok", "read_errors"),
    ] {
        // The first is right, for the probe.
        let address = serve(move |_, number| if number % 3 == 1 { wrong } else { RESPONSE }.to_owned());
        let sha = "2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df";
        let summary = load(address, &format!("--expect-sha256 {sha}")).expect("the first is right");
        let [count, responses] =
            [kind, "responses"].map(|it| summary["counts"][it].as_u64().expect("a count"));
        assert!(0 < count && count < responses, "{kind}: {summary:#}");
        assert_ne!(failures(&summary), "[]", "{summary:#}");
    }
}

#[test]
fn the_first_response_must_be_as_expected() {
    let address = serve(|_, _| "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_owned());
    let zeros = "0".repeat(64);
    for (options, reason) in [
        ("", "expected status 200, found 404"),
        ("--expect-status 404 --expect-bytes 3", "expected a body of 3 bytes, found one of 2"),
        (&format!("--expect-status 404 --expect-sha256 {zeros}"), "expected a body with SHA-256 0000"),
        ("--requests-per-connection 3 --pipeline 2", "help: 20"),
        ("--rate 0", "0 is not in 1..=10000000"),
        ("--arrivals poisson", "--rate"),
        ("--body-bytes 5 --pipeline 2", "can't be pipelined"),
        ("--stages 5000:1s", "help: ulimit -n 5032"),
        ("--stages 5000", "no duration"),
        ("-X G@T", "no method"),
        ("--expect-sha256 12", "64 hexadecimal digits"),
    ] {
        let error = load(address, options).expect_err(options);
        assert!(error.contains(reason), "{options}: {error}");
    }
    assert_eq!(failures(&load(address, "--expect-status 404").expect("as expected")), "[]");
}

#[test]
fn generated_headers_and_bodies_have_the_lengths_of_the_options() {
    // A body comes before the head of the next request.
    let address = serve(|head, _| {
        let (body, head) =
            head.split_once("PUT /path?query HTTP/1.1\r\nHost: h\r\nA: b\r\n").unwrap_or(("?", ""));
        let value = head.strip_prefix("X-Large-Header: ").and_then(|rest| rest.split("\r\n").next());
        let is_right = (body.is_empty() || (1_000..=9_000).contains(&body.len()))
            && value.is_none_or(|value| (30..=90).contains(&value.len()))
            && head.contains("Content-Length: ");
        let (status, share) =
            (if is_right { 200 } else { 400 }, if value.is_some() { "with" } else { "without" });
        format!("HTTP/1.1 {status} OK\r\nContent-Length: {}\r\n\r\n{share}", share.len())
    });
    let load = |expected: &str, seed: u32| {
        let mut args = args(address, &format!("-X PUT --body-bytes 1000-9000 {expected} --seed {seed}"));
        let args = args.as_mut().expect("valid");
        args.headers = ["Host: h\r\n", "A: b\r\n"].map(str::to_owned).to_vec();
        (args.header_bytes, args.header_percent) = (Some(30..=90), 50);
        measured(args)
    };
    assert_eq!(failures(&load("--any-length", 1).expect("right requests")), "[]");
    let with = (1..20)
        .find_map(|seed| load("--expect-bytes 4", seed).ok())
        .expect("a first request with the header");
    let [other, all] = ["length_errors", "responses"].map(|it| with["counts"][it].as_u64().expect("a count"));
    assert!(0 < other && other < all, "about half: {with:#}");
}

#[test]
fn a_rate_that_is_not_kept_fails_the_run() {
    let fast = serve(|_, _| RESPONSE.to_owned());
    for options in ["--rate 400", "--rate 400 --arrivals poisson"] {
        let summary = load(fast, options).expect("it responds");
        let due = summary["due"].as_u64().expect("a count");
        assert_eq!(summary["counts"]["requests"], due, "{summary:#}");
        // 60 in 150 ms; random ones within five standard deviations.
        let bounds = if options.contains("poisson") { 22..=98 } else { 60..=60 };
        assert!(bounds.contains(&due), "{summary:#}");
    }
    let slow = serve(|_, _| {
        thread::sleep(Duration::from_millis(20));
        RESPONSE.to_owned()
    });
    let summary = load(slow, "--rate 1000").expect("it responds");
    assert!(failures(&summary).contains("the rate was not kept"), "{summary:#}");
    // Queueing counts: a latency begins when its request was due.
    assert!(summary["latency"]["p90_ns"].as_u64() > Some(100_000_000), "{summary:#}");
}

#[test]
fn a_client_that_delays_requests_itself_fails_the_run() {
    let args = args(serve(|_, _| RESPONSE.to_owned()), "--rate 1000").expect("valid");
    let (address, expected) = args.probe().expect("it responds");
    let load = args.load(address, expected);
    let mut stall = |_, _, _: &LoadCounts| thread::sleep(Duration::from_millis(15));
    let outcome = client::run_observed(&load, Some(&mut stall)).expect("it runs");
    let failures = LoadSummary::of(&args, &load, &outcome, 0).failures();
    let is_noticed = |failure: &String| failure.starts_with("the client itself delayed requests for");
    assert!(failures.iter().any(is_noticed), "{failures:?}");
}

#[test]
fn stages_open_and_close_connections() {
    let address = serve(|_, _| RESPONSE.to_owned());
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
    let address =
        serve(move |_, _| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    let slow = load(address, "--read-bytes-per-s 2000000").expect("it responds");
    let seconds = slow["latency"]["seconds"].as_f64().expect("a number");
    // The run ends before the 200 ms that a response takes.
    assert!(slow["counts"]["responses"] == 0 && (0.15..2.0).contains(&seconds), "{slow:#}");
    assert!(
        (4 * 100_000..=4 * 400_000).contains(&slow["counts"]["bytes"].as_u64().expect("a count")),
        "{slow:#}"
    );
    let address = serve(|_, _| RESPONSE.to_owned());
    let slow = load(address, "--write-bytes-per-s 100").expect("it responds");
    assert_eq!(
        (&slow["counts"]["responses"], slow["counts"]["requests"].as_u64()),
        (&Value::from(0), Some(4))
    );
}
