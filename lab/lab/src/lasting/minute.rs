//! Events of axum's on many connections, for a minute of real time: each connection gets all of them, in order.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub(super) const ABOUT: &str = "events of axum's, a minute on 100 connections";
/// Between two events.
pub(super) const EVERY_MS: u64 = 200;
const CONNECTIONS: usize = 100;
const DURATION: Duration = Duration::from_secs(60);
/// Nothing for so long is an end.
const PATIENCE: Duration = Duration::from_secs(5);
/// What may be missing of the events that a minute has room for, for the timer's own delay: one in ten.
const EVENTS_MIN: u64 = DURATION.as_millis() as u64 / EVERY_MS * 9 / 10;

pub(super) fn run(address: SocketAddr) -> Result<String, String> {
    let watch = |number| {
        std::thread::spawn(move || watch(address).map_err(|error| format!("connection {number}: {error}")))
    };
    let watched: Vec<_> = (0..CONNECTIONS).map(watch).collect();
    let mut least = u64::MAX;
    for thread in watched {
        least = least.min(thread.join().map_err(|_| "a client panicked")??);
    }
    match least {
        EVENTS_MIN.. => Ok(format!("{least} events at least on each")),
        _ => Err(format!("{least} events on one of them, {EVENTS_MIN} have to come")),
    }
}

/// How many events came on a connection, all in order.
fn watch(address: SocketAddr) -> Result<u64, String> {
    let say = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).map_err(say)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(say)?;
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: lab\r\n\r\n").map_err(say)?;
    let end = Instant::now() + DURATION;
    let (mut received, mut events) = (Vec::new(), 0);
    let mut buffer = [0; 4096];
    while Instant::now() < end {
        let length = stream.read(&mut buffer).map_err(say)?;
        if length == 0 {
            return Err(format!("closed after {events} events"));
        }
        received.extend_from_slice(&buffer[..length]);
        events = take(&mut received, events)?;
    }
    Ok(events)
}

/// Takes whole events off what has come; how many there were in all.
fn take(received: &mut Vec<u8>, mut events: u64) -> Result<u64, String> {
    const END: &[u8] = b"\n\n";
    while let Some(end) = received.windows(END.len()).position(|at| at == END) {
        let event = String::from_utf8_lossy(&received[..end]).into_owned();
        received.drain(..end + END.len());
        // Before it stands what frames it: the head, the size of its chunk.
        let number = event.rsplit_once("data: ").and_then(|(_, number)| number.parse::<u64>().ok());
        if number != Some(events) {
            return Err(format!("event {event:?} where {events} was due"));
        }
        events += 1;
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn events_are_taken_whole_and_in_order() {
        let mut received = b"HTTP/1.1 200 OK\r\n\r\n9\r\ndata: 0\n\n\r\n9\r\ndata: 1\n\n\r\n9\r\nda".to_vec();
        assert_eq!(take(&mut received, 0), Ok(2));
        assert_eq!(received, b"\r\n9\r\nda");
        received.extend_from_slice(b"ta: 3\n\n");
        assert!(take(&mut received, 2).is_err(), "one is missing");
        assert!(take(&mut b"event: other\n\n".to_vec(), 0).is_err());
    }
}
