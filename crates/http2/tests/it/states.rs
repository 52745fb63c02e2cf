//! Frames and the states in which they may come (RFC 9113 5.1 and 6), and how streams and connections end.

use shearwater_http2::{
    ConnectionError, ErrorCode, PREFACE, ResponseHead, StreamError, StreamId, limits::Limits,
};

use crate::client::*;

const HEAD: &str = "GET / HTTP/2\nhost: a.test\n\n";

#[test]
fn serves_a_request_with_content_and_trailers() {
    let mut client = Client::new();
    let trailers = frame(HEADERS, WHOLE, 1, &block(&[("sum", "9")]));
    let padded = frame(DATA, PADDED, 1, b"\x02cd..");
    let seen = client.send(&[post(1, &[]), frame(DATA, 0, 1, b"ab"), padded, trailers].concat());
    let head = "POST /up HTTP/2\nhost: a.test\n\n".to_owned();
    let content = |text: &[u8]| Seen::Data(1, text.to_vec(), false);
    let expected = [
        Seen::Request(1, head, false),
        content(b"ab"),
        content(b"cd"),
        Seen::Trailers(1, "sum: 9\n".to_owned()),
    ];
    assert_eq!(seen, expected);
    client.respond(1);
    assert!(client.server.data(StreamId::new(1), b"hello", false, &mut client.out));
    assert!(client.server.trailers(StreamId::new(1), b"Sum: 1\r\n", &mut client.out));
    let frames: Vec<_> = client.frames().into_iter().map(|frame| (frame.kind, frame.flags)).collect();
    assert_eq!(frames, [(HEADERS, END_HEADERS), (DATA, 0), (HEADERS, WHOLE)]);
    assert_eq!(client.server.open_streams(), 0);
    assert!(!client.server.data(StreamId::new(1), b"late", true, &mut client.out) && client.out.is_empty());
}

#[test]
fn a_response_without_content_ends_with_its_head() {
    let mut client = Client::new();
    assert_eq!(client.send(&get(1)), [Seen::Request(1, HEAD.to_owned(), true)]);
    let interim = ResponseHead { status: 103, ..ResponseHead::default() };
    assert!(client.server.respond(StreamId::new(1), &interim, false, &mut client.out));
    client.respond_whole(1);
    let flags: Vec<_> = client.frames().into_iter().map(|frame| frame.flags).collect();
    assert_eq!(flags, [END_HEADERS, WHOLE]);
}

/// The rest of an upload isn't needed once its response is complete (RFC 9113 8.1).
#[test]
fn an_early_response_resets_without_an_error() {
    let mut client = Client::new();
    client.send(&post(1, &[]));
    client.respond_whole(1);
    let frames = client.frames();
    assert_eq!((frames[1].kind, &frames[1].payload[..]), (RESET, &[0, 0, 0, 0][..]));
    let late = [frame(DATA, 0, 1, b"ab"), frame(HEADERS, WHOLE, 1, &block(&[("a", "b")]))].concat();
    assert_eq!(client.send(&late), []);
}

#[test]
fn a_large_head_is_continued() {
    let mut client = Client::new();
    let whole = block(GET);
    let (first, rest) = whole.split_at(7);
    let (second, third) = rest.split_at(5);
    assert_eq!(client.send(&frame(HEADERS, END_STREAM, 1, first)), []);
    assert!(client.server.has_partial_head() && client.server.held_bytes() > 0);
    let rest = [frame(CONTINUATION, 0, 1, second), frame(CONTINUATION, END_HEADERS, 1, third)].concat();
    assert_eq!(client.send(&rest), [Seen::Request(1, HEAD.to_owned(), true)]);
}

