//! Tests of the functions of `shearwater top`.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use shearwater_metrics::document::Status;
use shearwater_metrics::format;
use testkit::random::{self, Rng};

use crate::top::document::parse;
use crate::top::screen::Screen;
use crate::top::style::{Style, wrap};

/// Formats of numbers that the script of the status page must have too.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/status_cases.json");

const PLAIN: Style = Style { has_colours: false, has_unicode: true };

fn document(value: &Value) -> Status {
    parse(value.to_string().as_bytes()).expect("a status")
}

/// Returns a document with changed members, given by their paths.
fn changed(base: &Value, changes: &Value) -> Value {
    let mut value = base.clone();
    for (path, change) in changes.as_object().expect("changes") {
        let member = path.split('.').fold(&mut value, |value, name| match name.parse::<usize>() {
            Ok(index) => &mut value[index],
            Err(_) => &mut value[name],
        });
        *member = change.clone();
    }
    value
}

#[test]
fn formats_numbers_as_the_status_page_does() {
    let cases: Value = serde_json::from_slice(&fs::read(CASES).expect("cases")).expect("JSON");
    for (kind, pairs) in cases["formats"].as_object().expect("kinds") {
        for pair in pairs.as_array().expect("pairs") {
            let number = || pair[0].as_f64().expect("a number");
            let found = match kind.as_str() {
                "rate" => format::rate(Some(number())),
                "bytes" => format::bytes(Some(number())),
                "duration" => format::duration(number()),
                "part" => format::part(number()),
                "age" => format::age(number()),
                "percentile" => format::percentile(serde_json::from_value(pair[0].clone()).expect("one")),
                other => panic!("no such kind: {other}"),
            };
            assert_eq!(Some(found.as_str()), pair[1].as_str(), "{kind} {}", pair[0]);
        }
    }
}

/// Returns the document of a server of before the verdict.
fn old() -> Value {
    let histogram = json!({ "count": 0, "sum": 0.0, "buckets": [] });
    json!({
        "schema": 1,
        "server": { "version": "0.1.0", "pid": 7, "driver": "epoll", "workers": 2, "state": "serving", "started_unix_seconds": 1000, "uptime_seconds": 105.0, "listen": ["127.0.0.1:8080"] },
        "configuration": { "file": null, "reloads": 0, "reloads_refused": 0, "last_reload_unix_seconds": null },
        "requests": { "total": 61_000, "by_class": { "2xx": 60_990, "4xx": 10 }, "by_method": { "GET": 61_000 } },
        "duration_seconds": histogram,
        "first_byte_seconds": histogram,
        "ends": { "complete": 61_000 },
        "bytes": { "received": 6_001_000, "sent": 601_000_000 },
        "connections": { "open": 1204, "accepted": 1240, "closed": 36, "refused": 0, "reset": 1, "broken": 0, "upgraded": 0 },
        "limits_hit": [{ "name": "connections_max", "count": 0 }, { "name": "idle_ms", "count": 40 }, { "name": "head_ms", "count": 5 }],
        "faults": { "handler_panics": 0 },
        "cache": { "files": 12, "bytes": 1_048_576, "hits": 60_990, "misses": 10 },
        "log": { "destination": "access.log", "written": 61_000, "dropped": 0, "failing": false },
        "sites": [{ "name": "example.org", "requests": 61_000, "by_class": { "4xx": 10, "5xx": 0 }, "bytes_sent": 601_000_000 }],
        "process": { "resident_bytes": 20_971_520, "cpu_seconds": 14.1, "open_descriptors": 100, "descriptors_max": 1000 },
        "messages": [{ "unix_seconds": 1101, "level": "warning", "text": "a warning" }],
    })
}

/// Returns a document with every member.
fn busy() -> Value {
    let percentile =
        |estimate: f64, low: f64, high: f64| json!({ "estimate": estimate, "low": low, "high": high });
    let mut value = changed(
        &old(),
        &json!({ "sites.0.requests_per_second": 12_000.0, "sites.0.sent_per_second": 120_000_000.0 }),
    );
    value["verdict"] = json!({
        "level": "notice",
        "headline": "1 warning was reported in the last minute: a warning",
        "state": "Serving, 12,000 requests/s.",
        "findings": [{ "level": "notice", "check": "Messages", "text": "1 warning was reported in the last minute: a warning", "help": null, "since_unix_seconds": null, "ended_unix_seconds": null }],
        "findings_left_out": 0,
        "checks": [{ "name": "5xx", "level": "ok", "value": "0" }, { "name": "TLS", "level": "notice", "value": "9 d" }],
    });
    value["rates"] = json!({
        "seconds": 5.0, "requests": 12_000.0, "by_class": { "2xx": 12_000.0, "3xx": 0.0, "4xx": 0.0, "5xx": 0.0 },
        "received": 1_200_000.0, "sent": 120_000_000.0, "accepted": 240.0, "closed": 7.0, "handshakes": 20.0, "resumed_part": 0.25,
        "log_lines": 12_000.0, "cache_hit_part": 1.0, "cpu": 0.82,
        "duration": { "p50": percentile(0.00064, 0.0005, 0.001), "p90": percentile(0.0046, 0.0025, 0.005), "p99": percentile(0.0095, 0.005, 0.01) },
        "first_byte": { "p50": percentile(0.000005, 0.0, 0.00001), "p90": null, "p99": null },
    });
    value["recent"] = json!({ "limits_hit": { "head_ms": 5 }, "faults": {} });
    let column = [None, Some(6000.0), Some(12_000.0)];
    value["history"] = json!({ "requests": column, "client_errors": column, "server_errors": column, "sent": column, "received": column, "open": column, "p50": column, "p99": column });
    value
}

