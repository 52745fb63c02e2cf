//! Texts for people: a head in a log, and the reasons for unwritten fields.

use shearwater_http1::encode::{self, BadField};
use shearwater_http1::{HeadLimits, HeadParser, KnownField, Parsed};

#[test]
fn a_head_in_a_log_tells_its_request_line_and_no_field() {
    let request = b"GET /a?b HTTP/1.0\r\nHost: h\r\nCookie: secret\r\n\r\n";
    let mut parser = HeadParser::new(HeadLimits::default());
    assert_eq!(parser.parse(request), Ok(Parsed::Complete { head_len: request.len() }));
    let text = format!("{:?}", parser.head(request));
    assert_eq!(text, "Head { method: \"GET\", target: \"/a?b\", version: Http10, fields: 2 }");
}

#[test]
fn a_field_that_is_not_written_has_a_reason_in_words() {
    let mut out = Vec::new();
    let name = encode::field(&mut out, "X Y", b"z").unwrap_err();
    let value = encode::field(&mut out, "X", b"a\r\nb").unwrap_err();
    assert_eq!((name, value), (BadField::Name, BadField::Value));
    assert_eq!(name.to_string(), "A field name is not a token.");
    assert_eq!(value.to_string(), "A field value contains a control character.");
    assert!(out.is_empty());
}

/// RFC 9112 section 3.2.2: the `Host` field is ignored, and replaced with the host of the target.
#[test]
fn the_host_field_of_an_absolute_target_has_the_host_of_the_target() {
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
