//! What people get to read: a head in a log, and why a field was not written.

use shearwater_http1::encode::{self, BadField};
use shearwater_http1::{HeadLimits, HeadParser, Parsed};

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
