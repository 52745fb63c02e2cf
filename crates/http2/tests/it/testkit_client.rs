//! Conversations with testkit's client, which shares no code with this crate.

use testkit::TestClient;
use testkit::http2::{Http2Client, Session, frame, request_fields};

use crate::echo::EchoServer;

/// Requests of a conversation, all in flight.
const REQUESTS: usize = 30;

fn content(number: usize) -> Vec<u8> {
    (0..number * 12_345).map(|at| (at / 7 + number) as u8).collect()
}

fn converse(settings: &[(u16, u32)]) {
    let mut client = Http2Client::with_settings(EchoServer::new(), settings).expect("a preface");
    let mut send = |number: usize| {
        let target = format!("/{number}");
        client.send("POST", &target, &[("x-number", "1")], &content(number)).expect("a request")
    };
    let streams: Vec<u32> = (0..REQUESTS).map(&mut send).collect();
    for (number, &stream) in streams.iter().enumerate().rev() {
        let response = client.response(stream).expect("a response");
        assert_eq!((response.status, response.field("X-Path")), (200, Some(&*format!("/{number}"))));
        assert!(response.body == content(number), "the content of {number}");
        assert_eq!(response.trailers, [("x-sum".to_owned(), "1".to_owned())]);
    }
}

#[test]
fn converses_with_the_client_of_testkit() {
    converse(&[]);
    converse(&[(frame::INITIAL_WINDOW_SIZE, 20_000), (frame::HEADER_TABLE_SIZE, 300)]);
    converse(&[
        (frame::INITIAL_WINDOW_SIZE, 1 << 20),
        (frame::HEADER_TABLE_SIZE, 0),
        (frame::MAX_FRAME_SIZE, 1 << 20),
    ]);
}

#[test]
fn streams_content_and_trailers_in_both_directions() {
    let mut client = Http2Client::new(EchoServer::new()).expect("a preface");
    let stream = client.session().begin(&request_fields("https", "POST", "/up", &[]));
    assert_eq!(client.head(stream).expect("a head").field("x-path"), Some("/up"));
    for piece in [&b"one"[..], b"two"] {
        client.session().send_data(stream, piece, false);
        assert_eq!(client.data(stream).expect("an echo"), piece);
    }
    client.session().send_trailers(stream, &[("x-sum", "1")]);
    assert_eq!(client.data(stream).expect("the end"), b"");
}

#[test]
fn content_waits_for_window_updates() {
    let mut client = Http2Client::new(EchoServer::new()).expect("a preface");
    client.session().stop_window_updates();
    let sent = content(6);
    let stream = client.send("POST", "/", &[], &sent).expect("a request");
    let mut received = Vec::new();
    while received.len() < 65_535 {
        received.extend(client.data(stream).expect("content within the window"));
    }
    assert_eq!(received.len(), 65_535);
    client.session().grant(0, 100_000);
    client.session().grant(stream, 100_000);
    while received.len() < sent.len() {
        received.extend(client.data(stream).expect("more content"));
    }
    assert!(received == sent, "all of it");
}

#[test]
fn reads_the_same_responses_in_any_pieces() {
    for piece_bytes in [1, 2, 3, 10, 100] {
        let (mut client, mut server) = (Session::new(&[]), EchoServer::new());
        let streams = [3, 1, 2].map(|number| client.send("POST", "/", &[], &content(number)));
        for _ in 0..10 {
            server.receive(&client.take_output());
            for piece in server.take_output().chunks(piece_bytes) {
                client.receive(piece).expect("a correct server");
            }
        }
        for (stream, number) in streams.into_iter().zip([3, 1, 2]) {
            let response = client.response(stream).expect("no reset").expect("all has arrived");
            assert!(response.body == content(number), "the content of {number}");
        }
    }
}

#[test]
fn a_test_client_reads_responses_in_the_order_of_its_requests() {
    let mut client = TestClient::over_http2(EchoServer::new());
    assert!(client.send_body("POST", "/", &["X-A: b", "Host: a.test"], &content(50)).body == content(50));
    client.ask("POST", "/1", &["Content-Length: 4"]).send("ab").send("cd").ask("GET", "/2", &[]);
    let (first, second) = (client.response("POST"), client.response("GET"));
    assert_eq!((first.field("X-Path"), first.text()), (Some("/1"), "abcd"));
    assert_eq!((second.field("X-Path"), second.text()), (Some("/2"), ""));
    client.ask_chunked("POST", "/3", &[]);
    assert_eq!(client.head().status, 200);
    assert_eq!(client.chunk("one").data(), b"one");
    assert_eq!(client.chunk("two").chunk("three").data(), b"two");
    assert_eq!(client.last_chunk(&["X-Sum: 1"]).body(), b"three");
    assert_eq!(client.closing(), None);
}
