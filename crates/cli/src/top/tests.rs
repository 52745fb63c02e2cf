//! Tests of the functions of `shearwater top`. Those that the status page has too run the page's cases.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::random::{self, Rng};

use crate::top::document::{Document, Quantile};
use crate::top::format;
use crate::top::screen::Screen;
use crate::top::session::{STATUS_HISTORY_MAX, Session};
use crate::top::style::Style;
use crate::top::verdict::{CAPACITY_LIMITS, Level, ROUTINE_LIMITS, Verdict};

/// Cases that the script of the status page must pass too.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/status_cases.json");

const PLAIN: Style = Style { has_colours: false, has_unicode: true };

fn cases() -> Value {
    serde_json::from_slice(&fs::read(CASES).expect("cases")).expect("JSON")
}

fn document(value: &Value) -> Document {
    Document::parse(value.to_string().as_bytes()).expect("a status")
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
fn judges_as_the_status_page_does() {
    let cases = cases();
    for case in cases["health"].as_array().expect("cases") {
        let now = document(&changed(&cases["base"], &case["now"]));
        let history = [document(&cases["base"]), now];
        let (verdict, expected) = (Verdict::of(history.iter()), &case["expected"]);
        let level = match verdict.level {
            Level::Off | Level::Fine => "ok",
            Level::Notice => "notice",
            Level::Trouble => "trouble",
        };
        let found = json!({ "level": level, "first": verdict.first, "second": verdict.second });
        for member in ["level", "first", "second"] {
            assert_eq!(found[member], expected[member], "{}", case["name"]);
        }
        for (name, value) in expected["checks"].as_object().into_iter().flatten() {
            let check = verdict.checks.iter().find(|check| check.name == name).expect(name);
            assert_eq!(Some(check.value.as_str()), value.as_str(), "{}, {name}", case["name"]);
        }
    }
}

#[test]
fn estimates_quantiles_as_the_status_page_does() {
    for case in cases()["quantiles"].as_array().expect("cases") {
        let bucket = |pair: &Value| json!({ "le": pair[0], "count": pair[1] });
        let histogram = |name: &str| -> Vec<Value> {
            case[name].as_array().expect("buckets").iter().map(bucket).collect()
        };
        let of = |name| document(&json!({ "schema": 1, "durations": { "buckets": histogram(name) } }));
        let part = case["part"].as_f64().expect("a number");
        let found = Quantile::of(&of("before"), &of("now"), "durations", part);
        let found = found.map(|found| Quantile::format(Some(found)));
        assert_eq!(found.as_deref(), case["expected"].as_str(), "{}", case["name"]);
    }
}

#[test]
fn formats_numbers_as_the_status_page_does() {
    for (kind, pairs) in cases()["formats"].as_object().expect("kinds") {
        for pair in pairs.as_array().expect("pairs") {
            let number = pair[0].as_f64().expect("a number");
            let found = match kind.as_str() {
                "rate" => format::rate(Some(number)),
                "bytes" => format::bytes(Some(number)),
                "duration" => format::duration(number),
                "part" => format::part(number),
                "age" => format::age(number),
                "left" => format::left(number),
                other => panic!("no such kind: {other}"),
            };
            assert_eq!(Some(found.as_str()), pair[1].as_str(), "{kind} {number}");
        }
    }
}

#[test]
fn knows_only_limits_that_exist() {
    let totals = shearwater::Totals::default();
    let names: Vec<&str> = totals.limits().map(|(name, _)| name).collect();
    for name in CAPACITY_LIMITS.iter().chain(&ROUTINE_LIMITS) {
        assert!(names.contains(name), "{name}");
    }
}

/// Returns a document with every member.
fn full() -> Value {
    let mut value = cases()["base"].clone();
    let buckets = |counts: [u64; 4]| {
        let bounds = [json!(0.0001), json!(0.001), json!(0.01), json!(null)];
        let pairs = bounds.into_iter().zip(counts);
        json!({ "buckets": pairs.map(|(le, count)| json!({ "le": le, "count": count })).collect::<Vec<_>>() })
    };
    let members = json!({
        "duration_seconds": buckets([0, 0, 0, 0]),
        "first_byte_seconds": buckets([0, 0, 0, 0]),
        "bytes": { "received": 1000, "sent": 1_000_000 },
        "connections": { "open": 12, "accepted": 40, "closed": 28, "refused": 0, "reset": 1, "broken": 0 },
        "cache": { "files": 12, "bytes": 1_048_576, "hits": 990, "misses": 10 },
        "sites": [{ "name": "example.org", "requests": 1000, "by_class": { "4xx": 10, "5xx": 0 }, "bytes_sent": 1_000_000 }],
        "process": { "resident_bytes": 20_971_520, "cpu_seconds": 10.0, "open_descriptors": 100, "descriptors_max": 1000 },
        "messages": [{ "unix_seconds": 1101, "level": "warning", "text": "a warning" }],
    });
    for (name, member) in members.as_object().expect("members") {
        value[name] = member.clone();
    }
    value
}

fn busy() -> Value {
    let buckets = |counts: [u64; 4]| {
        let bounds = [json!(0.0001), json!(0.001), json!(0.01), json!(null)];
        let pairs = bounds.into_iter().zip(counts);
        json!(pairs.map(|(le, count)| json!({ "le": le, "count": count })).collect::<Vec<_>>())
    };
    changed(
        &full(),
        &json!({
            "server.uptime_seconds": 105.0,
            "requests.total": 61_000,
            "requests.by_class.2xx": 60_990,
            "duration_seconds.buckets": buckets([0, 50_000, 60_000, 60_000]),
            "first_byte_seconds.buckets": buckets([60_000, 60_000, 60_000, 60_000]),
            "bytes.sent": 601_000_000,
            "bytes.received": 6_001_000,
            "connections.open": 1204,
            "connections.accepted": 1240,
            "cache.hits": 60_990,
            "log.written": 61_000,
            "limits_hit.0.count": 5,
            "sites.0.requests": 61_000,
            "sites.0.bytes_sent": 601_000_000,
            "process.cpu_seconds": 14.1,
        }),
    )
}

fn session() -> Session {
    let mut session = Session::new(document(&full()));
    session.keep(document(&busy()));
    session
}

#[test]
fn shows_a_session_in_80_columns_and_24_rows() {
    let session = session();
    let lines = Screen { session: &session, lost: None, width: 80, style: PLAIN }.lines(Some(24));
    let expected = "\
Shearwater 0.1.0  epoll, 2 workers  127.0.0.1:8080                 up 1 min 45 s
● Serving, 12,000 requests/s.
  In the last 5 seconds: 1 warning was reported.

Requests     12,000/s      2xx 12,000    3xx 0         4xx 0         5xx 0
                 █                            highest 12,000/s, 61,000 in all
Duration     p50 640 µs    p90 4.6 ms    p99 9.5 ms
First byte   p50 < 100 µs  p90 < 100 µs  p99 < 100 µs
Connections  1,204 open    240/s accepted   0 refused   1 reset   0 broken
Bytes        114 MiB/s sent   1.1 MiB/s received   in all 573 MiB, 5.7 MiB
Process      20.0 MiB      CPU 82 %      descriptors 100 of 1,000 (10 %)
Cache        12 files      1.0 MiB       100 % hits
Log          12,000 lines/s   0 dropped   access.log
Limits       head_ms 5+   idle_ms 40
Faults       none since the start

Site                       requests/s       requests     4xx     5xx      sent/s
example.org                    12,000         61,000      10       0     114 MiB

4 s ago         warning  a warning



q quits";
    assert_eq!(lines.join("\n"), expected, "{}", lines.join("\n"));
    assert_eq!(lines.len(), 24);
}

#[test]
fn a_log_that_fails_is_shown_as_such() {
    let mut session = session();
    session
        .keep(document(&changed(&busy(), &json!({ "log.failing": true, "server.uptime_seconds": 106.0 }))));
    let lines = Screen { session: &session, lost: None, width: 80, style: PLAIN }.lines(Some(24));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("Log ") && line.contains("0 dropped   failing   access.log"))
    );
}

