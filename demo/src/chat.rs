//! `/ws`: a chat room over WebSocket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::serve::{Stop, Watch};

/// Number of messages a guest may fall behind before some are skipped.
const BEHIND_MAX: usize = 256;
/// Maximum length of a message in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The room shared by all guests.
#[derive(Clone)]
pub(crate) struct Room {
    said: Sender<Utf8Bytes>,
    guests: Arc<AtomicU64>,
}

impl Default for Room {
    fn default() -> Self {
        Self { said: broadcast::channel(BEHIND_MAX).0, guests: Arc::default() }
    }
}

impl Room {
    fn say(&self, text: String) {
        // Fails if the room is empty.
        drop(self.said.send(text.into()));
    }
}

pub(crate) async fn join(
    upgrade: WebSocketUpgrade,
    State(room): State<Room>,
    State(stop): State<Stop>,
) -> Response {
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    let stop = stop.watch();
    upgrade.on_upgrade(async move |line| {
        let name = format!("guest {}", room.guests.fetch_add(1, Ordering::Relaxed) + 1);
        let heard = room.said.subscribe();
        room.say(format!("{name} is here"));
        visit(line, &room, stop, heard, &name).await;
        room.say(format!("{name} is gone"));
    })
}

/// Serves a guest until it leaves or the server ends.
async fn visit(
    mut line: WebSocket,
    room: &Room,
    mut stop: Watch,
    mut heard: Receiver<Utf8Bytes>,
    name: &str,
) {
    loop {
        let message = tokio::select! {
            said = line.recv() => match said {
                Some(Ok(Message::Text(text))) => { room.say(format!("{name}: {text}")); continue; }
                Some(Ok(Message::Binary(bytes))) => refuse(&bytes),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            },
            heard = heard.recv() => match received(heard) {
                Some(message) => message,
                None => return,
            },
            () = stop.requested() => farewell(),
        };
        let last = matches!(message, Message::Close(_));
        if line.send(message).await.is_err() || last {
            return;
        }
    }
}

/// Returns the message for what a guest received; `None` once the room is closed.
fn received(heard: Result<Utf8Bytes, RecvError>) -> Option<Message> {
    match heard {
        Ok(text) => Some(Message::Text(text)),
        Err(RecvError::Lagged(missed)) => {
            Some(Message::Text(format!("{missed} messages were missed").into()))
        }
        Err(RecvError::Closed) => None,
    }
}

fn refuse(bytes: &Bytes) -> Message {
    let reason = format!("{} bytes that are no text", bytes.len()).into();
    Message::Close(Some(CloseFrame { code: close_code::UNSUPPORTED, reason }))
}

fn farewell() -> Message {
    Message::Close(Some(CloseFrame { code: close_code::AWAY, reason: "the server ends".into() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drops the oldest messages for a slow guest.
    #[test]
    fn skips_messages_for_a_slow_guest() {
        let room = Room::default();
        let mut heard = room.said.subscribe();
        for number in 0..BEHIND_MAX + 3 {
            room.say(number.to_string());
        }
        let missed = received(heard.blocking_recv());
        assert_eq!(missed, Some(Message::Text("3 messages were missed".into())));
        assert_eq!(received(heard.blocking_recv()), Some(Message::Text("3".into())));
    }
}
