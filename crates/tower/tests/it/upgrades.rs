//! Connections that their clients want to speak something else on.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;

use crate::client::Answer;
use crate::served::{Served, drivers, here, runtime};
use crate::wire::Wire;

/// A WebSocket that says back what it is told, behind the client's address.
async fn echo(ConnectInfo(peer): ConnectInfo<SocketAddr>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async move |mut socket| {
        socket.send(Message::text(peer.to_string())).await.expect("the client is there");
        while let Some(Ok(message)) = socket.recv().await {
            if let Message::Text(text) = message {
                socket.send(Message::Text(text)).await.expect("the client is there");
            }
        }
    })
}

fn router() -> Router {
    Router::new().route("/ws", get(echo)).route("/", get(|| async { "served" }))
}

const HANDSHAKE: [&str; 4] = [
    "Connection: keep-alive, Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

fn shake_hands(wire: &mut Wire) -> Vec<u8> {
    wire.0.ask("GET", "/ws", &HANDSHAKE);
    let answer = wire.0.head();
    assert_eq!((answer.status, answer.field("upgrade")), (101, Some("websocket")), "{answer:?}");
    assert_eq!(answer.field("connection"), Some("upgrade"));
    assert_eq!(answer.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    message(wire)
}

/// Sends a text, masked with zeros.
fn say(wire: &mut Wire, text: &str) {
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    wire.0.send(frame);
}

/// Reads a text.
fn message(wire: &mut Wire) -> Vec<u8> {
    let head = wire.exactly(2);
    assert_eq!(head[0], 0x81, "a whole text");
    wire.exactly(usize::from(head[1]))
}

#[test]
fn axums_web_sockets_work_on_every_driver() {
    for driver in drivers() {
        let served = Served::of(here(router()).driver(driver).connect_info());
        let mut wire = served.wire();
        assert_eq!(wire.request("GET", "/", &[]).text(), "served", "an ordinary request goes before it");
        let own = wire.0.stream.get_ref().local_addr().expect("an address").to_string();
        assert_eq!(shake_hands(&mut wire), own.as_bytes());
        for number in 0..100 {
            let text = format!("said {number}");
            say(&mut wire, &text);
            assert_eq!(message(&mut wire), text.as_bytes());
        }
        assert_eq!(served.wire().request("GET", "/", &[]).text(), "served");
    }
}

#[test]
fn what_is_sent_behind_the_handshake_is_not_lost() {
    for driver in drivers() {
        let served = Served::of(here(router()).driver(driver).connect_info());
        let mut wire = served.wire();
        let fields: String = HANDSHAKE.iter().map(|field| format!("{field}\r\n")).collect();
        let mut all = format!("GET /ws HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes();
        all.extend_from_slice(&[0x81, 0x85, 0, 0, 0, 0]);
        all.extend_from_slice(b"early");
        wire.0.send(all);
        assert_eq!(wire.0.head().status, 101);
        message(&mut wire);
        assert_eq!(message(&mut wire), b"early");
    }
}

#[test]
fn who_is_not_upgraded_is_answered_all_the_same() {
    for driver in drivers() {
        let served = Served::of(here(router()).driver(driver));
        let mut client = served.connect();
        client.ask(
            "GET",
            "/",
            &["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
        );
        let answer = plain(&mut client);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("served"), "{answer}");
        client.is_ended();
    }
}

/// Reads an answer that hyper gives.
fn plain(client: &mut crate::client::Client) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"served") {
        let mut byte = [0];
        std::io::Read::read_exact(&mut client.stream, &mut byte).expect("an answer");
        answer.extend(byte);
    }
    String::from_utf8(answer).expect("ASCII")
}

#[test]
fn there_are_no_more_than_there_may_be() {
    let served = Served::of(here(router()).upgrades_max(2).connect_info());
    let mut first = served.wire();
    let mut second = served.wire();
    shake_hands(&mut first);
    shake_hands(&mut second);
    let mut third = served.wire();
    assert_eq!(third.request("GET", "/ws", &HANDSHAKE).status, 503);
    assert_eq!(third.request("GET", "/", &[]).status, 200);
    // Once one is gone there is room; when that is noticed is not the client's to say.
    drop(first);
    loop {
        let mut wire = served.wire();
        wire.0.ask("GET", "/ws", &HANDSHAKE);
        match wire.0.head() {
            Answer { status: 101, .. } => break,
            answer => assert_eq!(answer.status, 503),
        }
    }
    say(&mut second, "still here");
    assert_eq!(message(&mut second), b"still here");
}

#[test]
fn a_drain_does_not_wait_for_what_was_upgraded() {
    let running = here(router()).connect_info().start().expect("starts");
    let mut wire = Wire(crate::client::Client::connect(running.address()));
    shake_hands(&mut wire);
    running.drain();
    runtime().block_on(running.ended()).expect("ends by plan");
}

#[test]
fn a_body_is_no_obstacle_but_there_is_no_upgrade_with_one() {
    let router = Router::new().route("/", axum::routing::post(|body: String| async { body }));
    let served = Served::new(router);
    let answer = served.wire().send_body("/", &["Connection: upgrade", "Upgrade: other/1"], b"a body");
    assert_eq!((answer.status, answer.text()), (200, "a body"));
}
