//! Parsers and heads from outside: resumption, limits, adopted heads, lookups, upgrades, sizes and texts.

use shearwater_http1::{
    BodyDecoder, BodyEvent, HeadLimits, HeadParser, KnownField, METHOD_BYTES_MAX, Method, ParseError, Parsed,
    is_protocol, is_same_protocol,
};

#[test]
fn does_not_scan_complete_lines_again() {
    let mut bytes = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX: y\r\nAccept: */*".to_vec();
    let mut parser = HeadParser::new(HeadLimits::default());
    assert_eq!(parser.parse(&bytes), Ok(Parsed::Partial));
    let finished = bytes.windows(6).position(|window| window == b"Accept").unwrap();
    let spoilt_from = bytes.windows(2).position(|window| window == b"X:").unwrap();
    let original = bytes.clone();
    bytes[spoilt_from..finished].fill(b'\n');
    bytes[..16].fill(0);
    bytes.extend_from_slice(b"\r\n\r\n");
    assert_eq!(parser.parse(&bytes), Ok(Parsed::Complete { head_len: bytes.len() }));
    bytes[..original.len()].copy_from_slice(&original);
    let head = parser.head(&bytes);
    assert_eq!(
        (head.path(), head.field_named("x"), head.field(KnownField::Accept)),
        ("/a", Some(&b"y"[..]), Some(&b"*/*"[..]))
    );
}

#[test]
fn does_not_scan_an_incomplete_line_again() {
    let mut parser = HeadParser::new(HeadLimits::default());
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec();
    let value_start = bytes.len();
    for _ in 0..1000 {
        bytes.push(b'v');
        assert_eq!(parser.parse(&bytes), Ok(Parsed::Partial));
        *bytes.last_mut().unwrap() = b'\0';
    }
    let value_end = bytes.len();
    bytes.extend_from_slice(b"\r\n\r\n");
    assert_eq!(parser.parse(&bytes), Ok(Parsed::Complete { head_len: bytes.len() }));
    assert_eq!(parser.head(&bytes).field_named("X"), Some(&bytes[value_start..value_end]));
}

#[test]
fn results_repeat_until_the_parser_is_reset() {
    let mut parser = HeadParser::new(HeadLimits::default());
    let bad = b"GET / HTTP/1.1\r\nHost: a\r\nbad\r\n";
    let first = parser.parse(bad);
    assert!(first.is_err());
    assert_eq!(parser.parse(bad), first);
    assert_eq!(parser.parse(&[&bad[..], b"more\r\n\r\n"].concat()), first);
    parser.reset();
    let good = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let complete = Ok(Parsed::Complete { head_len: good.len() });
    assert_eq!(parser.parse(good), complete);
    assert_eq!(parser.parse(&[&good[..], b"\0\0"].concat()), complete);
}

#[test]
fn a_copy_of_a_head_keeps_its_resolved_path() {
    let input = b"GET /a/../b%20?c HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let mut parser = HeadParser::new(HeadLimits::default());
    let mut copy = HeadParser::without_room(HeadLimits::default());
    assert!(parser.parse(&input).is_ok());
    let empty_bytes = copy.held_bytes();
    copy.adopt(&parser.head(&input));
    assert!(copy.held_bytes() >= empty_bytes + "/b%20".len());
    let head = copy.head(&input);
    assert_eq!((head.path(), head.sent_path_bytes()), ("/b%20", &b"/a/../b%20"[..]));
    assert_eq!((head.target_str(), head.query()), ("/a/../b%20?c", Some("c")));
    parser.reset();
    let plain = b"GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
    assert!(parser.parse(plain).is_ok());
    assert_eq!(parser.head(plain).path(), "/plain");
    copy.adopt(&parser.head(plain));
    assert_eq!(copy.head(plain).path(), "/plain");
}

