//! Properties that hold for all inputs, tested on many. `fuzz/targets` shows that no result depends on how the bytes are split.

use crate::session::{Session, SessionEvent, render};
use shearwater_http1::{
    BodyDecoder, BodyLimits, Framing, HeadLimits, HeadParser, KnownField, ParseError, Parsed, Trailers,
    encode, may_be_trailer,
};
use testkit::random::Rng;

const ROUNDS: usize = 20_000;
const SEED: u64 = 7;

fn pick<'a>(random: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[random.usize(..choices.len())]
}

/// Feeds `input` in pieces of random length.
fn run_in_pieces(random: &mut Rng, input: &[u8], piece_max: usize) -> Vec<SessionEvent> {
    let mut session = Session::new(HeadLimits::default(), BodyLimits::default(), true);
    let mut rest = input;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((1 + random.usize(..piece_max)).min(rest.len()));
        session.feed(piece);
        rest = after;
    }
    session.finish()
}

#[test]
fn a_partial_result_means_that_a_shorter_prefix_was_partial_too() {
    let mut random = Rng::with_seed(SEED + 1);
    let limits = HeadLimits { head_bytes_max: 70, target_bytes_max: 10, fields_max: 2 };
    let mut kinds = std::collections::BTreeSet::new();
    for _ in 0..ROUNDS {
        let mut input =
            b"GET / HTTP/1.1\r\nHost: a\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n\r\n".to_vec();
        for _ in 0..random.usize(..4) {
            let at = random.usize(..input.len());
            match random.usize(..3) {
                0 => input[at] = b"\r\n \t:a/"[random.usize(..7)],
                1 => input.insert(at, b"\r\n \t:a/"[random.usize(..7)]),
                _ => input.splice(at..at, vec![b'z'; random.usize(..60)]).for_each(drop),
            }
        }
        let first = |step: usize| {
            let mut parser = HeadParser::new(limits);
            let lengths = (1..=input.len()).filter(|length| length % step == 0 || *length == input.len());
            lengths.map(|length| parser.parse(&input[..length])).find(|result| *result != Ok(Parsed::Partial))
        };
        let (whole, bytewise, by_seven) = (first(usize::MAX), first(1), first(7));
        assert_eq!((whole, whole), (bytewise, by_seven), "\"{}\"", input.escape_ascii());
        kinds.insert(format!("{whole:?}").chars().take(20).collect::<String>());
    }
    assert!(kinds.len() >= 10, "the inputs are too much alike: {kinds:?}");
}

#[test]
fn reads_what_was_encoded() {
    let mut random = Rng::with_seed(SEED + 2);
    let names =
        ["Accept", "x-a", "COOKIE", "If-None-Match", "X-Forwarded-For", "priority", "y", "User-Agent"];
    let mut parser = HeadParser::new(HeadLimits::default());
    for _ in 0..ROUNDS {
        let mut fields = vec![("Host".to_owned(), b"example.org".to_vec())];
        for _ in 0..random.usize(..12) {
            let inner = |random: &mut Rng| b"abc \t~!\x80\xff,;=\""[random.usize(..13)];
            let value: Vec<u8> = (0..random.usize(..60)).map(|_| inner(&mut random)).collect();
            let value = value.trim_ascii().to_vec();
            fields.push((pick(&mut random, &names).to_owned(), value));
        }
        let target: String = (0..random.usize(..40))
            .map(|_| pick(&mut random, &["a", "/", "?", "%20", "&", "=", ".", "%2e", "/..", "é"]))
            .collect();
        let mut bytes = format!("POST /{target} HTTP/1.1\r\n").into_bytes();
        for (name, value) in &fields {
            encode::field(&mut bytes, name, value).unwrap();
        }
        encode::end_of_head(&mut bytes);
        parser.reset();
        let Some(path) = without_dot_segments(&target) else {
            assert_eq!(parser.parse(&bytes), Err(ParseError::PathAboveRoot), "{target}");
            continue;
        };
        assert_eq!(parser.parse(&bytes), Ok(Parsed::Complete { head_len: bytes.len() }));
        let head = parser.head(&bytes);
        assert_eq!((head.target_str(), head.path()), (&*format!("/{target}"), &*path));
        assert_eq!(head.path_bytes(), path.as_bytes());
        let read: Vec<_> = head.fields().map(|field| (field.name.to_owned(), field.value.to_vec())).collect();
        assert_eq!(read, fields);
        check_lookups(&head, &fields);
    }
}

