//! A blocking server of HTTP/2 by prior knowledge, which echoes content: `curl --http2-prior-knowledge`.
//!
//! `cargo run -p shearwater-http2 --example echo -- 127.0.0.1:8080`

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use shearwater_http2::{
    Connection, ErrorCode, HeadBuffer, ResponseHead, StreamEvent, StreamId, limits::Limits,
};

/// Content of a response to a request without any.
const GREETING: &[u8] = b"Hello, HTTP/2!\n";
/// Content of a request in bytes. Beyond: the stream is reset.
const CONTENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Time that a connection may be idle.
const IDLE_MAX: Duration = Duration::from_secs(10);

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".into());
    let listener = TcpListener::bind(&address)?;
    println!("listening on http://{}", listener.local_addr()?);
    for stream in listener.incoming() {
        std::thread::spawn(|| stream.and_then(serve));
    }
    Ok(())
}

/// Responses in flight: content, how much of it was sent, and true if it is complete.
type Responses = BTreeMap<StreamId, (Vec<u8>, usize, bool)>;

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_MAX))?;
    let (limits, started, mut out) = (Limits::default(), Instant::now(), Vec::new());
    let mut connection = Connection::new(limits, 0, &mut out);
    let (mut head, mut responses) = (HeadBuffer::new(limits.head), Responses::new());
    let (mut input, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    loop {
        stream.write_all(&out)?;
        out.clear();
        connection.output_sent();
        if connection.is_finished() {
            return linger(&mut stream);
        }
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            return Ok(());
        }
        input.extend_from_slice(&buffer[..len]);
        connection.begin_turn(started.elapsed().as_millis() as u64);
        let consumed = receive(&mut connection, &input, &mut head, &mut responses, &mut out);
        input.drain(..consumed);
        send(&mut connection, &mut responses, &mut out);
    }
}

/// Closes the writing side, and reads on, so that the client gets the last bytes.
fn linger(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown(std::net::Shutdown::Write)?;
    io::copy(&mut stream.take(1 << 20), &mut io::sink()).map(drop)
}

/// Returns the number of consumed bytes.
fn receive(
    connection: &mut Connection,
    input: &[u8],
    head: &mut HeadBuffer,
    responses: &mut Responses,
    out: &mut Vec<u8>,
) -> usize {
    let mut consumed = 0;
    loop {
        // An error has written its GOAWAY.
        let Ok(step) = connection.receive(&input[consumed..], head, out) else { return input.len() };
        consumed += step.consumed;
        match step.event {
            StreamEvent::More => return consumed,
            StreamEvent::Request { stream, ends } => {
                let lines: &[u8] = b"Server: shearwater\r\nContent-Type: text/plain\r\n";
                let response = ResponseHead { status: 200, lines, ..ResponseHead::default() };
                connection.respond(stream, &response, false, out);
                let content = if ends { GREETING.to_vec() } else { Vec::new() };
                responses.insert(stream, (content, 0, ends));
            }
            StreamEvent::Rejected { stream, error } => {
                let response = ResponseHead { status: error.status(), ..ResponseHead::default() };
                connection.respond(stream, &response, true, out);
                responses.remove(&stream);
            }
            StreamEvent::Data { stream, content, ends } => {
                if let Some(response) = responses.get_mut(&stream) {
                    response.0.extend_from_slice(content);
                    response.2 = ends;
                }
                connection.consumed(stream, content.len(), out);
                if responses.get(&stream).is_some_and(|response| response.0.len() > CONTENT_BYTES_MAX) {
                    connection.reset(stream, ErrorCode::EnhanceYourCalm, out);
                    responses.remove(&stream);
                }
            }
            StreamEvent::Trailers { stream } => {
                if let Some(response) = responses.get_mut(&stream) {
                    response.2 = true;
                }
            }
            StreamEvent::Reset { stream, .. } | StreamEvent::Failed { stream, .. } => {
                _ = responses.remove(&stream);
            }
        }
    }
}

/// Sends content within the windows.
fn send(connection: &mut Connection, responses: &mut Responses, out: &mut Vec<u8>) {
    for (&stream, (content, sent, _)) in responses.iter() {
        connection.set_available(stream, (content.len() - sent) as u64);
    }
    while let Some((stream, len)) = connection.next_data(usize::MAX) {
        let Some((content, sent, is_complete)) = responses.get_mut(&stream) else { break };
        let piece = &content[*sent..*sent + len];
        *sent += len;
        let ends = *is_complete && *sent == content.len();
        connection.data(stream, piece, ends, out);
        if ends {
            responses.remove(&stream);
        }
    }
    responses.retain(|&stream, (content, sent, is_complete)| {
        let is_over = *is_complete && *sent == content.len();
        if is_over {
            connection.data(stream, b"", true, out);
        }
        !is_over
    });
}
