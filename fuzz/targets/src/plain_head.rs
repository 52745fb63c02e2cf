//! An accepted head read a second time, in the plainest way: cut at line ends, at spaces and at the first colon. What `http1` says of the
//! head has to be what this reading says.

use shearwater_http1::{
    Expectation, Framing, Head, HeadLimits, Known, METHOD_BYTES_MAX, Method, Target, Version,
};

/// The least that a head limit can be set to, in bytes.
const HEAD_BYTES_MAX_MIN: usize = 64;

/// A field: its name and its value without the blanks around it.
type Field<'a> = (&'a str, &'a [u8]);

/// Asserts that `head` is what stands there, and within `limits`.
pub(crate) fn check(head: &Head<'_>, limits: &HeadLimits) {
    let raw = head.raw();
    assert!(raw.len() <= limits.head_bytes_max.max(HEAD_BYTES_MAX_MIN), "{} bytes", raw.len());
    let text = raw.strip_prefix(b"\r\n").unwrap_or(raw);
    let text = text.strip_suffix(b"\r\n\r\n").expect("an empty line at the end");
    let is_printable = |line: &[u8]| line.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7F));
    let mut lines = lines(text).into_iter();
    let request_line = lines.next().expect("a request line");
    check_request_line(head, request_line, limits);
    let fields: Vec<Field<'_>> = lines
        .map(|line| {
            assert!(!line.is_empty() && is_printable(line), "a line: {}", line.escape_ascii());
            match (field(line), head.target()) {
                // RFC 9112 section 3.2.2: an absolute target replaces the value.
                ((name, _), Target::Absolute { authority, .. }) if name.eq_ignore_ascii_case("Host") => {
                    (name, authority.as_bytes())
                }
                (field, _) => field,
            }
        })
        .collect();
    assert!(fields.len() <= limits.fields_max, "{} fields", fields.len());
    let told: Vec<Field<'_>> = head.fields().map(|field| (field.name, field.value)).collect();
    assert_eq!(told, fields, "fields");
    check_lookups(head, &fields);
    check_host(head, &fields);
    check_framing(head, &fields);
    check_connection(head, &fields);
}

/// `text` cut at each CRLF. No CR or LF stands elsewhere.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    while let Some(len) = text[start..].windows(2).position(|pair| pair == b"\r\n") {
        lines.push(&text[start..start + len]);
        start += len + 2;
    }
    lines.push(&text[start..]);
    let is_whole = |line: &&[u8]| !line.contains(&b'\r') && !line.contains(&b'\n');
    assert!(lines.iter().all(is_whole), "a CR or LF by itself: {}", text.escape_ascii());
    lines
}

fn check_request_line(head: &Head<'_>, line: &[u8], limits: &HeadLimits) {
    let parts: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [method, target, version] = parts[..] else { panic!("a request line: {}", line.escape_ascii()) };
    assert!(is_token(method) && method.len() <= METHOD_BYTES_MAX, "a method: {}", method.escape_ascii());
    assert_eq!(head.method_name().as_bytes(), method, "the method");
    assert_eq!(head.method(), Method::from_name(method), "the method's number");
    assert!(!target.is_empty() && target.len() <= limits.target_bytes_max, "a target of {}", target.len());
    assert_eq!(head.target_str().as_bytes(), target, "the target");
    assert!(target.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#'), "the target's bytes");
    match version {
        b"HTTP/1.0" => assert_eq!(head.version(), Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => {
            assert_eq!(head.version(), Version::Http11);
        }
        _ => panic!("a version: {}", version.escape_ascii()),
    }
}

fn field(line: &[u8]) -> Field<'_> {
    let colon = line.iter().position(|&byte| byte == b':').expect("a colon in a field line");
    let name = &line[..colon];
    assert!(is_token(name), "a name: {}", name.escape_ascii());
    (std::str::from_utf8(name).expect("a token is ASCII"), trim(&line[colon + 1..]))
}

fn is_token(bytes: &[u8]) -> bool {
    let is_one = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_one)
}