#[test]
fn frames_in_a_wrong_state_end_the_connection() {
    let upload = post(1, &[]);
    let part = frame(HEADERS, 0, 1, b"");
    for (input, expected) in [
        (frame(DATA, 0, 1, b""), ConnectionError::IdleStream),
        (frame(DATA, 0, 0, b""), ConnectionError::StreamRequired),
        (frame(DATA, PADDED, 1, b""), ConnectionError::IdleStream),
        ([upload.clone(), frame(DATA, PADDED, 1, b"")].concat(), ConnectionError::FrameSize),
        ([upload.clone(), frame(DATA, PADDED, 1, b"\x02a")].concat(), ConnectionError::Padding),
        (reset(1, ErrorCode::Cancel), ConnectionError::IdleStream),
        (window_update(1, 1), ConnectionError::IdleStream),
        (window_update(2, 1), ConnectionError::IdleStream),
        (window_update(0, 0), ConnectionError::WindowIncrement),
        (window_update(0, (1 << 31) - 1), ConnectionError::WindowOverflow),
        (get(2), ConnectionError::StreamIdentifier),
        ([get(3), get(1)].concat(), ConnectionError::StreamIdentifier),
        (frame(HEADERS, WHOLE, 0, &block(GET)), ConnectionError::StreamRequired),
        (frame(HEADERS, WHOLE, 1, b"\x80"), ConnectionError::Compression),
        (frame(HEADERS, WHOLE | 0x20, 1, b"\0\0\0\x01\0"), ConnectionError::SelfDependency),
        (frame(PRIORITY, 0, 1, b"\0\0\0\x01\0"), ConnectionError::SelfDependency),
        (frame(PRIORITY, 0, 1, b"\0"), ConnectionError::FrameSize),
        (frame(PRIORITY, 0, 0, b"\0\0\0\x01\0"), ConnectionError::StreamRequired),
        (frame(RESET, 0, 1, b"\0"), ConnectionError::FrameSize),
        (frame(SETTINGS, 0, 1, b""), ConnectionError::StreamForbidden),
        (frame(SETTINGS, ACK, 0, b"\0\0\0\0\0\0"), ConnectionError::FrameSize),
        (settings(&[(2, 7)]), ConnectionError::SettingValue),
        (settings(&[(4, 1 << 31)]), ConnectionError::SettingWindow),
        (frame(PING, 0, 0, b"1234567"), ConnectionError::FrameSize),
        (frame(PING, 0, 1, b"12345678"), ConnectionError::StreamForbidden),
        (frame(GO_AWAY, 0, 0, b"1234567"), ConnectionError::FrameSize),
        (frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\0"), ConnectionError::PriorityUpdate),
        (frame(5, 0, 1, b"\0\0\0\x02"), ConnectionError::PushPromise),
        (frame(CONTINUATION, 0, 1, b""), ConnectionError::Continuation),
        ([part.clone(), frame(CONTINUATION, 0, 3, b"")].concat(), ConnectionError::Interleaved),
        ([part.clone(), frame(PING, 0, 0, b"12345678")].concat(), ConnectionError::Interleaved),
        ([part.clone(), frame(0xEE, 0, 0, b"")].concat(), ConnectionError::Interleaved),
        (vec![0, 0x40, 1, DATA, 0, 0, 0, 0, 1], ConnectionError::FrameTooLarge),
    ] {
        assert_eq!(Client::new().fail(&input), expected, "{}", input.escape_ascii());
    }
}

#[test]
fn a_connection_begins_with_preface_and_settings() {
    let request = b"GET / HTTP/1.1\r\n";
    for input in [&request[..], b"PRI * HTTP/2.0\r\n\r\nXX", &[&PREFACE[..], &get(1)].concat()] {
        assert_eq!(Client::raw(Limits::default()).fail(input), ConnectionError::BadPreface);
    }
    let ack = [&PREFACE[..], &frame(SETTINGS, ACK, 0, b"")].concat();
    assert_eq!(Client::raw(Limits::default()).fail(&ack), ConnectionError::BadPreface);
}

#[test]
fn frames_after_the_end_of_a_stream() {
    let mut client = Client::new();
    client.send(&[get(1), get(3)].concat());
    assert_eq!(client.send(&frame(DATA, 0, 1, b"x")), [Seen::Failed(1, StreamError::Ended)]);
    assert_eq!(client.send(&get(3)), [Seen::Failed(3, StreamError::Ended)]);
    assert_eq!(client.frames().into_iter().filter(|frame| frame.kind == RESET).count(), 2);
    client.send(&get(5));
    client.respond_whole(5);
    assert_eq!(client.send(&[window_update(5, 1), reset(5, ErrorCode::Cancel)].concat()), []);
    assert_eq!(client.send(&frame(DATA, 0, 5, b"x")), [Seen::Failed(5, StreamError::Ended)]);
    client.send(&get(7));
    client.respond_whole(7);
    client.frames();
    assert_eq!(client.fail(&get(7)), ConnectionError::ClosedStream);
}

#[test]
fn malformed_requests_reset_their_stream_only() {
    let mut client = Client::new();
    let upper = frame(HEADERS, WHOLE, 1, &block(&[GET, &[("A", "b")]].concat()));
    assert_eq!(client.send(&upper), [Seen::Failed(1, StreamError::UppercaseName)]);
    let long = [post(3, &[("content-length", "1")]), frame(DATA, 0, 3, b"ab")].concat();
    assert_eq!(client.send(&long)[1..], [Seen::Failed(3, StreamError::Length)]);
    let short = [post(5, &[("content-length", "3")]), frame(DATA, END_STREAM, 5, b"ab")].concat();
    assert_eq!(client.send(&short)[1..], [Seen::Failed(5, StreamError::Length)]);
    let open = [post(7, &[]), frame(HEADERS, END_HEADERS, 7, &block(&[("a", "b")]))].concat();
    assert_eq!(client.send(&open)[1..], [Seen::Failed(7, StreamError::TrailersWithoutEnd)]);
    let early = [post(9, &[("content-length", "3")]), frame(HEADERS, WHOLE, 9, b"")].concat();
    assert_eq!(client.send(&early)[1..], [Seen::Failed(9, StreamError::Length)]);
    assert_eq!(client.send(&get(11)), [Seen::Request(11, HEAD.to_owned(), true)]);
    assert_eq!(client.server.open_streams(), 1);
}

/// A list beyond the limit is decoded, so that later heads are the same.
#[test]
fn a_large_list_is_rejected_and_decoded() {
    let mut client = Client::new();
    let fields = [GET, &[("x", "y"); 101]].concat();
    let mut list = block(&fields);
    list.extend_from_slice(b"\x40\x05x-own\x01z");
    let error = shearwater_http1::ParseError::TooManyFields;
    assert_eq!(client.send(&frame(HEADERS, END_HEADERS, 1, &list)), [Seen::Rejected(1, error)]);
    assert_eq!(client.send(&frame(DATA, END_STREAM, 1, b"dropped")), []);
    client.respond_whole(1);
    let mut next = block(GET);
    next.push(0xBE);
    let head = "GET / HTTP/2\nhost: a.test\nx-own: z\n\n".to_owned();
    assert_eq!(client.send(&frame(HEADERS, WHOLE, 3, &next)), [Seen::Request(3, head, true)]);
}

#[test]
fn a_drain_serves_what_has_begun() {
    let mut client = Client::new();
    client.send(&get(1));
    client.server.drain(&mut client.out);
    let sent = client.frames();
    assert_eq!((sent[0].kind, &sent[0].payload[..4]), (GO_AWAY, &[0x7F, 0xFF, 0xFF, 0xFF][..]));
    assert_eq!(client.send(&get(3)).len(), 1);
    client.send(&frame(PING, ACK, 0, &sent[1].payload));
    let last = client.frames();
    assert_eq!((last[0].kind, &last[0].payload[..4]), (GO_AWAY, &[0, 0, 0, 3][..]));
    assert_eq!(client.send(&[post(5, &[]), frame(DATA, END_STREAM, 5, b"ignored")].concat()), []);
    assert!(!client.server.is_finished());
    client.respond_whole(1);
    client.respond_whole(3);
    assert!(client.server.is_finished());
}

#[test]
fn unknown_frames_and_settings_are_ignored() {
    let mut client = Client::new();
    let input =
        [frame(0xEE, 0xFF, 9, &[1; 300]), settings(&[(0xEE, 1)]), frame(GO_AWAY, 0, 0, &[0; 9]), get(1)];
    assert_eq!(client.send(&input.concat()).len(), 1);
    client.send(&frame(PING, 0, 0, b"12345678"));
    let kinds: Vec<_> = client.frames().into_iter().map(|frame| (frame.kind, frame.flags)).collect();
    assert_eq!(kinds, [(SETTINGS, ACK), (PING, ACK)]);
}

/// RFC 8441.
#[test]
fn an_extended_connect_is_a_request_if_it_is_enabled() {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "a.test"),
    ];
    let request = frame(HEADERS, END_HEADERS, 1, &block(&fields));
    let mut client = Client::new();
    assert!(matches!(client.send(&request)[..], [Seen::Request(1, _, false)]));
    assert_eq!((client.head.head().path(), client.head.head().host()), ("/chat", "a.test"));
    let mut client = Client::with(Limits { extended_connect: false, ..Limits::default() });
    assert_eq!(client.send(&request), [Seen::Failed(1, StreamError::Protocol)]);
}
