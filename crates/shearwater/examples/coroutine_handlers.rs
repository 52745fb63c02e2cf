//! Coroutines, straight-line code that waits: they take a body as it comes, sleep, have what blocks done elsewhere, and stream.
//! `cargo run --release --example coroutine_handlers`, then `curl --data-binary @Cargo.toml http://127.0.0.1:8080/lines` and
//! `curl -N http://127.0.0.1:8080/ticks`.
use std::time::Duration;

use shearwater::{App, Gone, Line, Offloaded, Server};

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

/// However large the body is, there is no more of it in memory than a piece.
fn lines(line: &mut Line) {
    let mut count = 0;
    while let Some(piece) = line.read() {
        count += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    line.response().text(&format!("{count} lines\n"));
}

/// Others of its worker are served while it sleeps.
fn slow(line: &mut Line) {
    line.sleep(Duration::from_millis(100));
    line.response().text("slow\n");
}

/// What computes for long, or blocks, has a thread of its own.
fn primes(line: &mut Line) -> Result<(), Offloaded> {
    let is_prime = |number: &u32| (2..*number).take_while(|d| d * d <= *number).all(|d| number % d != 0);
    let count = line.offload(move || (2..100_000).filter(is_prime).count())?;
    line.response().text(&format!("{count} primes below 100000\n"));
    Ok(())
}

/// Server-sent events. A client that reads slowly is waited for.
fn ticks(line: &mut Line) -> Result<(), Gone> {
    line.response().content_type("text/event-stream").field("Cache-Control", "no-store");
    for tick in 1..=3 {
        line.send(format!("data: {tick}\n\n").as_bytes())?;
        line.sleep(Duration::from_millis(100));
    }
    Ok(())
}
