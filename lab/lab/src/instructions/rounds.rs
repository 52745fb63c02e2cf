//! Requests in rounds: one on each of 32 connections, every answer compared. All of a round are sent before the first answer is read, so
//! that a turn of the server has many.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::probe;

/// Connections.
pub const CONNECTIONS: u32 = 32;
/// How long an answer may take: under an instruction counter all is slow.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends so many requests, a multiple of [`CONNECTIONS`]: `request` gives that of a number. Each answer has to be a 200 with `wanted` as its
/// content.
///
/// # Errors
/// What is wrong with a connection or an answer.
pub fn exchange(
    address: SocketAddr,
    requests: u32,
    request: &dyn Fn(u32) -> Vec<u8>,
    wanted: &[u8],
) -> Result<(), String> {
    let say = |error: std::io::Error| error.to_string();
    let connect = |_| {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(stream)
    };
    let mut streams = (0..CONNECTIONS).map(connect).collect::<std::io::Result<Vec<_>>>().map_err(say)?;
    for round in 0..requests / CONNECTIONS {
        for (number, stream) in (round * CONNECTIONS..).zip(&mut streams) {
            stream.write_all(&request(number)).map_err(say)?;
        }
        for stream in &mut streams {
            read(stream, wanted)?;
        }
    }
    Ok(())
}

/// Reads one answer: a 200 with this content.
fn read(stream: &mut TcpStream, wanted: &[u8]) -> Result<(), String> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    let answer = loop {
        let length = stream.read(&mut buffer).map_err(|error| error.to_string())?;
        if length == 0 {
            return Err(format!("closed after {} bytes", received.len()));
        }
        received.extend_from_slice(&buffer[..length]);
        if let Some(answer) = probe::parse(&received)? {
            break answer;
        }
    };
    if answer.status != 200 || answer.body != wanted {
        let (status, length) = (answer.status, answer.body.len());
        return Err(format!("a {status} with {length} bytes, not a 200 with the {} wanted", wanted.len()));
    }
    Ok(())
}
