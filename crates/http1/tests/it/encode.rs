//! Responses as they are encoded: status lines, fields, lengths and chunks.

use shearwater_http1::encode::{self, BadField};
use shearwater_http1::{Method, ResponseContent, ResponseFraming};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = b"before|".to_vec();
    write(&mut out);
    String::from_utf8(out).unwrap().strip_prefix("before|").expect("earlier output is unchanged").to_owned()
}

#[test]
fn each_status_has_a_well_formed_line() {
    for status in 100..=599 {
        let line = written(|out| encode::status_line(out, status));
        assert_eq!(line, format!("HTTP/1.1 {status} {}\r\n", encode::reason(status)));
        let is_phrase = |letter: char| letter.is_ascii_alphabetic() || letter == ' ' || letter == '-';
        assert!(encode::reason(status).chars().all(is_phrase), "{status}");
    }
}

#[test]
fn reason_phrases_are_those_of_the_registry() {
    let registered: Vec<u16> = (0..=u16::MAX).filter(|&status| !encode::reason(status).is_empty()).collect();
    let expected: Vec<u16> = [
        vec![100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226],
        vec![300, 301, 302, 303, 304, 305, 307, 308],
        (400..=417).chain(421..=426).collect(),
        vec![428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507, 508, 511],
    ]
    .concat();
    assert_eq!(registered, expected);
    assert_eq!(encode::reason(413), "Content Too Large");
    assert_eq!(encode::reason(431), "Request Header Fields Too Large");
}

#[test]
fn an_invalid_status_becomes_500() {
    for status in [0, 99, 600, 999, 1000, u16::MAX] {
        assert_eq!(written(|out| encode::status_line(out, status)), "HTTP/1.1 500 Internal Server Error\r\n");
    }
}

#[test]
fn fields_are_written_as_given() {
    let line = written(|out| encode::field(out, "X-Name", b"a\tb \x21~").unwrap());
    assert_eq!(line, "X-Name: a\tb !~\r\n");
    let mut out = Vec::new();
    encode::field(&mut out, "X", b"\xff").unwrap();
    assert_eq!(out, b"X: \xff\r\n");
    assert_eq!(written(|out| encode::field(out, "X", b"").unwrap()), "X: \r\n");
}

#[test]
fn rejects_bytes_that_would_end_a_field() {
    for byte in 0..=255u8 {
        let mut out = Vec::new();
        let value = [b'a', byte, b'b'];
        let is_control = byte != b'\t' && (byte < b' ' || byte == 0x7F);
        let expected = if is_control { Err(BadField::Value) } else { Ok(()) };
        assert_eq!(encode::field(&mut out, "X", &value), expected, "{byte:#x}");
        assert_eq!(out.is_empty(), is_control);
    }
    for name in ["", "a b", "a:", "a\r\nb", "a\0", "\u{e9}", "a(b)", " a", "a\t"] {
        let mut out = Vec::new();
        assert_eq!(encode::field(&mut out, name, b"v"), Err(BadField::Name), "{name:?}");
        assert!(out.is_empty());
    }
    for value in ["a\r\nSet-Cookie: b", "\n", "\r", "a\r\n\r\n<html>", "\0"] {
        assert_eq!(encode::field(&mut Vec::new(), "X", value.as_bytes()), Err(BadField::Value), "{value:?}");
    }
}

