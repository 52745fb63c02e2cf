//! WebSocket: axum's extractor and tungstenite's client. The tests of `demo` have a chat.

use std::net::TcpStream;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use tungstenite::{ClientRequestBuilder, Message as Sent, WebSocket};

use crate::serve::serve;

const LARGE_BYTES: usize = 1024 * 1024;

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

fn text(line: &mut WebSocket<TcpStream>) -> String {
    line.read().unwrap().into_text().unwrap().to_string()
}

/// The handshake may be the second request of its connection.
#[test]
fn echoes_messages_after_another_request() {
    if testkit::http2::skips("tungstenite's client has HTTP/1 alone") {
        return;
    }
    for server in serve(|| Router::new().route("/echo", get(echo))) {
        let mut client = server.connect();
        assert_eq!(client.get("/missing").status, 404);
        let stream = client.stream().try_clone().unwrap();
        let local = stream.local_addr().unwrap();
        let request =
            ClientRequestBuilder::new("ws://test/echo".parse().unwrap()).with_sub_protocol("echo.v1");
        let (mut line, response) = tungstenite::client(request, stream).unwrap();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-protocol"], "echo.v1");
        assert_eq!(text(&mut line), local.to_string(), "the peer's address is known behind an upgrade");

        let large: Vec<u8> = (0..LARGE_BYTES).map(|at| u8::try_from(at % 249).unwrap()).collect();
        for message in [Sent::text("ähoy"), Sent::binary(large), Sent::text("")] {
            line.send(message.clone()).unwrap();
            assert!(line.read().unwrap() == message, "an echo differs");
        }
        line.send(Sent::Ping("are you there".into())).unwrap();
        assert_eq!(line.read().unwrap(), Sent::Pong("are you there".into()));
    }
}
