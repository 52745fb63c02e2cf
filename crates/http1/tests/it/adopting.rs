//! Adopting parsers: they hold another parser's head, with no more memory than that needs until they parse.

use shearwater_http1::{HeadLimits, HeadParser, ParseError, Parsed};

/// A head with so many fields.
fn head(fields: usize) -> Vec<u8> {
    let fields: String = (1..fields).map(|number| format!("X-{number}: {number}\r\n")).collect();
    format!("GET /path?query HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

#[test]
fn it_says_what_the_other_one_says_however_many_fields_there_are() {
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
fn it_parses_once_it_has_room() {
    let limits = HeadLimits { fields_max: 5, ..HeadLimits::default() };
    let mut parser = HeadParser::without_room(limits);
    parser.make_room();
    let bytes = head(5);
    assert_eq!(parser.parse(&bytes[..20]), Ok(Parsed::Partial));
    parser.make_room();
    assert_eq!(
        parser.parse(&bytes),
        Ok(Parsed::Complete { head_len: bytes.len() }),
        "it had room: nothing is forgotten"
    );
    assert_eq!(parser.head(&bytes).fields().count(), 5);
    parser.reset();
    assert_eq!(parser.parse(&head(6)), Err(ParseError::TooManyFields));
}
