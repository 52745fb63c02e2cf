//! Flow control in both directions (RFC 9113 5.2 and 6.9), and the order of content (RFC 9218).

use shearwater_http2::limits::{DATA_BYTES_MAX, Limits};
use shearwater_http2::{ConnectionError, ErrorCode, StreamError, StreamId};

use crate::client::*;

const FRAME: usize = 16 * 1024;

#[test]
fn a_client_sends_as_much_as_was_consumed() {
    let mut client = Client::new();
    client.send(&post(1, &[]));
    let full = frame(DATA, 0, 1, &vec![7; FRAME]);
    (0..4).for_each(|_| _ = client.send(&full));
    assert_eq!(client.frames(), [], "nothing was consumed");
    client.consume(1, 32 * 1024 - 1);
    assert_eq!(client.frames(), []);
    client.consume(1, 1);
    let updates = client.frames();
    assert_eq!(
        (updates[0].kind, updates[0].stream, &updates[0].payload[..]),
        (WINDOW_UPDATE, 1, &[0, 0, 0x80, 0][..])
    );
    (0..2).for_each(|_| _ = client.send(&full));
    let beyond = frame(DATA, 0, 1, b"x");
    assert_eq!(client.send(&beyond), [Seen::Failed(1, StreamError::WindowExceeded)]);
    assert_eq!(client.frames().last().map(|frame| frame.payload.clone()), Some(vec![0, 0, 0, 3]));
}

/// Content of a stream that is closed doesn't use up the connection's window.
#[test]
fn a_closed_stream_returns_its_content() {
    let mut client = Client::new();
    let mut updates = 0;
    for number in 0..100 {
        let stream = 2 * number + 1;
        client.server.begin_turn(u64::from(number) * 1000);
        client.send(&[post(stream, &[]), frame(DATA, 0, stream, &vec![7; FRAME])].concat());
        client.send(&reset(stream, ErrorCode::Cancel));
        updates += client.frames().iter().filter(|frame| frame.kind == WINDOW_UPDATE).count();
        client.consume(stream, FRAME);
    }
    assert_eq!(updates, 100 * FRAME / (512 * 1024));
}

#[test]
fn padding_is_credited_at_once() {
    let mut client = Client::new();
    client.send(&post(1, &[]));
    for _ in 0..10_000 {
        client.send(&frame(DATA, PADDED, 1, &[&[200][..], b"x", &[0; 200]].concat()));
        client.consume(1, 1);
    }
}

#[test]
fn the_connection_has_a_window_too() {
    let limits =
        Limits { stream_window_bytes: 1 << 20, connection_window_bytes: 65_535, ..Limits::default() };
    let mut client = Client::with(limits);
    client.send(&post(1, &[]));
    (0..3).for_each(|_| _ = client.send(&frame(DATA, 0, 1, &vec![7; FRAME])));
    assert_eq!(client.fail(&frame(DATA, 0, 1, &vec![7; FRAME])), ConnectionError::WindowExceeded);
}

#[test]
fn content_is_sent_within_both_windows() {
    let mut client = Client::new();
    client.send(&[get(1), get(3)].concat());
    client.respond(1);
    client.respond(3);
    let (one, three) = (StreamId::new(1), StreamId::new(3));
    client.server.set_available(one, 1 << 20);
    assert_eq!(client.server.next_data(usize::MAX), Some((one, DATA_BYTES_MAX)));
    assert_eq!(client.server.next_data(100), Some((one, 100)));
    assert!(client.server.data(one, &vec![7; 65_535], false, &mut client.out));
    assert_eq!((client.server.sendable(one), client.server.next_data(usize::MAX)), (0, None));
    client.send(&window_update(0, 10));
    assert_eq!(client.server.next_data(usize::MAX), None, "the stream has no window");
    client.server.set_available(three, 5);
    assert_eq!(client.server.next_data(usize::MAX), Some((three, 5)));
    client.send(&window_update(1, 7));
    client.server.set_available(three, 0);
    assert_eq!(client.server.next_data(usize::MAX), Some((one, 7)));
    // A smaller initial window makes windows negative (RFC 9113 6.9.2).
    client.send(&settings(&[(4, 65_535 - 100)]));
    assert_eq!(client.server.next_data(usize::MAX), None);
    client.send(&window_update(1, 93 + 4));
    assert_eq!(client.server.next_data(usize::MAX), Some((one, 4)));
    assert_eq!(client.send(&window_update(3, (1 << 31) - 1)), [Seen::Failed(3, StreamError::WindowOverflow)]);
    client.send(&[get(5), window_update(5, 1)].concat());
    assert_eq!(client.fail(&settings(&[(4, (1 << 31) - 1)])), ConnectionError::WindowOverflow);
}

#[test]
fn priorities_are_those_of_fields_and_updates() {
    let mut client = Client::new();
    let with = |stream, value| frame(HEADERS, WHOLE, stream, &block(&[GET, &[("priority", value)]].concat()));
    client.send(&[get(1), with(3, "u=1"), with(5, "u=7")].concat());
    for stream in [1, 3, 5] {
        client.respond(stream);
        client.server.set_available(StreamId::new(stream), 10);
    }
    let next = |client: &Client| client.server.next_data(100).map(|(stream, _)| stream.number());
    assert_eq!(next(&client), Some(3));
    client.send(&frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x05u=0"));
    assert_eq!(next(&client), Some(5));
}
