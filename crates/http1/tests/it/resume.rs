//! Resumption: no byte is scanned twice. The test overwrites scanned bytes with ones that a second scan would
//! reject.

use shearwater_http1::{HeadLimits, HeadParser, KnownField, Parsed};

#[test]
fn finished_lines_are_not_read_again() {
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
fn the_unfinished_line_is_not_scanned_again_for_its_end() {
    let mut parser = HeadParser::new(HeadLimits::default());
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec();
    let value_start = bytes.len();
    for _ in 0..1000 {
        bytes.push(b'v');
        assert_eq!(parser.parse(&bytes), Ok(Parsed::Partial));
        *bytes.last_mut().unwrap() = b'\n';
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
fn a_head_can_be_read_from_a_copy_by_a_parser_that_moved() {
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
fn fewer_bytes_than_before_are_no_more_than_a_partial_head() {
    let mut parser = HeadParser::new(HeadLimits::default());
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\nX: y";
    for length in (0..=bytes.len()).rev() {
        assert_eq!(parser.parse(&bytes[..length]), Ok(Parsed::Partial));
    }
}
