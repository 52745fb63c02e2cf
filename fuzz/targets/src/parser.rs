//! Heads and bodies: the events don't depend on how the bytes are split, and each accepted head matches a second reading.

use std::sync::LazyLock;

use regex::bytes::Regex;
use shearwater_http1::{
    BodyDecoder, BodyEvent, Expectation, Framing, Head, HeadLimits, HeadParser, KnownField, METHOD_BYTES_MAX,
    Method, Parsed, Target, Version,
};

use crate::input::{CONTENT, FuzzStage, TOKEN, pattern};
use crate::session::{Session, SessionEvent};

/// The lowest effective limit of a head, in bytes.
const HEAD_BYTES_MAX_MIN: usize = 64;

/// Method, target, minor version and field lines.
static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    let line = format!(r#"({TOKEN}) ([!-"$-~\x80-\xff]+) HTTP/1\.([0-9])\r\n"#);
    pattern(&format!(r"\A(?:\r\n)?{line}((?:{TOKEN}:{CONTENT}*\r\n)*)\r\n\z"))
});
/// A field's name and its value without the blanks around it.
static FIELD: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"({TOKEN}):[\t ]*({CONTENT}*?)[\t ]*\r\n")));

/// A field: name and value.
type FieldPair<'a> = (&'a str, &'a [u8]);

/// Reads the requests of `input` whole, byte by byte and in pieces.
pub fn run(input: &[u8]) {
    let Some((stage, bytes)) = FuzzStage::of(input) else { return };
    let whole = events(&stage, std::iter::once(bytes));
    assert_eq!(events(&stage, bytes.chunks(1)), whole, "byte by byte");
    assert_eq!(events(&stage, stage.pieces(bytes)), whole, "in pieces");
    let heads = whole.iter().filter(|event| matches!(event, SessionEvent::Head(_))).count();
    assert_eq!(check_heads(&stage, bytes), heads, "heads");
}

fn events<'a>(stage: &FuzzStage, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<SessionEvent> {
    let mut session = Session::new(stage.head_limits, stage.body_limits, false);
    pieces.for_each(|piece| session.feed(piece));
    session.finish()
}

/// Checks each head up to the first rejection and returns their number.
fn check_heads(stage: &FuzzStage, bytes: &[u8]) -> usize {
    let mut parser = HeadParser::new(stage.head_limits);
    let (mut rest, mut heads) = (bytes, 0);
    while !rest.is_empty() {
        let Ok(Parsed::Complete { head_len }) = parser.parse(rest) else { break };
        let head = parser.head(rest);
        check_head(&head, &stage.head_limits);
        heads += 1;
        let mut body = BodyDecoder::new(head.framing(), stage.body_limits);
        rest = &rest[head_len..];
        parser.reset();
        match skip_body(&mut body, rest) {
            Some(len) => rest = &rest[len..],
            None => break,
        }
    }
    heads
}

/// Returns the length of the body at the start of `bytes`, if it is complete and valid.
fn skip_body(body: &mut BodyDecoder, bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let step = body.decode(&bytes[at..]).ok()?;
        at += step.consumed;
        match step.event {
            BodyEvent::Data(_) | BodyEvent::Trailer(_) => {}
            BodyEvent::More => return body.is_done().then_some(at),
            BodyEvent::Done => return Some(at),
        }
    }
}

/// Asserts that `head` matches its bytes and is within `limits`.
fn check_head(head: &Head<'_>, limits: &HeadLimits) {
    let raw = head.raw();
    assert!(raw.len() <= limits.head_bytes_max.max(HEAD_BYTES_MAX_MIN), "{} bytes", raw.len());
    let Some(found) = HEAD.captures(raw) else { panic!("no head: {}", raw.escape_ascii()) };
    let (_, [method, target, minor, lines]) = found.extract();
    assert!(method.len() <= METHOD_BYTES_MAX, "a method: {}", method.escape_ascii());
    assert_eq!(head.method_name().as_bytes(), method, "method");
    assert_eq!(head.method(), Method::from_name(method), "method");
    assert!(target.len() <= limits.target_bytes_max, "a target of {}", target.len());
    assert_eq!(head.target_str().as_bytes(), target, "target");
    assert_eq!(head.version(), if minor == b"0" { Version::Http10 } else { Version::Http11 }, "version");
    let fields = fields(head, lines);
    assert!(fields.len() <= limits.fields_max, "{} fields", fields.len());
    let parsed: Vec<FieldPair<'_>> = head.fields().map(|field| (field.name, field.value)).collect();
    assert_eq!(parsed, fields, "fields");
    check_lookups(head, &fields);
    check_host(head, &fields);
    check_framing(head, &fields);
    check_connection(head, &fields);
}

