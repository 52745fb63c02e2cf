//! Rules of requests and trailers, each with a list of fields that breaks it.

use shearwater_http1::{Expectation, Framing, Method, Target, Version};

use super::*;

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/x?y")];

fn buffer() -> HeadBuffer {
    HeadBuffer::new(HeadLimits::default())
}

fn build(buffer: &mut HeadBuffer, fields: &[(&str, &str)], ends: bool) -> Result<(), HeadError> {
    let limits = Limits { is_secured: true, ..Limits::default() };
    let (mut request, _) = buffer.request(&limits);
    fields.iter().for_each(|(name, value)| request.add(name.as_bytes(), value.as_bytes()));
    request.finish(ends)
}

fn with(fields: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [&GET[..], fields].concat()
}

#[test]
fn a_head_is_that_of_http1() {
    let mut buffer = buffer();
    let fields = with(&[
        ("accept", "*/*"),
        ("cookie", "a=1"),
        ("x-own", "\u{e9}"),
        ("cookie", "b=2"),
        ("te", "trailers"),
    ]);
    assert_eq!(build(&mut buffer, &fields, true), Ok(()));
    let head = buffer.head();
    assert_eq!((head.method(), head.method_name(), head.version()), (Method::Get, "GET", Version::Http2));
    assert_eq!((head.path(), head.query(), head.host()), ("/x", Some("y"), "a.test"));
    assert_eq!(head.authority(), Some("a.test"));
    assert_eq!(head.target(), Target::Origin { path: "/x", query: Some("y") });
    assert_eq!((head.framing(), head.keep_alive(), head.protocol()), (Framing::None, true, None));
    let names: Vec<&str> = head.fields().map(|field| field.name).collect();
    assert_eq!(names, ["host", "accept", "x-own", "te", "cookie"]);
    assert_eq!(head.field(KnownField::Cookie), Some(&b"a=1; b=2"[..]));
    assert_eq!(head.field_named("X-Own"), Some("\u{e9}".as_bytes()));
    assert_eq!(
        head.raw().escape_ascii().to_string(),
        "GET /x?y HTTP/2\\r\\nhost: a.test\\r\\naccept: */*\\r\\n\
        x-own: \\xc3\\xa9\\r\\nte: trailers\\r\\ncookie: a=1; b=2\\r\\n\\r\\n"
    );
}

/// A head that is kept, as for a deferred handler, is the same.
#[test]
fn a_parser_adopts_a_head() {
    let mut buffer = buffer();
    assert_eq!(build(&mut buffer, &with(&[("range", "bytes=0-1")]), true), Ok(()));
    let mut parser = shearwater_http1::HeadParser::without_room(HeadLimits::default());
    parser.adopt(&buffer.head());
    let bytes = buffer.head().raw().to_vec();
    assert_eq!(build(&mut buffer, &GET, true), Ok(()));
    let kept = parser.head(&bytes);
    assert_eq!((kept.path(), kept.host(), kept.version()), ("/x", "a.test", Version::Http2));
    assert_eq!(kept.authority(), Some("a.test"));
    assert_eq!(kept.field(KnownField::Range), Some(&b"bytes=0-1"[..]));
}

#[test]
fn dot_segments_are_resolved() {
    for (path, expected) in [("/a/../b?q", "/b"), ("/%2e%2e/a", "above"), ("/a/./", "/a/"), ("/a/..", "/")] {
        let mut buffer = buffer();
        match build(&mut buffer, &[GET[0], GET[1], GET[2], (":path", path)], true) {
            Ok(()) => assert_eq!(buffer.head().path(), expected),
            Err(error) => {
                assert_eq!((error, expected), (HeadError::Rejected(ParseError::PathAboveRoot), "above"));
            }
        }
    }
}

#[test]
fn framing_follows_the_stream_and_the_length() {
    for (length, ends, expected) in [
        (None, true, Ok(Framing::None)),
        (None, false, Ok(Framing::Open)),
        (Some("0"), true, Ok(Framing::Length(0))),
        (Some("5"), false, Ok(Framing::Length(5))),
        (Some("5"), true, Err(ParseError::InvalidContentLength)),
        (Some("+5"), false, Err(ParseError::InvalidContentLength)),
    ] {
        let mut buffer = buffer();
        let length = length.map(|length| ("content-length", length));
        let fields: Vec<_> = GET.into_iter().chain(length).chain([("expect", "100-continue")]).collect();
        let result = build(&mut buffer, &fields, ends).map(|()| buffer.head().framing());
        assert_eq!(result, expected.map_err(|error| HeadError::Malformed(StreamError::Head(error))));
        if result.is_ok() {
            assert_eq!(buffer.head().expectation(), Expectation::Continue);
        }
    }
    let twice = with(&[("content-length", "1"), ("content-length", "1")]);
    let error = StreamError::Head(ParseError::DuplicateContentLength);
    assert_eq!(build(&mut buffer(), &twice, false), Err(error.into()));
}

