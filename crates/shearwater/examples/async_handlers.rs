//! Async handlers: streamed bodies in both directions, sleeping, offloaded work. `cargo run --release --example
//! async_handlers`,
use std::time::Duration;

use shearwater::{
    App, Call, Failure, Gone, Head, Reading, Sent, Server, get, later, later_reading, offload, post,
};

fn main() -> Result<(), shearwater::Error> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    Server::bind(listen).run(app())
}

pub(crate) fn app() -> App {
    App::new()
        .route("/lines", post(later_reading(lines)))
        .route("/slow", get(later(slow)))
        .route("/primes", get(later(primes)))
        .route("/ticks", get(later(ticks)).timeout(Duration::from_secs(30)))
}

/// Holds one piece of the body in memory at a time.
async fn lines(call: &mut Call<(), Reading>) -> String {
    let mut count = 0;
    while let Some(piece) = call.read().await {
        count += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    format!("{count} lines\n")
}

/// The worker serves other requests while it sleeps.
async fn slow(call: &mut Call) -> &'static str {
    call.sleep(Duration::from_millis(100)).await;
    "slow\n"
}

/// Long computations and blocking calls run on another thread.
async fn primes(_: &mut Call) -> Result<String, Failure> {
    let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let count = offload(move || (2..100_000).filter(is_prime).count()).await?;
    Ok(format!("{count} primes below 100000\n"))
}

/// Streams server-sent events, with backpressure from slow clients.
async fn ticks(call: &mut Call) -> Result<Sent, Gone> {
    let mut body = call.begin(Head::ok("text/event-stream").field("Cache-Control", "no-store"));
    for tick in 1..=3 {
        body.send(format!("data: {tick}\n\n")).await?;
        body.sleep(Duration::from_millis(100)).await;
    }
    Ok(body.end())
}
