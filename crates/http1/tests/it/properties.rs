//! Properties that hold for all inputs, tested on many.

use crate::prng::Prng;
use crate::session::{Event, Session, render};
use shearwater_http1::{
    BodyDecoder, BodyEvent, BodyLimits, Framing, HeadLimits, HeadParser, KnownField, ParseError, Parsed,
    encode,
};

const ROUNDS: usize = 20_000;
const SEED: u64 = 7;

/// Feeds `input` in pieces of random length.
fn run_in_pieces(prng: &mut Prng, input: &[u8], piece_max: usize) -> Vec<Event> {
    let mut session = Session::new(HeadLimits::default(), BodyLimits::default(), true);
    let mut rest = input;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((1 + prng.below(piece_max)).min(rest.len()));
        session.feed(piece);
        rest = after;
    }
    session.finish()
}

#[test]
fn random_bytes_never_panic_and_never_depend_on_the_split() {
    let mut prng = Prng::new(SEED);
    let alphabet = b"GET /?:*HTP10.9\r\n\r\n\r\n \t;,ost: achunked\0\x7f\x80\xff";
    for _ in 0..ROUNDS {
        let mut input = if prng.one_in(2) { b"GET / HTTP/1.1\r\n".to_vec() } else { Vec::new() };
        for _ in 0..prng.below(80) {
            input.push(if prng.one_in(8) { prng.byte() } else { alphabet[prng.below(alphabet.len())] });
        }
        let whole = run_in_pieces(&mut prng, &input, usize::MAX / 2);
        assert_eq!(run_in_pieces(&mut prng, &input, 8), whole, "\"{}\"", input.escape_ascii());
    }
}