#[test]
fn connect_has_an_authority_or_a_protocol() {
    let mut buffer = buffer();
    assert_eq!(build(&mut buffer, &[(":method", "CONNECT"), (":authority", "b.test:443")], false), Ok(()));
    let head = buffer.head();
    assert_eq!(head.target(), Target::Authority { host: "b.test", port: "443" });
    assert_eq!((head.path(), head.host(), head.protocol()), ("", "b.test:443", None));
    let extended = [(":method", "CONNECT"), (":protocol", "websocket"), GET[1], GET[2], (":path", "/chat")];
    assert_eq!(build(&mut buffer, &extended, false), Ok(()));
    let head = buffer.head();
    assert_eq!((head.method(), head.path()), (Method::Connect, "/chat"));
    assert_eq!((head.protocol(), head.host()), (Some("websocket"), "a.test"));
    assert_eq!(build(&mut buffer, &GET, true), Ok(()));
    assert_eq!(buffer.head().protocol(), None);
    let limits = Limits { extended_connect: false, ..Limits::default() };
    let (mut request, _) = buffer.request(&limits);
    extended.iter().for_each(|(name, value)| request.add(name.as_bytes(), value.as_bytes()));
    assert_eq!(request.finish(false), Err(StreamError::Protocol.into()));
}

/// As a target of HTTP/1 in absolute form: the engine decides whether its scheme is served.
#[test]
fn the_target_of_another_scheme_names_it() {
    let (mut buffer, scheme) = (buffer(), (":scheme", "ftp"));
    assert_eq!(build(&mut buffer, &[GET[0], scheme, GET[2], GET[3]], true), Ok(()));
    let head = buffer.head();
    assert_eq!((head.target_str(), head.path(), head.host()), ("ftp://a.test/x?y", "/x", "a.test"));
    let whole = [(":method", "OPTIONS"), scheme, GET[2], (":path", "*")];
    assert_eq!(build(&mut buffer, &whole, true), Ok(()));
    assert_eq!((buffer.head().target_str(), buffer.head().path()), ("ftp://a.test", "*"));
}

#[test]
fn malformed_requests_have_one_reason() {
    let (method, scheme, authority, path) = (GET[0], GET[1], GET[2], GET[3]);
    let cases: &[(&[(&str, &str)], StreamError)] = &[
        (&[method, method, scheme, path], StreamError::PseudoFieldRepeated),
        (&[method, scheme, path, (":status", "200")], StreamError::PseudoFieldUnknown),
        (&[method, scheme, authority, path, ("a", "b"), authority], StreamError::PseudoFieldLate),
        (&[scheme, authority, path], StreamError::PseudoFieldMissing),
        (&[method, authority, path], StreamError::PseudoFieldMissing),
        (&[method, scheme, authority], StreamError::PseudoFieldMissing),
        (&[], StreamError::PseudoFieldMissing),
        (&[method, scheme, authority, (":path", "")], StreamError::PseudoFieldEmpty),
        (&[method, scheme, (":authority", ""), path], StreamError::PseudoFieldEmpty),
        (&[(":method", "CONNECT"), authority, path], StreamError::PseudoFieldForbidden),
        (&[(":method", "CONNECT")], StreamError::PseudoFieldMissing),
        (&[method, scheme, authority, path, (":protocol", "websocket")], StreamError::Protocol),
        (&[method, (":scheme", "1"), authority, path], StreamError::Scheme),
        (&[method, scheme, authority, (":path", "*")], StreamError::Path),
        (&[method, scheme, authority, (":path", "http://b.test/")], StreamError::Path),
        (&[method, scheme, authority, (":path", "x")], StreamError::Path),
        (&with(&[("Accept", "a")]), StreamError::UppercaseName),
        (&with(&[("x-Own", "a")]), StreamError::UppercaseName),
        (&with(&[("a", " b")]), StreamError::SurroundingSpace),
        (&with(&[("a", "b\t")]), StreamError::SurroundingSpace),
        (&with(&[("connection", "close")]), StreamError::ConnectionSpecific),
        (&with(&[("transfer-encoding", "chunked")]), StreamError::ConnectionSpecific),
        (&with(&[("upgrade", "h2c")]), StreamError::ConnectionSpecific),
        (&with(&[("keep-alive", "1")]), StreamError::ConnectionSpecific),
        (&with(&[("proxy-connection", "close")]), StreamError::ConnectionSpecific),
        (&with(&[("te", "gzip")]), StreamError::Te),
        (&with(&[("host", "b.test")]), StreamError::HostDiffers),
        (&[method, scheme, path], StreamError::Head(ParseError::MissingHost)),
        (&[method, scheme, path, ("host", "a"), ("host", "a")], StreamError::Head(ParseError::DuplicateHost)),
        (&[method, scheme, (":authority", "u@a"), path], StreamError::Head(ParseError::InvalidHost)),
        (&[(":method", "G T"), scheme, authority, path], StreamError::Head(ParseError::NotAMethod)),
        (&[method, scheme, authority, (":path", "/ a")], StreamError::Head(ParseError::InvalidTargetByte)),
        (
            &[method, scheme, authority, (":path", "/a\r\nb: c")],
            StreamError::Head(ParseError::InvalidTargetByte),
        ),
        (&with(&[("", "b")]), StreamError::Head(ParseError::InvalidFieldName)),
        (&with(&[("a b", "b")]), StreamError::Head(ParseError::InvalidFieldName)),
        (&with(&[("a\r\nb", "b")]), StreamError::Head(ParseError::InvalidFieldName)),
        (&with(&[("a", "b\r\nc: d")]), StreamError::Head(ParseError::ControlInField)),
        (&with(&[("cookie", "b\nc")]), StreamError::Head(ParseError::ControlInField)),
        (&with(&[("a", "b\0")]), StreamError::Head(ParseError::ControlInField)),
    ];
    for (fields, expected) in cases {
        assert_eq!(build(&mut buffer(), fields, true), Err((*expected).into()), "{fields:?}");
    }
    for fields in [with(&[("host", "A.test")]), vec![method, scheme, path, ("host", "a.test")]] {
        let mut buffer = buffer();
        assert_eq!(build(&mut buffer, &fields, true), Ok(()), "{fields:?}");
        assert_eq!(buffer.head().host(), "a.test");
        assert_eq!(buffer.head().authority(), fields.contains(&authority).then_some("a.test"));
    }
}

