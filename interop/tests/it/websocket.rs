//! A chat over WebSocket: axum's extractor, a broadcast, an echo, and requests that are no upgrade.

use std::net::TcpStream;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Path, State};
use axum::response::Response;
use axum::routing::get;
use tokio::sync::broadcast;
use tungstenite::{Message as Sent, WebSocket as CoroutineCall};

use crate::serve::{Served, serve};

const MESSAGES_MAX: usize = 64;
const LARGE_BYTES: usize = 1024 * 1024;
const WAIT_MAX: Duration = Duration::from_secs(20);

type Room = broadcast::Sender<String>;

async fn join(upgrade: WebSocketUpgrade, State(room): State<Room>, Path(name): Path<String>) -> Response {
    upgrade.on_upgrade(async move |line| chat(line, &room, &name).await)
}

/// Relays messages between a client and the room until either side ends.
async fn chat(mut line: WebSocket, room: &Room, name: &str) {
    let mut heard = room.subscribe();
    drop(room.send(format!("{name} is here")));
    loop {
        tokio::select! {
            said = line.recv() => match said {
                Some(Ok(Message::Text(text))) => drop(room.send(format!("{name}: {text}"))),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
            },
            told = heard.recv() => match told {
                Ok(text) => if line.send(Message::Text(text.into())).await.is_err() { break },
                Err(_) => break,
            },
        }
    }
    drop(room.send(format!("{name} is gone")));
}

async fn echo(upgrade: WebSocketUpgrade, ConnectInfo(peer): ConnectInfo<std::net::SocketAddr>) -> Response {
    upgrade.protocols(["echo.v2", "echo.v1"]).on_upgrade(async move |mut line| {
        drop(line.send(Message::Text(peer.to_string().into())).await);
        while let Some(Ok(message)) = line.recv().await {
            if matches!(message, Message::Text(_) | Message::Binary(_)) && line.send(message).await.is_err() {
                return;
            }
        }
    })
}

fn served() -> Served {
    let app = Router::new()
        .route("/chat/{name}", get(join))
        .route("/echo", get(echo))
        .with_state(Room::new(MESSAGES_MAX));
    serve(app)
}

fn connect(server: &Served, path: &str) -> CoroutineCall<TcpStream> {
    let stream = TcpStream::connect(server.addr).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
    tungstenite::client(format!("ws://test{path}"), stream).unwrap().0
}

fn text(line: &mut CoroutineCall<TcpStream>) -> String {
    line.read().unwrap().into_text().unwrap().to_string()
}

#[test]
fn broadcasts_messages() {
    let server = served();
    let mut ada = connect(&server, "/chat/ada");
    assert_eq!(text(&mut ada), "ada is here");
    let mut ben = connect(&server, "/chat/ben");
    assert_eq!(text(&mut ben), "ben is here");
    assert_eq!(text(&mut ada), "ben is here");

    ada.send(Sent::text("ahoy")).unwrap();
    assert_eq!((text(&mut ada), text(&mut ben)), ("ada: ahoy".to_owned(), "ada: ahoy".to_owned()));

    ben.close(None).unwrap();
    assert_eq!(text(&mut ada), "ben is gone");
}

/// Drops the socket without a closing handshake.
#[test]
fn notices_a_dropped_client() {
    let server = served();
    let mut ada = connect(&server, "/chat/ada");
    assert_eq!(text(&mut ada), "ada is here");
    let ben = connect(&server, "/chat/ben");
    assert_eq!(text(&mut ada), "ben is here");
    drop(ben);
    assert_eq!(text(&mut ada), "ben is gone");
}

#[test]
fn echoes_messages() {
    let server = served();
    let mut line = connect(&server, "/echo");
    let local = line.get_ref().local_addr().unwrap();
    assert_eq!(text(&mut line), local.to_string(), "the peer's address is known behind an upgrade");
    let large: Vec<u8> = (0..LARGE_BYTES).map(|at| u8::try_from(at % 249).unwrap()).collect();
    for message in [Sent::text("ähoy"), Sent::binary(large), Sent::text("")] {
        line.send(message.clone()).unwrap();
        assert!(line.read().unwrap() == message, "an echo differs");
    }
    line.send(Sent::Ping("are you there".into())).unwrap();
    assert_eq!(line.read().unwrap(), Sent::Pong("are you there".into()));
}

/// Keeps bytes that the client sends before it has the `101`.
#[test]
fn reads_a_message_sent_with_the_handshake() {
    let server = served();
    let mut client = server.connect();
    let head = "GET /echo HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                Sec-WebSocket-Protocol: echo.v1\r\n\r\n";
    // "hi" as a masked text frame; a mask of zeros leaves it as it is.
    let frame = [0x81, 0x82, 0, 0, 0, 0, b'h', b'i'];
    client.send([head.as_bytes(), &frame].concat());

    let response = client.response("GET");
    assert_eq!(response.status, 101);
    assert_eq!(response.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(response.field("sec-websocket-protocol"), Some("echo.v1"));
    assert!(response.field("upgrade").is_some_and(|to| to.eq_ignore_ascii_case("websocket")));
    let greeting = client.exactly(2);
    client.exactly(usize::from(greeting[1]));
    assert_eq!(client.exactly(4), [0x81, 2, b'h', b'i']);
}

#[test]
fn rejects_a_plain_request_to_an_upgrade() {
    let server = served();
    let mut client = server.connect();
    let refused = client.get("/echo").status;
    assert!((400..500).contains(&refused), "{refused}");
    assert_eq!(server.get("/missing").status, 404);
}

/// The handshake may be the second request of its connection.
#[test]
fn upgrades_after_another_request() {
    let server = served();
    let mut client = server.connect();
    assert_eq!(client.get("/missing").status, 404);
    let stream = client.stream().try_clone().unwrap();
    let (mut line, response) = tungstenite::client("ws://test/echo", stream).unwrap();
    assert_eq!(response.status(), 101);
    text(&mut line);
    line.send(Sent::text("second")).unwrap();
    assert_eq!(text(&mut line), "second");
}