#[test]
fn a_moved_parser_reads_a_copy_of_the_head() {
    let bytes = b"GET http://b/c?d HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\nbody".to_vec();
    let mut parser = HeadParser::new(HeadLimits::default());
    parser.parse(&bytes).unwrap();
    let mut taken = HeadParser::new(HeadLimits::default());
    std::mem::swap(&mut parser, &mut taken);
    let copy = bytes[..bytes.len() - 4].to_vec();
    drop(bytes);
    let head = taken.head(&copy);
    assert_eq!((head.host(), head.path(), head.query(), head.len()), ("b", "/c", Some("d"), copy.len()));
    assert_eq!(parser.parse(b"GE"), Ok(Parsed::Partial));
}

#[test]
fn fewer_bytes_than_before_are_a_partial_head() {
    let mut parser = HeadParser::new(HeadLimits::default());
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\nX: y";
    for length in (0..=bytes.len()).rev() {
        assert_eq!(parser.parse(&bytes[..length]), Ok(Parsed::Partial));
    }
}

const BOUNDLESS: HeadLimits =
    HeadLimits { head_bytes_max: usize::MAX, target_bytes_max: usize::MAX, fields_max: usize::MAX };

fn with_fields(count: usize) -> Vec<u8> {
    let mut bytes = b"GET / HTTP/1.1\r\n".to_vec();
    bytes.extend(b"X: y\r\n".repeat(count - 1));
    bytes.extend_from_slice(b"Host: last\r\n\r\n");
    bytes
}

#[test]
fn limits_beyond_the_usable_range_are_lowered() {
    let mut parser = HeadParser::new(BOUNDLESS);
    let most = with_fields(65_534);
    assert_eq!(parser.parse(&most), Ok(Parsed::Complete { head_len: most.len() }));
    let head = parser.head(&most);
    assert_eq!(
        (head.host(), head.field(KnownField::Host), head.fields().count()),
        ("last", Some(&b"last"[..]), 65_534)
    );
    parser.reset();
    assert_eq!(parser.parse(&with_fields(65_535)), Err(ParseError::TooManyFields));
}

#[test]
fn a_large_target_limit_is_kept() {
    let mut parser = HeadParser::new(BOUNDLESS);
    let bytes = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(300_000)).into_bytes();
    assert_eq!(parser.parse(&bytes), Ok(Parsed::Complete { head_len: bytes.len() }));
    assert_eq!(parser.head(&bytes).path().len(), 300_001);
}

#[test]
fn limits_of_0_reject_and_do_not_panic() {
    let mut parser = HeadParser::new(HeadLimits { head_bytes_max: 0, target_bytes_max: 0, fields_max: 0 });
    assert_eq!(parser.parse(b"GET / HTTP/1.0\r\n\r\n"), Err(ParseError::TargetTooLong));
    parser.reset();
    assert_eq!(parser.parse(b""), Ok(Parsed::Partial));
}

#[test]
#[should_panic(expected = "no complete head")]
fn an_incomplete_head_panics() {
    let mut parser = HeadParser::new(HeadLimits::default());
    assert_eq!(parser.parse(b"GET / HTTP/1.1\r\n"), Ok(Parsed::Partial));
    let _ = parser.head(b"GET / HTTP/1.1\r\n");
}

#[test]
fn each_parse_error_has_a_status_a_rule_and_a_sentence() {
    let statuses: std::collections::BTreeSet<u16> =
        ParseError::ALL.iter().map(|reject| reject.status()).collect();
    assert_eq!(statuses.into_iter().collect::<Vec<_>>(), [400, 414, 431, 501, 505]);
    let mut sentences = std::collections::BTreeSet::new();
    for reject in ParseError::ALL {
        let sentence = reject.to_string();
        assert!(sentence.ends_with('.') && sentence.matches(". ").count() == 0, "{sentence}");
        assert!(reject.rfc().starts_with("RFC "), "{}", reject.rfc());
        assert!(sentences.insert(sentence), "two reasons read alike");
    }
}