#[test]
fn limits_of_heads_have_a_status() {
    let limits = HeadLimits { head_bytes_max: 400, target_bytes_max: 20, fields_max: 5 };
    let long = "v".repeat(401);
    for (fields, expected) in [
        (&[(":path", "/012345678901234567890")][..], ParseError::TargetTooLong),
        (&[(":path", "/"), ("a", &long)], ParseError::HeadTooLarge),
        (&[(":path", &long)], ParseError::HeadTooLarge),
        // Each field counts 32 bytes, and each crumb.
        (
            &[
                (":path", "/"),
                ("cookie", "a"),
                ("cookie", "a"),
                ("cookie", "a"),
                ("cookie", "a"),
                ("cookie", "a"),
            ],
            ParseError::TooManyFields,
        ),
        (&[(":path", "/"), ("a", ""), ("a", ""), ("a", ""), ("a", ""), ("a", "")], ParseError::TooManyFields),
    ] {
        let mut buffer = HeadBuffer::new(limits);
        let fields = [&GET[..3], fields].concat();
        assert_eq!(build(&mut buffer, &fields, true), Err(HeadError::Rejected(expected)), "{fields:?}");
    }
    let mut buffer = HeadBuffer::new(HeadLimits::default());
    let method = "M".repeat(40);
    let fields = [(":method", &*method), GET[1], GET[2], GET[3]];
    assert_eq!(build(&mut buffer, &fields, true), Err(HeadError::Rejected(ParseError::MethodTooLong)));
}

fn trailers(fields: &[(&str, &str)]) -> Result<Vec<String>, HeadError> {
    let mut buffer = buffer();
    let (mut section, _) = buffer.trailer_fields();
    fields.iter().for_each(|(name, value)| section.add(name.as_bytes(), value.as_bytes()));
    section.finish()?;
    Ok(buffer.trailers().map(|field| format!("{}={}", field.name, field.value.escape_ascii())).collect())
}

#[test]
fn trailers_are_fields_that_may_follow_content() {
    let fields = [("checksum", "1"), ("content-length", "5"), ("x", "")];
    assert_eq!(trailers(&fields), Ok(vec!["checksum=1".to_owned(), "x=".to_owned()]));
    for (field, expected) in [
        ((":path", "/"), StreamError::PseudoFieldForbidden),
        (("A", "b"), StreamError::UppercaseName),
        (("connection", "close"), StreamError::ConnectionSpecific),
        (("a", "b\r\nc"), StreamError::Head(ParseError::InvalidTrailer)),
        (("a:", "b"), StreamError::Head(ParseError::InvalidTrailer)),
    ] {
        assert_eq!(trailers(&[field]), Err(expected.into()), "{field:?}");
    }
}

#[test]
fn trailers_are_limited() {
    let long = "v".repeat(TRAILER_BYTES_MAX);
    assert_eq!(trailers(&[("a", &long)]), Err(HeadError::Rejected(ParseError::TrailersTooLarge)));
    let error = Err(HeadError::Rejected(ParseError::TooManyTrailers));
    assert_eq!(trailers(&[("a", "b"); TRAILERS_MAX + 1]), error);
    assert_eq!(trailers(&[("a", "b"); TRAILERS_MAX]).map(|fields| fields.len()), Ok(TRAILERS_MAX));
}

#[test]
fn buffers_shrink_again() {
    let mut buffer = buffer();
    let long = "v".repeat(60_000);
    assert_eq!(build(&mut buffer, &with(&[]), true), Ok(()));
    let before = buffer.held_bytes();
    let fields = [GET[0], GET[1], GET[2], GET[3], ("a", &long)];
    assert_eq!(build(&mut buffer, &fields, true), Ok(()));
    assert!(buffer.held_bytes() > 60_000);
    assert_eq!(build(&mut buffer, &GET, true), Ok(()));
    assert!(buffer.held_bytes() <= before + 4096, "{} after {before}", buffer.held_bytes());
}
