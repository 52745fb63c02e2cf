//! An axum app with long requests for `cargo lab lasting`: endless events, streamed uploads of any length, and
//! WebSocket echoes.
//!
//! Environment: `LASTING_LISTEN` (127.0.0.1:3000), `LASTING_DRIVER` (auto, epoll, uring), `LASTING_EVERY_MS` (1000:
//! interval of events).

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::Response;
use axum::response::sse::{Event, Sse};
use axum::routing::{any, get, post};
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use shearwater::{DriverChoice, Error};

/// Maximum length of an upload in bytes.
const UPLOAD_BYTES_MAX: u64 = 16 << 30;

fn main() -> Result<(), Error> {
    let setting = |name: &str| std::env::var(name).ok();
    let listen = setting("LASTING_LISTEN").unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let driver = match setting("LASTING_DRIVER").as_deref() {
        Some("epoll") => DriverChoice::Epoll,
        Some("uring") => DriverChoice::Uring,
        Some(_) | None => DriverChoice::Auto,
    };
    let every_ms = setting("LASTING_EVERY_MS").and_then(|ms| ms.parse().ok()).unwrap_or(1000);
    let every = Duration::from_millis(every_ms);
    let router = Router::new()
        .route("/events", get(async move || Sse::new(events(every))))
        .route("/upload", post(upload))
        .route("/ws", any(async |upgrade: WebSocketUpgrade| -> Response { upgrade.on_upgrade(echo) }));
    shearwater_tower::bind(listen, router).workers(1).driver(driver).body_bytes_max(UPLOAD_BYTES_MAX).run()
}

/// Streams a number at each interval.
fn events(every: Duration) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(0_u64, move |number| async move {
        tokio::time::sleep(every).await;
        Some((Ok(Event::default().data(number.to_string())), number + 1))
    })
}

/// Reads an upload without keeping it; returns its length and the sum of its bytes.
async fn upload(body: Body) -> Result<String, StatusCode> {
    let mut pieces = body.into_data_stream();
    let (mut bytes, mut sum) = (0_u64, 0_u64);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| StatusCode::BAD_REQUEST)?;
        bytes += piece.len() as u64;
        sum = piece.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)));
    }
    Ok(format!("upload bytes={bytes} sum={sum}"))
}

/// Echoes texts until the client closes; the next receive then sends the close frame.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, Message::Text(_)) && socket.send(message).await.is_err() {
            return;
        }
    }
}