#[test]
fn a_partial_result_means_that_a_shorter_prefix_was_partial_too() {
    let mut prng = Prng::new(SEED + 1);
    let limits = HeadLimits { head_bytes_max: 70, target_bytes_max: 10, fields_max: 2 };
    let mut kinds = std::collections::BTreeSet::new();
    for _ in 0..ROUNDS {
        let mut input =
            b"GET / HTTP/1.1\r\nHost: a\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n\r\n".to_vec();
        for _ in 0..prng.below(4) {
            let at = prng.below(input.len());
            match prng.below(3) {
                0 => input[at] = b"\r\n \t:a/"[prng.below(7)],
                1 => input.insert(at, b"\r\n \t:a/"[prng.below(7)]),
                _ => input.splice(at..at, vec![b'z'; prng.below(60)]).for_each(drop),
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
fn what_is_written_is_what_is_read() {
    let mut prng = Prng::new(SEED + 2);
    let names =
        ["Accept", "x-a", "COOKIE", "If-None-Match", "X-Forwarded-For", "priority", "y", "User-Agent"];
    let mut parser = HeadParser::new(HeadLimits::default());
    for _ in 0..ROUNDS {
        let mut fields = vec![("Host".to_owned(), b"example.org".to_vec())];
        for _ in 0..prng.below(12) {
            let inner = |prng: &mut Prng| b"abc \t~!\x80\xff,;=\""[prng.below(13)];
            let value: Vec<u8> = (0..prng.below(60)).map(|_| inner(&mut prng)).collect();
            let value = value.trim_ascii().to_vec();
            fields.push((prng.pick(&names).to_owned(), value));
        }
        let target: String =
            (0..prng.below(40)).map(|_| prng.pick(&["a", "/", "?", "%20", "&", "=", "."])).collect();
        let mut bytes = format!("POST /{target} HTTP/1.1\r\n").into_bytes();
        for (name, value) in &fields {
            encode::field(&mut bytes, name, value).unwrap();
        }
        encode::end_of_head(&mut bytes);
        parser.reset();
        assert_eq!(parser.parse(&bytes), Ok(Parsed::Complete { head_len: bytes.len() }));
        let head = parser.head(&bytes);
        assert_eq!(head.target_str(), format!("/{target}"));
        let read: Vec<_> = head.fields().map(|field| (field.name.to_owned(), field.value.to_vec())).collect();
        assert_eq!(read, fields);
        check_lookups(&head, &fields);
    }
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
        if let Some(known) = KnownField::from_name(name.as_bytes()) {
            assert_eq!(head.field(known), expected.first().copied(), "{name}");
            assert_eq!(head.all(known).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}

#[test]
fn chunks_come_back_whole_however_they_are_cut() {
    let mut prng = Prng::new(SEED + 3);
    for _ in 0..ROUNDS / 10 {
        let (mut body, mut bytes) = (Vec::new(), b"POST / HTTP/1.1\r\nHost: a\r\n".to_vec());
        encode::chunked(&mut bytes);
        encode::end_of_head(&mut bytes);
        for _ in 0..prng.below(6) {
            let data: Vec<u8> = (0..1 + prng.below(300)).map(|_| prng.byte()).collect();
            encode::chunk(&mut bytes, &data);
            body.extend(data);
        }
        encode::last_chunk(&mut bytes);
        let events = run_in_pieces(&mut prng, &bytes, 50);
        let read = events
            .iter()
            .find_map(|event| if let Event::Data(data) = event { Some(data.clone()) } else { None });
        assert_eq!(read.unwrap_or_default(), body);
        assert_eq!(events.last(), Some(&Event::End), "{:?}", render(&events));
    }
}

/// Decodes all of `input`, in pieces of at most `piece_max` bytes; returns content, trailers, the end of the
/// body, and the error.
fn decode(
    prng: &mut Prng,
    input: &[u8],
    piece_max: usize,
) -> (Vec<u8>, Vec<u8>, Option<usize>, Option<ParseError>) {
    let mut decoder = BodyDecoder::new(Framing::Chunked, BodyLimits::default());
    let (mut data, mut trailers, mut at) = (Vec::new(), Vec::new(), 0);
    while at < input.len() {
        let end = input.len().min(at + 1 + prng.below(piece_max));
        match decoder.decode(&input[at..end]) {
            Err(reject) => return (data, trailers, None, Some(reject)),
            Ok(step) => {
                at += step.consumed;
                match step.event {
                    BodyEvent::Data(bytes) => data.extend_from_slice(bytes),
                    BodyEvent::Trailer(bytes) => trailers.extend_from_slice(bytes),
                    BodyEvent::More => assert_eq!(at, end),
                    BodyEvent::Done => return (data, trailers, Some(at), None),
                }
            }
        }
    }
    (data, trailers, None, None)
}

#[test]
fn the_body_decoder_takes_any_bytes_and_never_depends_on_the_split() {
    let mut prng = Prng::new(SEED + 4);
    let mut ends = 0;
    for _ in 0..ROUNDS {
        let mut input = Vec::new();
        for _ in 0..prng.below(6) {
            let piece = prng.pick(&[
                "1\r\na\r\n",
                "3;x\r\nabc\r\n",
                "0\r\n",
                "X: y\r\n",
                "\r\n",
                "0\r\n\r\n",
                "A\r\n",
            ]);
            input.extend_from_slice(piece.as_bytes());
        }
        for _ in 0..prng.below(3) {
            let at = prng.below(input.len() + 1);
            input.insert(at, b"\r\n0;: aF\0\xff"[prng.below(10)]);
        }
        let whole = decode(&mut prng, &input, usize::MAX / 2);
        assert_eq!(decode(&mut prng, &input, 1), whole, "\"{}\"", input.escape_ascii());
        assert_eq!(decode(&mut prng, &input, 4), whole, "\"{}\"", input.escape_ascii());
        ends += usize::from(whole.2.is_some());
    }
    assert!(ends > ROUNDS / 20, "only {ends} bodies were whole");
}

#[test]
fn chunk_sizes_are_read_as_httparse_reads_them() {
    let mut prng = Prng::new(SEED + 5);
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let mut line: Vec<u8> =
            (0..1 + prng.below(18)).map(|_| b"0123456789abcdefABCDEF"[prng.below(22)]).collect();
        if prng.one_in(3) {
            line.extend_from_slice(prng.pick(&[";a=b", " ;x", "\t", " ", "g", ";", ";\t\"\""]).as_bytes());
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
    let behind = line[digits..].strip_suffix(b"\r\n").expect("a whole line");
    let name = behind.trim_ascii_start().strip_prefix(b";").unwrap_or_default().trim_ascii_start();
    !behind.is_empty() && !name.first().is_some_and(u8::is_ascii_alphanumeric)
}

#[test]
fn every_known_name_is_found_in_any_case_and_no_other() {
    for &known in KnownField::all() {
        let name = known.name();
        assert_eq!(KnownField::from_name(name.as_bytes()), Some(known));
        assert_eq!(KnownField::from_name(name.to_ascii_lowercase().as_bytes()), Some(known));
        assert_eq!(KnownField::from_name(name.to_ascii_uppercase().as_bytes()), Some(known));
        for index in 0..name.len() {
            let mut other = name.as_bytes().to_vec();
            other[index] = b'_';
            assert_eq!(KnownField::from_name(&other), None, "{}", other.escape_ascii());
            assert_ne!(KnownField::from_name(&name.as_bytes()[..index]), Some(known));
        }
    }
}