/// Without spaces and tabs at both ends.
fn trim(bytes: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &bytes[start..end]
}

/// The values of all fields of this name.
fn values<'a>(fields: &[Field<'a>], name: &str) -> Vec<&'a [u8]> {
    fields.iter().filter(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1).collect()
}

fn check_lookups(head: &Head<'_>, fields: &[Field<'_>]) {
    for (name, _) in fields {
        let values = values(fields, name);
        assert_eq!(head.field_named(name), values.first().copied(), "the first {name}");
        if let Some(known) = Known::from_name(name.as_bytes()) {
            assert_eq!(head.field(known), values.first().copied(), "the first known {name}");
            assert_eq!(head.all(known).collect::<Vec<_>>(), values, "all of the known {name}");
        }
    }
    for known in Known::all() {
        assert_eq!(head.all(*known).count(), values(fields, known.name()).len(), "{}", known.name());
    }
}

/// RFC 9112 sections 3.2 and 3.2.2.
fn check_host(head: &Head<'_>, fields: &[Field<'_>]) {
    let hosts = values(fields, "Host");
    assert!(hosts.len() <= 1, "{} Hosts", hosts.len());
    assert!(hosts.len() == 1 || head.version() == Version::Http10, "no Host");
    let expected = match head.target() {
        Target::Absolute { authority, .. } => authority.as_bytes(),
        Target::Authority { .. } => head.target_str().as_bytes(),
        Target::Origin { .. } | Target::Asterisk => hosts.first().copied().unwrap_or_default(),
    };
    assert_eq!(head.host().as_bytes(), expected, "the host");
    assert!(!head.host().contains([' ', '\t', '/', '?', '#', '@']), "a host: {}", head.host());
}

/// RFC 9112 section 6.3: no head that two readers could end in two places.
fn check_framing(head: &Head<'_>, fields: &[Field<'_>]) {
    let (codings, lengths) = (values(fields, "Transfer-Encoding"), values(fields, "Content-Length"));
    let expected = match (&codings[..], &lengths[..]) {
        ([], []) => Framing::None,
        ([], [length]) => {
            let text = std::str::from_utf8(length).expect("a length is decimal");
            assert!(text.bytes().all(|byte| byte.is_ascii_digit()), "a length: {text}");
            Framing::Length(text.parse().expect("a length is below 2^64"))
        }
        ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
        _ => panic!("framing of two meanings: {codings:?} {lengths:?}"),
    };
    assert_eq!(head.framing(), expected, "framing");
    assert!(expected != Framing::Chunked || head.version() == Version::Http11, "chunks in HTTP/1.0");
}

/// RFC 9112 section 9.3, RFC 9110 section 10.1.1.
fn check_connection(head: &Head<'_>, fields: &[Field<'_>]) {
    let options = list(fields, "Connection");
    let has = |wanted: &str| options.iter().any(|option| option.eq_ignore_ascii_case(wanted.as_bytes()));
    let keeps = !has("close") && (head.version() == Version::Http11 || has("keep-alive"));
    assert_eq!(head.keep_alive(), keeps, "whether the connection stays open");
    let expectations = list(fields, "Expect");
    let is_known = |element: &&[u8]| element.eq_ignore_ascii_case(b"100-continue");
    let expected = match head.version() {
        Version::Http10 => Expectation::None,
        Version::Http11 if expectations.is_empty() => Expectation::None,
        Version::Http11 if expectations.iter().all(is_known) => Expectation::Continue,
        Version::Http11 => Expectation::Unknown,
    };
    assert_eq!(head.expectation(), expected, "the expectation");
}

/// The elements of a list field, without the empty ones.
fn list<'a>(fields: &[Field<'a>], name: &str) -> Vec<&'a [u8]> {
    let values = values(fields, name).into_iter();
    let elements = values.flat_map(|value| value.split(|&byte| byte == b',')).map(trim);
    elements.filter(|element| !element.is_empty()).collect()
}
