//! Lines: their formats, and that no client can forge one.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use shearwater_log::limits::{LOG_FIELDS_MAX, LOG_FORMAT_BYTES_MAX, LOG_LINE_BYTES_MAX, LOG_VALUE_BYTES_MAX};
use shearwater_log::{Entry, Filter, Format, TimeCache, variables};
use testkit::random::part;

const FIELDS: [&str; 4] = ["referer", "user-agent", "host", "x-any"];

fn line(format: &str, entry: &Entry<'_>) -> String {
    let mut line = Vec::new();
    Format::parse(format).expect("a format").append(&mut line, entry, &mut TimeCache::default());
    String::from_utf8(line).expect("UTF-8")
}

fn with_entry<R>(act: impl FnOnce(&Entry<'_>) -> R) -> R {
    let field = |name: &str| match name {
        "referer" => Some(&b"http://example.org/"[..]),
        "user-agent" => Some(&b"agent \"1\""[..]),
        "host" => Some(&b"a"[..]),
        _ => None,
    };
    act(&Entry {
        unix_seconds: 784_111_777,
        client: Some("[::ffff:192.0.2.7]:1234".parse().expect("an address")),
        peer: Some("127.0.0.1:80".parse().expect("an address")),
        method: b"GET",
        target: b"/a?b=c",
        version: "HTTP/1.1",
        tls_version: Some("TLSv1.3"),
        status: Some(206),
        body_bytes_received: 3,
        body_bytes_sent: 1000,
        bytes_sent: 1234,
        first_byte: Some(Duration::from_micros(1_500)),
        duration: Duration::from_micros(2_345_678),
        ..Entry::new(&field)
    })
}

#[test]
fn formats_an_entry() {
    let common = r#"192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] "GET /a?b=c HTTP/1.1" 206 1000"#;
    let own = "${remote_addr}:$remote_port $realip_remote_addr:$realip_remote_port $remote_user $time_iso8601 $request_method $request_uri $uri $args \
               $server_protocol $scheme $ssl_protocol $status $body_bytes_received $body_bytes_sent $bytes_sent $request_time \
               $first_byte_time $end $http_user_agent $http_x_none.";
    let of_own = "192.0.2.7:1234 127.0.0.1:80 - 1994-11-06T08:49:37Z GET /a?b=c /a b=c HTTP/1.1 https TLSv1.3 206 3 1000 1234 2.345 0.001 \
                  complete agent \\x221\\x22 -.\n";
    with_entry(|entry| {
        assert_eq!(line("common", entry), format!("{common}\n"));
        assert_eq!(
            line("combined", entry),
            format!("{common} \"http://example.org/\" \"agent \\x221\\x22\"\n")
        );
        assert_eq!(line(own, entry), of_own);
        let wanted = json!({
            "time": "1994-11-06T08:49:37Z", "client": "192.0.2.7", "port": 1234, "peer": "127.0.0.1", "peer_port": 80, "method": "GET",
            "target": "/a?b=c", "version": "HTTP/1.1", "host": "a", "referer": "http://example.org/",
            "user_agent": "agent \"1\"", "scheme": "https", "tls": "TLSv1.3", "status": 206, "body_received": 3, "body_sent": 1000, "sent": 1234,
            "first_byte_ms": 1.5, "duration_ms": 2345.678, "end": "complete",
        });
        assert_eq!(serde_json::from_str::<Value>(&line("json", entry)).expect("JSON"), wanted);
    });
}

#[test]
fn names_the_user_of_basic_authentication() {
    for (sent, status, user) in [
        (Some("Basic YW5uOnNlY3JldA=="), 200, "ann"),
        (Some("basic  YW5uOnNlY3JldA=="), 404, "ann"),
        (Some("Basic YW5uOnNlY3JldA=="), 401, "-"),
        (Some("Basic YSBiIls6eA=="), 200, "a\\x20b\\x22["),
        (Some("Basic OnNlY3JldA=="), 200, "-"),
        (Some("Basic YW5u"), 200, "-"),
        (Some("Basic !"), 200, "-"),
        (Some("Bearer YW5uOnNlY3JldA=="), 200, "-"),
        (Some("Bas"), 200, "-"),
        (None, 200, "-"),
    ] {
        let field = |name: &str| sent.filter(|_| name == "authorization").map(str::as_bytes);
        let entry = Entry { status: Some(status), ..Entry::new(&field) };
        assert_eq!(line("$remote_user", &entry), format!("{user}\n"), "{sent:?}");
        assert!(line("common", &entry).starts_with(&format!("- - {user} [")), "{sent:?}");
    }
    let long = format!("Basic {}", "YWFh".repeat(1000));
    let field = |_: &str| Some(long.as_bytes());
    assert_eq!(line("$remote_user", &Entry::new(&field)), "-\n");
}

#[test]
fn formats_an_entry_without_facts() {
    let none = |_: &str| None;
    let entry = Entry { end: "disconnected", ..Entry::new(&none) };
    let common = "- - - [01/Jan/1970:00:00:00 +0000] \"-\" 499 0";
    assert_eq!(line("common", &entry), format!("{common}\n"));
    assert_eq!(line("combined", &entry), format!("{common} \"-\" \"-\"\n"));
    let json: Value = serde_json::from_str(&line("json", &entry)).expect("JSON");
    for name in [
        "client",
        "port",
        "peer",
        "peer_port",
        "method",
        "target",
        "version",
        "tls",
        "host",
        "status",
        "first_byte_ms",
    ] {
        assert_eq!(json[name], Value::Null, "{name}");
    }
    let all: String = variables().map(|(name, _)| format!("${name} ")).collect();
    let wanted = "- - - - - 01/Jan/1970:00:00:00 +0000 1970-01-01T00:00:00Z - - - - - - http - 499 0 0 0 0.000 - disconnected \n";
    assert_eq!(line(&all, &entry), wanted);
}

#[test]
fn rejects_invalid_formats() {
    let long = "$uri".repeat(LOG_FORMAT_BYTES_MAX / 4 + 1);
    for (format, why) in [
        ("", "no variable"),
        ("combned", "no variable"),
        ("$stats", "unknown variable `$stats`"),
        ("$", "unknown variable `$`"),
        ("${uri", "missing `}`"),
        ("$http_", "unknown variable `$http_`"),
        ("$uri\n", "control character"),
        (&long, "longer than 4096 bytes"),
    ] {
        let error = Format::parse(format).expect_err(format).to_string();
        assert!(error.contains(why), "{format}: {error}");
    }
    assert_eq!(Format::parse("$http_X_A $uri $http_b").expect("valid").fields(), ["x-a", "b"]);
}

#[test]
fn cuts_long_values_and_marks_them_in_every_format() {
    const MAX: usize = LOG_VALUE_BYTES_MAX;
    let long = format!("/{}", "x".repeat(3 * MAX));
    let field = |name: &str| (name != "host").then_some(long.as_bytes());
    let entry = Entry { method: b"GET", target: long.as_bytes(), version: "HTTP/1.1", ..Entry::new(&field) };
    let cut = format!("{}\\cut", &long[..MAX]);
    assert_eq!(line("$request_uri", &entry), format!("{cut}\n"));
    assert_eq!(line("$request|$uri|$http_x", &entry), format!("GET {cut} HTTP/1.1|{cut}|{cut}\n"));
    assert_eq!(line("common", &entry).matches(&format!("\"GET {cut} HTTP/1.1\"")).count(), 1);
    assert_eq!(line("combined", &entry).matches(&cut).count(), 3);
    let json: Value = serde_json::from_str(&line("json", &entry)).expect("JSON");
    assert_eq!(json["cut"], json!(["target", "referer", "user_agent"]));
    assert_eq!(json["target"], long[..MAX]);

    // A client writes no mark: its backslashes are escaped.
    let target = &long.as_bytes()[..MAX];
    let own = Entry { method: b"GET\\cut", target, ..Entry::new(&field) };
    let whole = format!("GET\\x5Ccut {}\n", &long[..MAX]);
    assert_eq!(line("$request_method $request_uri", &own), whole);
    let none = |_: &str| None;
    let json: Value =
        serde_json::from_str(&line("json", &Entry { target, ..Entry::new(&none) })).expect("JSON");
    assert_eq!((json["target"].as_str(), json.get("cut")), (Some(&long[..MAX]), None));
}

#[test]
fn no_bytes_that_need_escapes_push_the_end_of_a_target_out() {
    for filler in [&b"\\"[..], b"\"", b"\xFF", b"\x01", "\u{202e}".as_bytes(), "\u{2028}".as_bytes()] {
        let target = [b"/".as_slice(), &filler.repeat(2100), b"/payload"].concat();
        let none = |_: &str| None;
        let entry = Entry { method: b"GET", target: &target, version: "HTTP/1.1", ..Entry::new(&none) };
        for format in ["common", "combined", "json", "$request_uri", "$uri"] {
            let line = line(format, &entry);
            assert!(line.contains("/payload") && !line.contains("cut"), "{format} {filler:?}");
        }
    }
}

/// Texts of clients are escaped to up to six times their length.
#[test]
fn bounds_the_length_of_a_line() {
    let target = b"\x01".repeat(LOG_VALUE_BYTES_MAX);
    let field = |_: &str| Some(&target[..]);
    let entry = Entry { method: &target, target: &target, ..Entry::new(&field) };
    let own = "$uri".repeat(LOG_FORMAT_BYTES_MAX / 4);
    for format in ["json", "combined", &own, &"$http_x$request ".repeat(250)] {
        let line = line(format, &entry);
        assert!(line.len() <= LOG_LINE_BYTES_MAX + 1, "{}", line.len());
        assert!(line.contains("cut") || line.len() > LOG_VALUE_BYTES_MAX, "{format}");
        assert!(line.ends_with('\n'));
    }
    assert!(line(&own, &entry).starts_with("\\x01"), "each value has a beginning");
}

#[test]
fn a_malformed_request_adds_no_column_to_an_unquoted_format() {
    let none = |_: &str| None;
    for (method, target, version, words) in [
        ("GET", "/a 200 x", "HTTP/1.1", "GET /a\\x20200\\x20x HTTP/1.1"),
        ("GET", " /", "HTTP/1.1", "GET \\x20/ HTTP/1.1"),
        ("GET", "/ HTTP/1.1 200", "", "GET /\\x20HTTP/1.1\\x20200"),
        ("GET", "/a b HTTP/3.0", "", "GET /a\\x20b HTTP/3.0"),
        ("G ET", "/", "HTTP/1.1", "G\\x20ET / HTTP/1.1"),
    ] {
        let (method, target) = (method.as_bytes(), target.as_bytes());
        let entry = Entry { method, target, version, status: Some(400), ..Entry::new(&none) };
        assert_eq!(line("$request $status", &entry), format!("{words} 400\n"));
        let columns = line("$request_method $request_uri $uri $args $status", &entry);
        assert_eq!(columns.split(' ').count(), 5, "{columns}");
    }
}

#[test]
fn an_absolute_target_has_the_path_of_its_resource() {
    let none = |_: &str| None;
    for (target, path, query) in [
        ("http://a/b/c?d=/e?f", "/b/c", "d=/e?f"),
        ("http://a", "/", "-"),
        ("http://a?x", "/", "x"),
        ("/b?u=http://a/c", "/b", "u=http://a/c"),
        ("/b://c/d", "/b://c/d", "-"),
        ("*", "*", "-"),
        ("a:443", "a:443", "-"),
    ] {
        let entry = Entry { target: target.as_bytes(), ..Entry::new(&none) };
        assert_eq!(line("$uri $args $request_uri", &entry), format!("{path} {query} {target}\n"));
    }
}

#[test]
fn ends_a_request_line_with_what_is_known() {
    let none = |_: &str| None;
    let entry = Entry { method: b"PRI", target: b"* HTTP/2.0", status: Some(505), ..Entry::new(&none) };
    assert_eq!(line("$request $status", &entry), "PRI * HTTP/2.0 505\n");
}

#[test]
fn excludes_by_path_and_class() {
    let filter = Filter { paths: vec!["/health".to_owned()], classes: vec![3] };
    let none = |_: &str| None;
    for (target, status, is_excluded) in [
        ("/", Some(200), false),
        ("/health?x", Some(200), true),
        ("/health/db", Some(503), true),
        ("/healthy", Some(200), false),
        ("/x/health", Some(200), false),
        ("/health/../x", Some(400), false),
        ("/health/./a", Some(200), false),
        ("/health/../x", Some(200), false),
        ("/health/..", Some(200), false),
        ("/health/..%2f..%2fetc/passwd", Some(404), false),
        ("/health/%2e%2e/x", Some(200), false),
        ("/health/..\\x", Some(404), false),
        ("/health/.%2E/x?y", Some(200), false),
        ("/health/a..b?c=%2f..", Some(200), true),
        ("http://a/health", Some(200), true),
        ("http://a/healthy", Some(200), false),
        ("/", Some(304), true),
        ("/", None, false),
        ("/health", None, true),
    ] {
        let entry = Entry { target: target.as_bytes(), status, ..Entry::new(&none) };
        assert_eq!(filter.excludes(&entry), is_excluded, "{target} {status:?}");
    }
}

/// Returns bytes that are likely to break out of a line, its quotes or its JSON.
fn hostile(dice: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    const PIECES: &[&[u8]] = &[
        b"\n",
        b"\r\n",
        b"\"",
        b"\\",
        b"\\\"",
        b"\\x22",
        b"\0",
        b"\x1B[2J",
        b"\x7F",
        b"\xC2\x85",
        b"\xE2\x80\xA8",
        b"\xE2\x80\xAE",
        b"\xE2\x81\xA6",
        b"\xE2\x80\x8B",
        b"\xEF\xBB\xBF",
        b"\xF3\xA0\x81\xA1",
        b"\xFF",
        b"\xC3",
        b"\xF0\x9F\x8C\x8A",
        b"} {",
        b" - - [",
        b"/a",
        b"?",
        b" ",
        b"u0022",
        b"\t",
        b"%0a",
    ];
    let mut bytes = Vec::new();
    for _ in 0..dice(12) {
        match dice(4) {
            0 => bytes.push(dice(256) as u8),
            _ => bytes.extend_from_slice(PIECES[dice(PIECES.len())]),
        }
    }
    bytes
}

/// One entry is one line, whatever the client sends: without control bytes, with as many quotes as the format has.
#[test]
fn no_input_forges_a_line() {
    let mut random = part(1, 0);
    let mut dice = |end: usize| random.usize(..end);
    let columns = "$remote_addr $request_method $request_uri $uri $args $status";
    let own = "$remote_addr \"$request\" \"$uri\" \"$args\" \"$http_x_any\" \"$server_protocol\" $status";
    let formats = ["common", "combined", "json", own, columns]
        .map(|format| (format, Format::parse(format).expect("valid")));
    let quotes = |format: &str| match format {
        "common" => Some(2),
        "combined" => Some(6),
        "json" => None,
        own => Some(own.matches('"').count()),
    };
    for round in 0..20_000 {
        let values: Vec<(&str, Vec<u8>)> = FIELDS.iter().map(|name| (*name, hostile(&mut dice))).collect();
        let (method, target) = (hostile(&mut dice), hostile(&mut dice));
        let field = |name: &str| {
            let found = values.iter().find(|(known, _)| *known == name)?;
            Some(found.1.as_slice())
        };
        let peer: Option<SocketAddr> = (round % 3 > 0).then_some(([127, 0, 0, 1], 80).into());
        let entry = Entry {
            method: &method,
            target: &target,
            client: peer,
            peer,
            status: Some(400),
            ..Entry::new(&field)
        };
        let mut bytes = Vec::new();
        for (name, format) in &formats {
            bytes.clear();
            format.append(&mut bytes, &entry, &mut TimeCache::default());
            let line = std::str::from_utf8(&bytes).expect("UTF-8");
            let line = line.strip_suffix('\n').expect("a line end");
            assert!(!line.contains(char::is_control), "{name}: {line:?}");
            assert!(
                line.chars().all(|letter| letter.is_ascii() || letter.escape_debug().len() == 1),
                "{line:?}"
            );
            match quotes(name) {
                Some(0) => assert_eq!(line.split(' ').count(), 6, "{line}"),
                Some(count) => {
                    assert_eq!(line.matches('"').count(), count, "{name}: {line}");
                    assert!(line.is_ascii(), "{name}: {line}");
                }
                None => {
                    let json: Value =
                        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                    assert_eq!(json.as_object().map(serde_json::Map::len), Some(20), "{line}");
                    let text = String::from_utf8_lossy(&target);
                    assert_eq!(json["target"].as_str().unwrap_or_default(), text, "{line}");
                }
            }
        }
    }
}

#[test]
fn rejects_a_format_with_more_fields_than_are_recorded() {
    let format = |fields: usize| (0..fields).map(|number| format!("$http_x_{number} ")).collect::<String>();
    let twice = format(LOG_FIELDS_MAX) + &format(LOG_FIELDS_MAX);
    assert!(Format::parse(&twice).is_ok(), "each counts once");
    let error = Format::parse(&format(LOG_FIELDS_MAX + 1)).map_err(|error| error.to_string());
    assert_eq!(error, Err("format has more than 16 different `$http_` fields".to_owned()));
}
