//! A thousand WebSockets at once, all open, each of which gets back what it sends.

use std::net::SocketAddr;
use std::time::Duration;

use super::websocket::WebSocket;

pub(super) const ABOUT: &str = "1,000 WebSockets of axum's, 10 messages on each";
const SOCKETS: usize = 1_000;
const ROUNDS: usize = 10;
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(address: SocketAddr) -> Result<String, String> {
    let said = |number: usize| move |error: std::io::Error| format!("WebSocket {number}: {error}");
    let open = |number| WebSocket::open(address, "/ws", PATIENCE).map_err(said(number));
    let mut sockets = (0..SOCKETS).map(open).collect::<Result<Vec<_>, _>>()?;
    let mut answered = 0;
    for round in 0..ROUNDS {
        let message = |number| format!("message {round} of WebSocket {number}");
        // All are sent before the first one is awaited.
        for (number, socket) in sockets.iter_mut().enumerate() {
            socket.send(&message(number)).map_err(said(number))?;
        }
        for (number, socket) in sockets.iter_mut().enumerate() {
            let (got, wanted) = (socket.receive().map_err(said(number))?, message(number));
            if got != wanted {
                return Err(format!("{got:?}, where {wanted:?} was sent"));
            }
            answered += 1;
        }
    }
    for (number, socket) in sockets.into_iter().enumerate() {
        socket.close().map_err(said(number))?;
    }
    Ok(format!("{answered} messages came back on {SOCKETS} connections"))
}