fn lines(value: &Value, width: usize, height: Option<usize>) -> Vec<String> {
    Screen { status: &document(value), lost: None, width, style: PLAIN }.lines(height)
}

#[test]
fn shows_a_status_in_80_columns_and_24_rows() {
    let lines = lines(&busy(), 80, Some(24));
    let expected = "\
Shearwater 0.1.0  epoll, 2 workers  127.0.0.1:8080                 up 1 min 45 s
● 1 warning was reported in the last minute: a warning
  Serving, 12,000 requests/s.

Requests     12,000/s        5xx 0         4xx 0         2xx 12,000    3xx 0
                                          ▅█  highest 12,000/s   61,000 in all
Duration     p50 640 µs      p99 9.5 ms    p90 4.6 ms
First byte   p50 < 10 µs     p99 –         p90 –
Connections  1,204 open      240/s accepted   0 refused   1 reset   0 broken
Bytes        114 MiB/s sent   1.1 MiB/s received   in all 573 MiB, 5.7 MiB
Process      20.0 MiB        CPU 82 %      descriptors 100 of 1,000
Cache        12 files        1.0 MiB       100 % hits
Log          12,000 lines/s   0 dropped   access.log
Limits       head_ms 5+   idle_ms 40
Faults       none since the start

Site                       requests/s      5xx      4xx     sent/s      requests
example.org                    12,000        0       10    114 MiB        61,000

4 s ago  warning  a warning



q quits";
    assert_eq!(lines.join("\n"), expected, "{}", lines.join("\n"));
    assert_eq!(lines.len(), 24);
}

#[test]
fn shows_the_last_reload_and_the_state_of_the_log() {
    let errors = "error: unknown key `rot`\n --> site.toml:2:1\nhelp: did you mean `root`?\n";
    let outcome = json!({ "unix_seconds": 1100, "errors": errors });
    let refused = changed(&busy(), &json!({ "configuration.last_outcome": outcome, "log.failing": true }));
    let shown = lines(&refused, 80, None).join("\n");
    assert!(
        shown.contains(
            "\nReload       refused 5 s ago\n  error: unknown key `rot`\n   --> site.toml:2:1\n  help: "
        ),
        "{shown}"
    );
    assert!(shown.contains("\nLog          12,000 lines/s   failing   0 dropped   access.log\n"), "{shown}");
    let outcome = json!({ "unix_seconds": 1100, "errors": null });
    let shown =
        lines(&changed(&busy(), &json!({ "configuration.last_outcome": outcome })), 80, None).join("\n");
    assert!(shown.contains("\nReload       done 5 s ago\n\n"), "{shown}");
}

#[test]
fn shows_handshakes_and_certificates() {
    let failures = json!({ "version": 2, "alert": 1 });
    let tls = json!({ "connections": 7, "handshakes": {}, "resumed": 115, "queued": 0, "failures": failures, "partial_bytes": 0 });
    let lines = lines(&changed(&busy(), &json!({ "tls": tls })), 80, None);
    let row = "TLS          7 open          20/s handshakes   certificates 9 d   25 % resumed";
    assert!(lines.iter().any(|line| line == row), "{}", lines.join("\n"));
}

#[test]
fn shows_connections_and_requests_of_http2() {
    let http2 = json!({
        "open": 7, "connections": 90, "requests": 5000, "resets_received": 3,
        "resets_sent": { "NO_ERROR": 8, "CANCEL": 1, "REFUSED_STREAM": 1 }, "goaways_sent": { "ENHANCE_YOUR_CALM": 1 },
    });
    let lines =
        lines(&changed(&busy(), &json!({ "http2": http2, "rates.http2_requests": 2500.0 })), 80, None);
    let row = "HTTP/2       7 open          2,500/s requests   5 reset   1 GOAWAY by error";
    assert!(lines.iter().any(|line| line == row), "{}", lines.join("\n"));
}

