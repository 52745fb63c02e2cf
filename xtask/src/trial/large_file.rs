//! The large sparse file: downloaded whole while slow readers hang on it, and a normal client beside them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::harness::answer::{BodyLength, Fault};
use crate::harness::body_source::SparseFile;
use crate::harness::client::{Client, request};

/// How much of a body is asked for at a time.
const PIECE: u64 = 1024 * 1024;
/// A slow reader's receive buffer, bytes: little enough that the server has to wait for it.
const SLOW_RECEIVE_BUFFER: usize = 16 * 1024;
/// What a slow reader takes at a time, bytes.
const SLOW_PIECE: u64 = 16 * 1024;
/// How long it waits between.
const SLOW_PAUSE: Duration = Duration::from_millis(50);

/// Downloads the file whole and compares every byte; gives the number of bytes.
pub(super) fn download(address: SocketAddr, target: &str, file: &SparseFile) -> Result<u64, Fault> {
    let mut client = Client::open(address)?;
    let length = ask(&mut client, target, file)?;
    let mut read = 0;
    while read < length {
        read += piece(&mut client, file, read, PIECE.min(length - read))?;
    }
    // The connection has to be in step after two gigabytes: the next answer begins right where the body ends.
    let next = client.exchange(&request("HEAD", target), true)?;
    if next.head.status == 200 { Ok(read) } else { Err(Fault::Malformed(next.head.text)) }
}

/// Reads the file slowly for some time, compares, then hangs up; gives the number of bytes.
pub(super) fn read_slowly(
    address: SocketAddr,
    target: &str,
    file: &Arc<SparseFile>,
    time: Duration,
) -> Result<u64, Fault> {
    let mut client = Client::over(connect_with_small_buffer(address)?.into())?;
    let length = ask(&mut client, target, file)?;
    let deadline = Instant::now() + time;
    let mut read = 0;
    while read < length && Instant::now() < deadline {
        read += piece(&mut client, file, read, SLOW_PIECE.min(length - read))?;
        std::thread::sleep(SLOW_PAUSE);
    }
    Ok(read)
}

fn connect_with_small_buffer(address: SocketAddr) -> Result<Socket, Fault> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_recv_buffer_size(SLOW_RECEIVE_BUFFER)?;
    socket.connect(&address.into())?;
    Ok(socket)
}

fn ask(client: &mut Client, target: &str, file: &SparseFile) -> Result<u64, Fault> {
    client.send(&request("GET", target))?;
    let head = client.head()?;
    match head.body_length(false) {
        BodyLength::Exactly(length) if head.status == 200 && length == file.length() => Ok(length),
        _ => Err(Fault::Malformed(head.text)),
    }
}

fn piece(client: &mut Client, file: &SparseFile, offset: u64, most: u64) -> Result<u64, Fault> {
    let mut same = true;
    let read = client.some(most, &mut |bytes| same = file.matches(offset, bytes))?;
    if same { Ok(read) } else { Err(Fault::Malformed(format!("other bytes after offset {offset}"))) }
}
