//! Parsing doesn't allocate once a parser exists. A separate binary, because the counter replaces the
//! process's allocator.

use shearwater_http1::{
    BodyDecoder, BodyEvent, BodyLimits, HeadLimits, HeadParser, KnownField, Parsed, encode,
};
use testkit::CountingAllocator;

const ROUNDS: usize = 10_000;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const REQUEST: &[u8] =
    b"POST /upload?x=1 HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test\r\nAccept: */*\r\nX-Own: y\r\n\
    Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nT: u\r\n\r\n";

/// Parses one request in two pieces, uses it, writes a response. Returns the number of content bytes.
fn round(parser: &mut HeadParser, out: &mut Vec<u8>) -> usize {
    parser.reset();
    out.clear();
    assert_eq!(parser.parse(&REQUEST[..50]), Ok(Parsed::Partial));
    let Ok(Parsed::Complete { head_len }) = parser.parse(REQUEST) else { panic!("the request is whole") };
    let head = parser.head(REQUEST);
    assert_eq!(head.fields().count(), 6);
    assert_eq!((head.path(), head.host()), ("/upload", "example.org"));
    assert!(
        head.field(KnownField::Accept).is_some() && head.field_named("x-own").is_some() && head.keep_alive()
    );
    let mut body = BodyDecoder::new(head.framing(), BodyLimits::default());
    let (mut at, mut content) = (head_len, 0);
    loop {
        let step = body.decode(&REQUEST[at..]).expect("the body is valid");
        at += step.consumed;
        match step.event {
            BodyEvent::Data(data) => content += data.len(),
            BodyEvent::Trailer(_) => {}
            BodyEvent::More | BodyEvent::Done => break,
        }
    }
    assert_eq!(at, REQUEST.len());
    encode::status_line(out, 200);
    encode::content_length(out, content as u64);
    encode::field(out, "X-Own", b"z").expect("a good field");
    encode::end_of_head(out);
    content
}

#[test]
fn ten_thousand_requests_allocate_nothing() {
    let calls = || ALLOCATOR.on_this_thread().calls();
    let before = calls();
    let mut parser = HeadParser::new(HeadLimits::default());
    let mut out = Vec::with_capacity(1024);
    assert!(calls() > before, "the counter counts");
    round(&mut parser, &mut out);
    let warm = calls();
    let content: usize = (0..ROUNDS).map(|_| round(&mut parser, &mut out)).sum();
    assert_eq!(calls() - warm, 0);
    assert_eq!(content, 5 * ROUNDS);
}