#[test]
fn an_older_server_has_counts_and_no_verdict() {
    let lines = lines(&old(), 80, None);
    assert_eq!(lines[1], "● The server is older than this program.");
    assert_eq!(lines[2], "  Shearwater 0.1.0 reports no verdict and no rates: upgrade the server.");
    assert!(
        lines.iter().any(|line| line.starts_with("Connections  1,204 open      –/s accepted")),
        "{}",
        lines.join("\n")
    );
}

#[test]
fn a_lost_server_is_shown_with_its_error() {
    let status = document(&busy());
    let lost = Some((Duration::from_secs(75), "connection refused"));
    let lines = Screen { status: &status, lost, width: 80, style: PLAIN }.lines(Some(24));
    assert_eq!(lines[1], "● No response for 1 min 15 s: connection refused");
    assert_eq!(lines[2], "  The figures below are from before.");
}

#[test]
fn narrow_terminals_leave_out_whole_columns() {
    let names = ["Site", "requests/s", "5xx", "4xx", "sent/s", "requests"];
    for width in 1..120 {
        for line in lines(&busy(), width, None) {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
            if line.starts_with("Site") && width >= 12 {
                let shown: Vec<&str> = line.split_whitespace().collect();
                assert_eq!(shown, names[..shown.len()], "{width}");
            }
            if let Some(rest) = line.strip_prefix("Requests     ") {
                let cells: Vec<&str> =
                    rest.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
                let all = ["12,000/s", "5xx 0", "4xx 0", "2xx 12,000", "3xx 0"];
                assert_eq!(cells, all[..cells.len()], "{width}");
            }
        }
    }
    let row = format!("{:<19}{:>11}{:>9}", "example.org", "12,000", 0);
    assert!(lines(&busy(), 39, None).contains(&row));
}

#[test]
fn wraps_between_words() {
    for (text, width, expected) in [
        ("", 5, &[""][..]),
        ("one two", 7, &["one two"]),
        ("one two three", 7, &["one two", "three"]),
        ("one two three four five", 7, &["one two", "three", "four f…"]),
        ("onetwothree", 5, &["onetw", "othre", "e"]),
        ("a", 0, &["…"]),
    ] {
        assert_eq!(wrap(text, width, 3), expected, "{text:?} {width}");
    }
}

/// Replaces a random member by another value.
fn mutate(random: &mut Rng, value: &mut Value) {
    let hostile = [json!(null), json!(-1.5), json!(1e300), json!(u64::MAX), json!(0)];
    match value {
        Value::Array(members) if !members.is_empty() => {
            let index = random.usize(..members.len());
            mutate(random, &mut members[index]);
        }
        Value::Object(members) if !members.is_empty() => {
            let index = random.usize(..members.len());
            members.values_mut().skip(index).take(1).for_each(|member| mutate(random, member));
        }
        Value::String(text) => "\u{1b}[2J\r\n\u{202e}text".clone_into(text),
        _ => *value = hostile[random.usize(..hostile.len())].clone(),
    }
}

#[test]
fn shows_any_document_without_a_panic_and_within_the_screen() {
    let mut random = random::part(24, 2);
    let style = Style { has_colours: false, has_unicode: false };
    let mut shown = 0;
    for _ in 0..2000 {
        let mut value = busy();
        (0..2).for_each(|_| mutate(&mut random, &mut value));
        // Others are rejected with a message.
        let Ok(status) = parse(value.to_string().as_bytes()) else { continue };
        shown += 1;
        let (width, height) = (random.usize(1..120), random.usize(1..40));
        let lines = Screen { status: &status, lost: None, width, style }.lines(Some(height));
        assert_eq!(lines.len(), height);
        for line in &lines {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
            assert!(line.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{line:?}");
        }
    }
    assert!(shown > 100, "{shown}");
}

#[test]
fn rejects_documents_of_other_kinds() {
    for (text, error) in [
        ("", "the response is not JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "the response is not a server's status"),
        ("{}", "the response is not a server's status"),
        (r#"{"schema":1}"#, "the status can't be read: missing field `server`"),
        (r#"{"schema":2}"#, "the status has schema 2, and this program reads 1"),
    ] {
        assert_eq!(parse(text.as_bytes()).expect_err(text), error);
    }
}

#[test]
fn paints_only_with_colours() {
    let status = document(&busy());
    let style = Style { has_colours: true, has_unicode: true };
    let painted = Screen { status: &status, lost: None, width: 80, style }.lines(Some(24));
    assert!(painted[1].starts_with("\u{1b}[33m● \u{1b}[0m\u{1b}[1m1 warning"), "{:?}", painted[1]);
    assert!(lines(&busy(), 80, Some(24)).iter().all(|line| !line.contains('\u{1b}')));
}
