//! Coroutines: streamed bodies in both directions, sleeping, offloaded work.
use std::time::Duration;

use shearwater::{App, CoroutineCall, Gone, Offloaded, Server};

fn main() -> Result<(), shearwater::Error> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    Server::new(listen).run_app(app())
}

pub(crate) fn app() -> App {
    let mut app = App::new();
    app.post_coroutine("/lines", lines).read();
    app.get_coroutine("/slow", slow);
    app.get_coroutine("/primes", primes);
    app.get_coroutine("/ticks", ticks);
    app
}

/// Holds one piece of the body in memory at a time.
fn lines(line: &mut CoroutineCall) {
    let mut count = 0;
    while let Some(piece) = line.read() {
        count += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    line.response().text(&format!("{count} lines\n"));
}

/// The worker serves other requests while it sleeps.
fn slow(line: &mut CoroutineCall) {
    line.sleep(Duration::from_millis(100));
    line.response().text("slow\n");
}

/// Long computations and blocking calls run on another thread.
fn primes(line: &mut CoroutineCall) -> Result<(), Offloaded> {
    let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let count = line.offload(move || (2..100_000).filter(is_prime).count())?;
    line.response().text(&format!("{count} primes below 100000\n"));
    Ok(())
}

/// Streams server-sent events, with backpressure from slow clients.
fn ticks(line: &mut CoroutineCall) -> Result<(), Gone> {
    line.response().content_type("text/event-stream").field("Cache-Control", "no-store");
    for tick in 1..=3 {
        line.send(format!("data: {tick}\n\n").as_bytes())?;
        line.sleep(Duration::from_millis(100));
    }
    Ok(())
}
