//! Async handlers: streamed bodies in both directions, sleeping, offloaded work. `cargo run --release --example
//! async_handlers`,
use std::time::Duration;

use shearwater::{App, Call, Gone, Offloaded, Server, offload};

fn main() -> Result<(), shearwater::Error> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    Server::new(listen).run_app(app())
}

pub(crate) fn app() -> App {
    let mut app = App::new();
    app.post_async("/lines", lines).read();
    app.get_async("/slow", slow);
    app.get_async("/primes", primes);
    app.get_async("/ticks", ticks);
    app
}

/// Holds one piece of the body in memory at a time.
async fn lines(call: &mut Call) {
    let mut count = 0;
    while let Some(piece) = call.read().await {
        count += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    call.response().text(&format!("{count} lines\n"));
}

/// The worker serves other requests while it sleeps.
async fn slow(call: &mut Call) {
    call.sleep(Duration::from_millis(100)).await;
    call.response().text("slow\n");
}

/// Long computations and blocking calls run on another thread.
async fn primes(call: &mut Call) -> Result<(), Offloaded> {
    let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let count = offload(move || (2..100_000).filter(is_prime).count()).await?;
    call.response().text(&format!("{count} primes below 100000\n"));
    Ok(())
}

/// Streams server-sent events, with backpressure from slow clients.
async fn ticks(call: &mut Call) -> Result<(), Gone> {
    call.response().content_type("text/event-stream").field("Cache-Control", "no-store");
    for tick in 1..=3 {
        call.send(format!("data: {tick}\n\n").as_bytes()).await?;
        call.sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