#[test]
fn methods_are_found_by_their_names() {
    for name in ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"] {
        assert_eq!(Method::from_name(name.as_bytes()).name(), Some(name));
        assert_eq!(Method::from_name(name.to_lowercase().as_bytes()), Method::Other);
    }
    assert_eq!((Method::from_name(b"").name(), Method::from_name(b"GETS").name()), (None, None));
}

#[test]
fn a_method_name_is_one_that_a_request_may_have() {
    let long = "M".repeat(METHOD_BYTES_MAX + 1);
    for name in ["GET", "get", "PROPFIND", "M-SEARCH", "!#$", "", "A B", "A/B", "\u{e9}", &long, &long[1..]] {
        let mut parser = HeadParser::new(HeadLimits::default());
        let head = format!("{name} / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(Method::is_name(name.as_bytes()), parser.parse(head.as_bytes()).is_ok(), "{name}");
    }
}

/// A head with so many fields.
fn head(fields: usize) -> Vec<u8> {
    let fields: String = (1..fields).map(|number| format!("X-{number}: {number}\r\n")).collect();
    format!("GET /path?query HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

#[test]
fn an_adopted_head_equals_the_original() {
    let limits = HeadLimits::default();
    let mut parser = HeadParser::new(limits);
    let mut adopting = HeadParser::without_room(limits);
    for fields in [3, 1, limits.fields_max, 2] {
        let bytes = head(fields);
        parser.reset();
        assert_eq!(parser.parse(&bytes), Ok(Parsed::Complete { head_len: bytes.len() }));
        let given = parser.head(&bytes);
        adopting.adopt(&given);
        let copy = bytes.clone();
        let held = adopting.head(&copy);
        assert_eq!((held.path(), held.query(), held.host()), ("/path", Some("query"), "a"));
        assert!(held.fields().eq(given.fields()));
        assert_eq!(held.fields().count(), fields);
    }
}

#[test]
fn a_parser_without_room_parses_once_it_has_room() {
    let limits = HeadLimits { fields_max: 5, ..HeadLimits::default() };
    let mut parser = HeadParser::without_room(limits);
    parser.make_room();
    let bytes = head(5);
    assert_eq!(parser.parse(&bytes[..20]), Ok(Parsed::Partial));
    parser.make_room();
    assert_eq!(
        parser.parse(&bytes),
        Ok(Parsed::Complete { head_len: bytes.len() }),
        "it had room: nothing is lost"
    );
    assert_eq!(parser.head(&bytes).fields().count(), 5);
    parser.reset();
    assert_eq!(parser.parse(&head(6)), Err(ParseError::TooManyFields));
}

#[test]
fn debug_output_has_the_request_line_and_no_field() {
    let request = b"GET /a?b HTTP/1.0\r\nHost: h\r\nCookie: secret\r\n\r\n";
    let mut parser = HeadParser::new(HeadLimits::default());
    assert_eq!(parser.parse(request), Ok(Parsed::Complete { head_len: request.len() }));
    let text = format!("{:?}", parser.head(request));
    assert_eq!(text, "Head { method: \"GET\", target: \"/a?b\", version: Http10, fields: 2 }");
}

/// RFC 9112 section 3.2.2: the `Host` field is ignored, and replaced with the host of the target.
#[test]
fn an_absolute_target_replaces_the_host_field() {
    let request = b"GET http://target:81/a HTTP/1.1\r\nX: y\r\nhost: field\r\nAccept: */*\r\n\r\n";
    for split in 0..request.len() {
        let mut parser = HeadParser::new(HeadLimits::default());
        assert_eq!(parser.parse(&request[..split]), Ok(Parsed::Partial));
        assert_eq!(parser.parse(request), Ok(Parsed::Complete { head_len: request.len() }));
        let head = parser.head(request);
        assert_eq!((head.host(), head.field_named("host")), ("target:81", Some(&b"target:81"[..])));
        assert_eq!(head.all(KnownField::Host).collect::<Vec<_>>(), [b"target:81"]);
        let fields: Vec<_> = head.fields().map(|field| (field.name, field.value)).collect();
        assert_eq!(fields, [("X", &b"y"[..]), ("host", b"target:81"), ("Accept", b"*/*")]);
        assert_eq!(head.raw(), request);
    }
}

/// Returns the protocols that a request with these field lines offers.
fn offered(version: &str, fields: &[&str]) -> Vec<String> {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let request = format!("GET / {version}\r\nHost: h\r\n{fields}\r\n");
    let mut parser = HeadParser::new(HeadLimits::default());
    assert_eq!(parser.parse(request.as_bytes()), Ok(Parsed::Complete { head_len: request.len() }));
    let head = parser.head(request.as_bytes());
    head.upgrades().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn lists_offered_protocols_without_their_versions() {
    for (fields, expected) in [
        (&["Connection: upgrade", "Upgrade: websocket"][..], &["websocket"][..]),
        (&["Connection: keep-alive, Upgrade", "Upgrade: WebSocket"], &["WebSocket"]),
        (&["Upgrade: h2c", "Connection: keep-alive", "Connection: UPGRADE"], &["h2c"]),
        (
            &["Connection: upgrade", "Upgrade: HTTP/2.0, SHTTP/1.3", "Upgrade:\tIRC/6.9 "],
            &["HTTP", "SHTTP", "IRC"],
        ),
        (&["Connection: upgrade", "Upgrade: ,a,, b/1/2 ,"], &["a", "b"]),
        (&["Connection: upgrade", "Upgrade: /1"], &[""]),
        (&["Connection: upgrade", "Upgrade:"], &[]),
    ] {
        assert_eq!(offered("HTTP/1.1", fields), expected, "{fields:?}");
    }
}

#[test]
fn offers_nothing_without_the_connection_option_or_in_http_1_0() {
    let whole = ["Connection: upgrade", "Upgrade: websocket"];
    assert_eq!(offered("HTTP/1.0", &whole), [""; 0]);
    for connection in
        ["Connection: keep-alive", "Connection: upgraded", "Connection: up, grade", "X: upgrade"]
    {
        assert_eq!(offered("HTTP/1.1", &[connection, "Upgrade: websocket"]), [""; 0], "{connection}");
    }
    assert_eq!(offered("HTTP/1.1", &["Connection: upgrade"]), [""; 0]);
}

#[test]
fn a_protocol_is_a_token_with_or_without_a_version() {
    for protocol in ["websocket", "HTTP/2.0", "h2c", "a!/~"] {
        assert!(is_protocol(protocol.as_bytes()), "{protocol:?}");
    }
    for other in ["", "/", "/1", "x/", "x/1/2", "web socket", "a,b", "a/b c", "\u{e9}"] {
        assert!(!is_protocol(other.as_bytes()), "{other:?}");
    }
    for (one, other, is_same) in
        [("x", "X/2", true), ("x/1", "x/2", true), ("x", "xy", false), ("", "/1", true), ("x", "", false)]
    {
        assert_eq!(is_same_protocol(one.as_bytes(), other.as_bytes()), is_same, "{one:?} {other:?}");
    }
}

#[test]
fn state_of_a_connection_is_small() {
    assert!(size_of::<BodyDecoder>() <= 32, "{}", size_of::<BodyDecoder>());
    assert_eq!(
        (
            size_of::<KnownField>(),
            size_of::<Option<KnownField>>(),
            size_of::<ParseError>(),
            size_of::<Method>()
        ),
        (1, 1, 1, 1)
    );
    assert!(size_of::<Result<Parsed, ParseError>>() <= 16);
    assert!(size_of::<BodyEvent<'_>>() <= 24);
}

#[test]
fn a_parser_is_cheap_to_swap() {
    assert!(size_of::<HeadParser>() <= 320, "{}", size_of::<HeadParser>());
}