#[test]
fn shows_handshakes_and_certificates() {
    let certificate = json!({ "name": "a.example", "state": "ends_soon", "ends_in_seconds": 777_600 });
    let tls = |handshakes: u64, resumed: u64| {
        let failures = json!({ "version": 2, "alert": 1 });
        let handshakes = json!({ "1.2": 0, "1.3": handshakes });
        json!({ "connections": 7, "handshakes": handshakes, "resumed": resumed, "failures": failures, "certificates": [certificate] })
    };
    let at = |uptime: f64, tls: Value| {
        document(&changed(&busy(), &json!({ "server.uptime_seconds": uptime, "tls": tls })))
    };
    let mut session = Session::new(at(105.0, tls(100, 90)));
    session.keep(at(110.0, tls(200, 115)));
    let lines = Screen { session: &session, lost: None, width: 80, style: PLAIN }.lines(None);
    let row = "TLS          7 open        20/s handshakes   25 % resumed   3 failed   9 d left";
    assert!(lines.iter().any(|line| line == row), "{}", lines.join("\n"));
    assert!(lines[2].contains("the certificate of a.example ends in 9 d"), "{}", lines[2]);
}

#[test]
fn a_lost_server_is_shown_with_its_error() {
    let session = session();
    let lost = Some((Duration::from_secs(75), "connection refused"));
    let lines = Screen { session: &session, lost, width: 80, style: PLAIN }.lines(Some(24));
    assert_eq!(lines[1], "● No response for 1 min 15 s: connection refused");
    assert_eq!(lines[2], "  The figures below are from before.");
}

