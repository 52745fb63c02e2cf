//! One more client while `wrk` loads the server: ten requests a second on a connection of its own.
//!
//! `wrk` counts a timeout when a late answer comes at last: an answer that never comes within its time is no error to it, and a
//! server that stands still at the end of a phase looks well. This client waits.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::harness::answer::Fault;
use crate::harness::client::{Client, request};

/// From one request to the next, unless the answer takes longer.
const EVERY: Duration = Duration::from_millis(100);

/// What it has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Right answers.
    pub(super) answers: u64,
    /// The slowest of them.
    pub(super) slowest: Duration,
    /// The first thing that went wrong; it has left then.
    pub(super) wrong: Option<Fault>,
}

/// Does `work` while it asks `address` for `/`, and expects `body`.
pub(super) fn beside<T>(address: SocketAddr, body: &[u8], work: impl FnOnce() -> T) -> (T, Seen) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            let mut seen = Seen::default();
            seen.wrong = ask(address, body, &stop, &mut seen).err();
            seen
        });
        let done = work();
        stop.store(true, Ordering::Relaxed);
        let panicked =
            || Seen { wrong: Some(Fault::Socket("its thread panicked".to_owned())), ..Seen::default() };
        (done, bystander.join().unwrap_or_else(|_| panicked()))
    })
}

/// Asks until it is told to stop: as often as fits into the phase.
fn ask(address: SocketAddr, body: &[u8], stop: &AtomicBool, seen: &mut Seen) -> Result<(), Fault> {
    let bytes = request("GET", "/");
    let mut client = Client::open(address)?;
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let answer = client.exchange(&bytes, false)?;
        if answer.head.status != 200 || answer.body != body {
            return Err(Fault::Malformed(answer.head.text));
        }
        let took = begun.elapsed();
        seen.answers += 1;
        seen.slowest = seen.slowest.max(took);
        std::thread::sleep(EVERY.saturating_sub(took));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};

    use super::beside;

    /// More than the client asks for before it is told to stop.
    const ANSWERS_MAX: usize = 64;

    /// A server that answers each request with the same bytes; without any it closes.
    fn seen_of(answer: &'static str) -> super::Seen {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (answered, done) = std::sync::mpsc::sync_channel(ANSWERS_MAX);
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            let mut buffer = [0; 1024];
            while stream.read(&mut buffer)? > 0 && !answer.is_empty() {
                stream.write_all(answer.as_bytes())?;
                // Nobody waits any more: the client has stopped after this one.
                let _ = answered.send(());
            }
            Ok::<(), std::io::Error>(())
        });
        beside(address, b"ok", || done.recv().is_ok()).1
    }

    #[test]
    fn it_counts_right_answers_and_tells_of_wrong_ones() {
        let seen = seen_of("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        assert!(seen.answers >= 1 && seen.wrong.is_none(), "{seen:?}");
        for bad in [
            "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
            "",
        ] {
            let seen = seen_of(bad);
            assert_eq!(seen.answers, 0, "{bad}");
            assert!(seen.wrong.is_some(), "{bad}");
        }
    }
}
