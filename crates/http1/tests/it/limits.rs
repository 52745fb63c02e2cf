//! Limits at the ends of their ranges, and errors that need no network.

use shearwater_http1::{HeadLimits, HeadParser, KnownField, METHOD_BYTES_MAX, Method, ParseError, Parsed};

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
fn limits_of_nothing_refuse_and_do_not_panic() {
    let mut parser = HeadParser::new(HeadLimits { head_bytes_max: 0, target_bytes_max: 0, fields_max: 0 });
    assert_eq!(parser.parse(b"GET / HTTP/1.0\r\n\r\n"), Err(ParseError::TargetTooLong));
    parser.reset();
    assert_eq!(parser.parse(b""), Ok(Parsed::Partial));
}

#[test]
#[should_panic(expected = "no complete head")]
fn there_is_no_head_before_it_is_complete() {
    let mut parser = HeadParser::new(HeadLimits::default());
    assert_eq!(parser.parse(b"GET / HTTP/1.1\r\n"), Ok(Parsed::Partial));
    let _ = parser.head(b"GET / HTTP/1.1\r\n");
}

#[test]
fn every_refusal_has_a_status_a_rule_and_a_sentence() {
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
fn a_method_has_the_name_that_it_is_found_by() {
    for name in ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"] {
        assert_eq!(Method::from_name(name.as_bytes()).name(), Some(name));
        assert_eq!(Method::from_name(name.to_lowercase().as_bytes()), Method::Other);
    }
    assert_eq!((Method::from_name(b"").name(), Method::from_name(b"GETS").name()), (None, None));
}

#[test]
fn a_name_is_one_of_a_method_where_a_request_may_have_it() {
    let long = "M".repeat(METHOD_BYTES_MAX + 1);
    for name in ["GET", "get", "PROPFIND", "M-SEARCH", "!#$", "", "A B", "A/B", "\u{e9}", &long, &long[1..]] {
        let mut parser = HeadParser::new(HeadLimits::default());
        let head = format!("{name} / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(Method::is_name(name.as_bytes()), parser.parse(head.as_bytes()).is_ok(), "{name}");
    }
}
