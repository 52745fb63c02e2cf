//! Coroutines: streamed bodies in both directions, sleeping, offloaded work.
use std::time::Duration;

use shearwater::{App, Failure, Gone, Head, Line, Reading, Sent, Server, get, line, line_reading, post};

fn main() -> Result<(), shearwater::Error> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    Server::bind(listen).run(app())
}

pub(crate) fn app() -> App {
    App::new()
        .route("/lines", post(line_reading(lines)))
        .route("/slow", get(line(slow)))
        .route("/primes", get(line(primes)))
        .route("/ticks", get(line(ticks)).timeout(Duration::from_secs(30)))
}

/// Holds one piece of the body in memory at a time.
fn lines(line: &mut Line<(), Reading>) -> String {
    let mut count = 0;
    while let Some(piece) = line.read() {
        count += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    format!("{count} lines\n")
}

/// The worker serves other requests while it sleeps.
fn slow(line: &mut Line) -> &'static str {
    line.sleep(Duration::from_millis(100));
    "slow\n"
}

/// Long computations and blocking calls run on another thread.
fn primes(line: &mut Line) -> Result<String, Failure> {
    let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let count = line.offload(move || (2..100_000).filter(is_prime).count())?;
    Ok(format!("{count} primes below 100000\n"))
}

/// Streams server-sent events, with backpressure from slow clients.
fn ticks(line: &mut Line) -> Result<Sent, Gone> {
    let mut body = line.begin(Head::ok("text/event-stream").field("Cache-Control", "no-store"));
    for tick in 1..=3 {
        body.send(format!("data: {tick}\n\n"))?;
        body.sleep(Duration::from_millis(100));
    }
    Ok(body.end())
}