#[test]
fn begins_anew_with_another_process() {
    let mut session = session();
    session.keep(document(&changed(&full(), &json!({ "server.pid": 8, "server.uptime_seconds": 1.0 }))));
    assert_eq!((session.history().count(), session.rates().count()), (1, 0));
    assert_eq!(Verdict::of(session.history()).first, "Serving.");
}

#[test]
fn keeps_a_bounded_number_of_documents_and_rates() {
    let mut session = Session::new(document(&full()));
    for second in 1..2000 {
        let uptime = 100.0 + f64::from(second) / 4.0;
        session.keep(document(&changed(&full(), &json!({ "server.uptime_seconds": uptime }))));
    }
    assert_eq!(session.history().count(), STATUS_HISTORY_MAX);
    assert_eq!(session.rates().count(), 300);
    let with_sites = session.history().filter(|document| !document.list("sites").is_empty());
    assert_eq!(with_sites.count(), 8);
    // A minute without a response is a gap in the chart.
    let uptime = json!({ "server.uptime_seconds": 700.0 });
    session.keep(document(&changed(&full(), &uptime)));
    assert!(session.rates().rev().skip(1).take(60).all(|rate| rate.is_none()));
}

/// Replaces random members by other values.
fn mutate(random: &mut Rng, value: &mut Value) {
    let hostile = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(true),
        json!("\u{1b}[2J\r\n\u{202e}text"),
        json!([]),
        json!({}),
        json!([{ "le": null, "count": 3, "name": "\u{7}", "text": "a\nb" }]),
    ];
    match value {
        _ if random.u8(..) < 20 => *value = hostile[random.usize(..hostile.len())].clone(),
        Value::Array(members) => members.iter_mut().for_each(|member| mutate(random, member)),
        Value::Object(members) => members.values_mut().for_each(|member| mutate(random, member)),
        _ => {}
    }
}

#[test]
fn shows_any_document_without_a_panic_and_within_the_screen() {
    let mut random = random::part(24, 2);
    let style = Style { has_colours: false, has_unicode: false };
    for _ in 0..300 {
        let (mut old, mut now) = (full(), busy());
        for root in [&mut old, &mut now] {
            let members = root.as_object_mut().expect("members").values_mut();
            members.for_each(|member| mutate(&mut random, member));
            root["schema"] = json!(1);
        }
        let mut session = Session::new(document(&old));
        session.keep(document(&now));
        let (width, height) = (random.usize(1..120), random.usize(1..40));
        let lines = Screen { session: &session, lost: None, width, style }.lines(Some(height));
        assert_eq!(lines.len(), height);
        for line in &lines {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
            assert!(line.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{line:?}");
        }
    }
}

#[test]
fn rejects_documents_of_other_kinds() {
    for (text, error) in [
        ("", "the response is not JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "the response is not a server's status"),
        ("{}", "the response is not a server's status"),
        (r#"{"schema":2}"#, "the status has schema 2, and this program reads 1"),
    ] {
        assert_eq!(Document::parse(text.as_bytes()).expect_err(text), error);
    }
}

#[test]
fn paints_only_with_colours() {
    let session = session();
    let style = Style { has_colours: true, has_unicode: true };
    let painted = Screen { session: &session, lost: None, width: 80, style }.lines(Some(24));
    assert!(painted[1].starts_with("\u{1b}[33m● \u{1b}[0m\u{1b}[1mServing"), "{:?}", painted[1]);
    let plain = Screen { session: &session, lost: None, width: 80, style: PLAIN }.lines(Some(24));
    assert!(plain.iter().all(|line| !line.contains('\u{1b}')));
}
