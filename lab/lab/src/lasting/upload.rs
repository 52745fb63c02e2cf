//! An upload of gigabytes that axum reads as it comes: it has to arrive to the byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::counts::Counts;
use crate::probe;

pub(super) const ABOUT: &str = "an upload of 2 GB that axum reads as it comes";
const BYTES: u64 = 2_000_000_000;
/// Written at once: a length of its own, so that pieces fall anywhere.
const PIECE_BYTES: usize = 65_000;
const PATIENCE: Duration = Duration::from_secs(60);
/// How the answer's line begins.
const MARK: &str = "upload";

pub(super) fn run(address: SocketAddr) -> Result<String, String> {
    let say = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).map_err(say)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(say)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(say)?;
    let head = format!("POST /upload HTTP/1.1\r\nHost: lab\r\nContent-Length: {BYTES}\r\n\r\n");
    stream.write_all(head.as_bytes()).map_err(say)?;
    let piece = piece();
    let (mut left, mut sum) = (BYTES, 0_u64);
    while left > 0 {
        let now = &piece[..PIECE_BYTES.min(usize::try_from(left).unwrap_or(PIECE_BYTES))];
        stream.write_all(now).map_err(|error| format!("{left} bytes before the end: {error}"))?;
        sum += sum_of(now);
        left -= now.len() as u64;
    }
    let answer = answer(&mut stream)?;
    match counted(&answer) {
        Some((BYTES, counted)) if counted == sum => Ok(format!("{BYTES} bytes, sum {sum}")),
        _ => Err(format!("not the {BYTES} bytes with the sum {sum}: {answer:?}")),
    }
}

fn piece() -> Vec<u8> {
    (0..PIECE_BYTES).map(|at| (at ^ (at >> 7)) as u8).collect()
}

fn sum_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum + u64::from(*byte))
}

fn answer(stream: &mut TcpStream) -> Result<String, String> {
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let length = stream.read(&mut buffer).map_err(|error| error.to_string())?;
        if length == 0 {
            return Err(format!("closed after {:?}", String::from_utf8_lossy(&received)));
        }
        received.extend_from_slice(&buffer[..length]);
        if let Some(answer) = probe::parse(&received)? {
            return Ok(String::from_utf8_lossy(&answer.body).into_owned());
        }
    }
}

/// Bytes and sum as the app has counted them.
fn counted(answer: &str) -> Option<(u64, u64)> {
    let counts = Counts::find(answer, MARK)?;
    Some((counts.count("bytes")?, counts.count("sum")?))
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn what_the_app_has_counted_is_read() {
        assert_eq!(counted("upload bytes=3 sum=6"), Some((3, 6)));
        assert_eq!(counted("upload bytes=3"), None);
    }
}