#[test]
fn fixed_fields_have_their_text() {
    assert_eq!(written(|out| encode::content_length(out, 0)), "Content-Length: 0\r\n");
    assert_eq!(
        written(|out| encode::content_length(out, u64::MAX)),
        "Content-Length: 18446744073709551615\r\n"
    );
    assert_eq!(written(encode::chunked), "Transfer-Encoding: chunked\r\n");
    assert_eq!(written(encode::connection_close), "Connection: close\r\n");
    assert_eq!(written(encode::connection_keep_alive), "Connection: keep-alive\r\n");
    assert_eq!(written(encode::connection_upgrade), "Connection: upgrade\r\n");
    assert_eq!(written(encode::end_of_head), "\r\n");
    assert_eq!(written(encode::continue_100), "HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn numbers_are_written_without_leading_zeros() {
    let mut numbers = vec![0, 1, 9, 10, 99, 100, u64::MAX, u64::MAX - 1, 1 << 32, 0xABC_DEF0];
    numbers.extend((0..20).map(|power| 10u64.pow(power)));
    numbers.extend((0..20).map(|power| 10u64.pow(power) - 1));
    for number in numbers {
        let line = format!("Content-Length: {number}\r\n");
        assert_eq!(written(|out| encode::content_length(out, number)), line);
        assert_eq!(written(|out| encode::content_length_and_end(out, number)), line + "\r\n");
    }
}

#[test]
fn chunks_are_framed() {
    for length in [1, 9, 26, 255, 256, 0xABCDE] {
        let data = "x".repeat(length);
        let written = written(|out| {
            encode::chunk(out, data.as_bytes());
            encode::chunk(out, b"");
            encode::last_chunk(out);
        });
        assert_eq!(written, format!("{length:x}\r\n{data}\r\n0\r\n\r\n"));
    }
    let trailers = written(|out| encode::field(out, "A", b"b").expect("a field"));
    let end = written(|out| encode::last_chunk_and_trailers(out, trailers.as_bytes()));
    assert_eq!(end, "0\r\nA: b\r\n\r\n");
}

#[test]
fn only_chunks_end_with_trailers() {
    let end = |framing: ResponseFraming| written(|out| framing.append_end(out, b"A: b\r\n"));
    assert_eq!(end(ResponseFraming::Chunked), "0\r\nA: b\r\n\r\n");
    assert_eq!(
        (end(ResponseFraming::Length(9)), end(ResponseFraming::Close)),
        (String::new(), String::new())
    );
}

#[test]
fn method_and_status_decide_the_content_of_a_response() {
    for status in 100..=599 {
        let content = match status {
            100..=199 | 204 | 304 => ResponseContent::None,
            205 => ResponseContent::Empty,
            _ => ResponseContent::Whole,
        };
        assert_eq!(ResponseContent::of(Method::Get, status), content, "{status}");
        assert_eq!(ResponseContent::of(Method::Other, status), content, "{status}");
        let to_head = if content.is_whole() { ResponseContent::LengthOnly } else { content };
        assert_eq!(ResponseContent::of(Method::Head, status), to_head, "{status}");
        let is_tunnel = (200..300).contains(&status);
        let to_connect = if is_tunnel { ResponseContent::None } else { content };
        assert_eq!(ResponseContent::of(Method::Connect, status), to_connect, "{status}");
    }
}

#[test]
fn a_head_ends_with_the_framing_of_its_body() {
    const SEVEN: &str = "Content-Length: 7\r\n\r\n";
    const ZERO: &str = "Content-Length: 0\r\n\r\n";
    const END: &str = "\r\n";
    for (content, length, chunked, close) in [
        (ResponseContent::Whole, SEVEN, "Transfer-Encoding: chunked\r\n\r\n", END),
        (ResponseContent::LengthOnly, SEVEN, END, END),
        (ResponseContent::Empty, ZERO, ZERO, ZERO),
        (ResponseContent::None, END, END, END),
    ] {
        for (framing, expected) in [
            (ResponseFraming::Length(7), length),
            (ResponseFraming::Chunked, chunked),
            (ResponseFraming::Close, close),
        ] {
            let head = written(|out| framing.append_end_of_head(out, content));
            assert_eq!(head, expected, "{content:?}, {framing:?}");
        }
    }
}

#[test]
fn a_rejected_field_has_a_reason_as_text() {
    let mut out = Vec::new();
    let name = encode::field(&mut out, "X Y", b"z").unwrap_err();
    let value = encode::field(&mut out, "X", b"a\r\nb").unwrap_err();
    assert_eq!((name, value), (BadField::Name, BadField::Value));
    assert_eq!(name.to_string(), "A field name is not a token.");
    assert_eq!(value.to_string(), "A field value contains a control character.");
    assert!(out.is_empty());
}