/// Reads the field lines.
fn fields<'a>(head: &'a Head<'_>, lines: &'a [u8]) -> Vec<FieldPair<'a>> {
    let fields = FIELD.captures_iter(lines).map(|line| {
        let (_, [name, value]) = line.extract();
        let name = std::str::from_utf8(name).expect("a token is ASCII");
        match head.target() {
            // RFC 9112 section 3.2.2: an absolute target replaces the value.
            Target::Absolute { authority, .. } if name.eq_ignore_ascii_case("Host") => {
                (name, authority.as_bytes())
            }
            _ => (name, value),
        }
    });
    fields.collect()
}

/// Returns the values of all fields of this name.
fn values<'a>(fields: &[FieldPair<'a>], name: &str) -> Vec<&'a [u8]> {
    fields.iter().filter(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1).collect()
}

fn check_lookups(head: &Head<'_>, fields: &[FieldPair<'_>]) {
    for (name, _) in fields {
        let values = values(fields, name);
        assert_eq!(head.field_named(name), values.first().copied(), "the first {name}");
        if let Some(known) = KnownField::from_name(name.as_bytes()) {
            assert_eq!(head.field(known), values.first().copied(), "the first known {name}");
            assert_eq!(head.all(known).collect::<Vec<_>>(), values, "all of the known {name}");
        }
    }
    for known in KnownField::all() {
        assert_eq!(head.all(*known).count(), values(fields, known.name()).len(), "{}", known.name());
    }
}

/// RFC 9112 sections 3.2 and 3.2.2.
fn check_host(head: &Head<'_>, fields: &[FieldPair<'_>]) {
    let hosts = values(fields, "Host");
    assert!(hosts.len() <= 1, "{} Hosts", hosts.len());
    assert!(hosts.len() == 1 || head.version() == Version::Http10, "no Host");
    let expected = match head.target() {
        Target::Absolute { authority, .. } => authority.as_bytes(),
        Target::Authority { .. } => head.target_str().as_bytes(),
        Target::Origin { .. } | Target::Asterisk => hosts.first().copied().unwrap_or_default(),
    };
    assert_eq!(head.host().as_bytes(), expected, "host");
    assert!(!head.host().contains([' ', '\t', '/', '?', '#', '@']), "a host: {}", head.host());
}

/// RFC 9112 section 6.3: no head that two readers could end in two places.
fn check_framing(head: &Head<'_>, fields: &[FieldPair<'_>]) {
    let expected = match (&values(fields, "Transfer-Encoding")[..], &values(fields, "Content-Length")[..]) {
        ([], []) => Framing::None,
        ([], [length]) if length.iter().all(u8::is_ascii_digit) => {
            let text = std::str::from_utf8(length).expect("digits are ASCII");
            Framing::Length(text.parse().expect("a length is below 2^64"))
        }
        ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
        both => panic!("ambiguous framing: {both:?}"),
    };
    assert_eq!(head.framing(), expected, "framing");
    assert!(expected != Framing::Chunked || head.version() == Version::Http11, "chunks in HTTP/1.0");
}

/// RFC 9112 section 9.3, RFC 9110 section 10.1.1.
fn check_connection(head: &Head<'_>, fields: &[FieldPair<'_>]) {
    let options = list(fields, "Connection");
    let has = |wanted: &str| options.iter().any(|option| option.eq_ignore_ascii_case(wanted.as_bytes()));
    let keeps = !has("close") && (head.version() == Version::Http11 || has("keep-alive"));
    assert_eq!(head.keep_alive(), keeps, "keep-alive");
    let expectations = list(fields, "Expect");
    let is_known = |element: &&[u8]| element.eq_ignore_ascii_case(b"100-continue");
    let expected = match head.version() {
        Version::Http10 => Expectation::None,
        Version::Http11 if expectations.is_empty() => Expectation::None,
        Version::Http11 if expectations.iter().all(is_known) => Expectation::Continue,
        Version::Http11 | Version::Http2 => Expectation::Unknown,
    };
    assert_eq!(head.expectation(), expected, "expectation");
}

/// Returns the elements of a list field, without the empty ones.
fn list<'a>(fields: &[FieldPair<'a>], name: &str) -> Vec<&'a [u8]> {
    let values = values(fields, name).into_iter();
    // Content has no other ASCII white space than blanks.
    let elements = values.flat_map(|value| value.split(|&byte| byte == b',')).map(<[u8]>::trim_ascii);
    elements.filter(|element| !element.is_empty()).collect()
}