/// Resolves the dot segments of a target's path; `None` if it leaves the root. The target has no slash before it.
fn without_dot_segments(target: &str) -> Option<String> {
    let path = target.split('?').next().unwrap_or_default();
    let mut segments = Vec::new();
    let mut last = String::new();
    for segment in path.split('/') {
        last = segment.replace("%2e", ".");
        match &*last {
            "." => {}
            ".." => drop(segments.pop()?),
            _ => segments.push(segment),
        }
    }
    let slash = if matches!(&*last, "." | "..") { "/" } else { "" };
    let joined = format!("/{}", segments.join("/"));
    Some(if segments.is_empty() { "/".to_owned() } else { joined + slash })
}

fn check_lookups(head: &shearwater_http1::Head<'_>, fields: &[(String, Vec<u8>)]) {
    let (present, absent): (Vec<_>, Vec<_>) = KnownField::all()
        .iter()
        .partition(|&&known| fields.iter().any(|field| field.0.eq_ignore_ascii_case(known.name())));
    assert!(!head.has_any(&absent) && !head.has_any(&[]));
    for &known in &present {
        assert!(head.has_any(&[known]) && head.has_any(&[&absent[..], &[known]].concat()), "{known:?}");
    }
    for name in ["accept", "X-A", "Cookie", "If-Match", "Y", "absent", "", "USER-AGENT"] {
        let expected: Vec<&[u8]> = fields
            .iter()
            .filter(|field| field.0.eq_ignore_ascii_case(name))
            .map(|field| &field.1[..])
            .collect();
        assert_eq!(head.field_named(name), expected.first().copied(), "{name}");
        assert_eq!(head.all_named(name).collect::<Vec<_>>(), expected, "{name}");
        if let Some(known) = KnownField::from_name(name.as_bytes()) {
            assert_eq!(head.field(known), expected.first().copied(), "{name}");
            assert_eq!(head.all(known).collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(head.is_repeated(known), expected.len() > 1, "{name}");
        }
    }
}

#[test]
fn decodes_encoded_chunks_however_they_are_split() {
    let mut random = Rng::with_seed(SEED + 3);
    for _ in 0..ROUNDS / 10 {
        let (mut body, mut bytes) = (Vec::new(), b"POST / HTTP/1.1\r\nHost: a\r\n".to_vec());
        encode::chunked(&mut bytes);
        encode::end_of_head(&mut bytes);
        for _ in 0..random.usize(..6) {
            let data: Vec<u8> = (0..1 + random.usize(..300)).map(|_| random.u8(..)).collect();
            encode::chunk(&mut bytes, &data);
            body.extend(data);
        }
        encode::last_chunk(&mut bytes);
        let events = run_in_pieces(&mut random, &bytes, 50);
        let read = events
            .iter()
            .find_map(|event| if let SessionEvent::Data(data) = event { Some(data.clone()) } else { None });
        assert_eq!(read.unwrap_or_default(), body);
        assert_eq!(events.last(), Some(&SessionEvent::End), "{:?}", render(&events));
    }
}

#[test]
fn reads_encoded_trailers_however_they_are_split() {
    let mut random = Rng::with_seed(SEED + 6);
    let names = ["grpc-status", "ETag", "x-a", "Host", "content-length", "Cookie", "X-A", "digest", "TE"];
    for _ in 0..ROUNDS / 10 {
        let (mut fields, mut section) = (Vec::new(), Vec::new());
        for _ in 0..random.usize(..8) {
            let inner = |random: &mut Rng| b"abc \t~!\x80\xff,;=:\""[random.usize(..14)];
            let value: Vec<u8> = (0..random.usize(..40)).map(|_| inner(&mut random)).collect();
            let name = pick(&mut random, &names);
            encode::field(&mut section, name, &value).unwrap();
            if may_be_trailer(name) {
                fields.push((name.to_owned(), value.trim_ascii().to_vec()));
            }
        }
        let mut bytes = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        encode::chunk(&mut bytes, b"data");
        encode::last_chunk_and_trailers(&mut bytes, &section);
        let events = run_in_pieces(&mut random, &bytes, 9);
        assert_eq!(events.last(), Some(&SessionEvent::End), "{:?}", render(&events));
        let found = events.iter().find_map(|event| match event {
            SessionEvent::Trailer(bytes) => Some(bytes.clone()),
            _ => None,
        });
        let found = found.unwrap_or_default();
        let read: Vec<_> =
            Trailers::new(&found).map(|field| (field.name.to_owned(), field.value.to_vec())).collect();
        assert_eq!(read, fields);
    }
}

/// Names of each kind in RFC 9110 section 6.5.1, and names whose definition allows trailers.
#[test]
fn fields_that_are_needed_before_the_content_are_no_trailers() {
    for name in [
        "Transfer-Encoding",
        "content-length",
        "TRAILER",
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "te",
        "Upgrade",
        "Host",
        "Forwarded",
        "X-Forwarded-For",
        "X-Real-IP",
        "Max-Forwards",
        "Authorization",
        "Proxy-Authorization",
        "WWW-Authenticate",
        "Cookie",
        "set-cookie",
        "Cache-Control",
        "Expect",
        "Range",
        "If-Match",
        "If-None-Match",
        "If-Range",
        "Age",
        "Date",
        "Expires",
        "Location",
        "Retry-After",
        "Vary",
        "Content-Encoding",
        "Content-Type",
        "content-range",
        "Content_Length",
        "X-Forwarded-Port",
        "x_forwarded_for",
    ] {
        assert!(!may_be_trailer(name), "{name}");
        let section = format!("A: 1\r\n{name}: x\r\nB: 2\r\n");
        let names: Vec<_> = Trailers::new(section.as_bytes()).map(|field| field.name).collect();
        assert_eq!(names, ["A", "B"], "{name}");
    }
    for name in
        ["grpc-status", "grpc-message", "ETag", "Server-Timing", "Content-Digest", "Authentication-Info"]
    {
        assert!(may_be_trailer(name), "{name}");
    }
}

#[test]
fn reading_trailers_ends_where_there_is_no_line() {
    for (section, count) in
        [("", 0), ("A: b", 0), ("A: b\r\nC", 1), ("A: b\r\nC\r\nD: e\r\n", 1), ("\r\n", 0)]
    {
        assert_eq!(Trailers::new(section.as_bytes()).count(), count, "{section:?}");
    }
}

#[test]
fn agrees_with_httparse_on_chunk_sizes() {
    let mut random = Rng::with_seed(SEED + 5);
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let mut line: Vec<u8> =
            (0..1 + random.usize(..18)).map(|_| b"0123456789abcdefABCDEF"[random.usize(..22)]).collect();
        if random.usize(..3) == 0 {
            line.extend_from_slice(
                pick(&mut random, &[";a=b", " ;x", "\t", " ", "g", ";", ";\t\"\""]).as_bytes(),
            );
        }
        line.extend_from_slice(b"\r\n");
        let mut decoder = BodyDecoder::new(Framing::Chunked, BodyLimits::default());
        let ours = decoder.decode(&line).map(|step| step.consumed);
        let is_unnamed = has_unnamed_extension(&line);
        match httparse::parse_chunk_size(&line) {
            Ok(httparse::Status::Complete((consumed, _))) if !is_unnamed => {
                accepted += 1;
                assert_eq!(ours, Ok(consumed), "\"{}\"", line.escape_ascii());
            }
            // RFC 9112 7.1.1: whitespace is valid before an extension only, and an extension has a name;
            // httparse accepts both.
            Ok(_) => assert_eq!(ours, Err(ParseError::InvalidChunkExtension), "\"{}\"", line.escape_ascii()),
            // httparse counts digits, leading zeros too; we count bits.
            Err(_) if ours.is_ok() => assert!(line.starts_with(b"0"), "\"{}\"", line.escape_ascii()),
            Err(_) => {}
        }
    }
    assert!(accepted > ROUNDS / 2, "{accepted}");
}

/// Returns true for a chunk line whose size is followed by anything but an extension with a name.
fn has_unnamed_extension(line: &[u8]) -> bool {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = line[digits..].strip_suffix(b"\r\n").expect("a whole line");
    let name = rest.trim_ascii_start().strip_prefix(b";").unwrap_or_default().trim_ascii_start();
    !rest.is_empty() && !name.first().is_some_and(u8::is_ascii_alphanumeric)
}
