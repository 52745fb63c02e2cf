//! HTTP/2 connections: events don't depend on how the bytes are split, and what a connection holds is bounded.

use shearwater_http2::{Connection, HeadBuffer, PREFACE, ResponseHead, StreamEvent, limits::Limits};

use crate::input::FuzzStage;

/// Memory that a connection may hold, in bytes: two tables, a block, and its streams.
const HELD_BYTES_MAX: usize = 128 * 1024;

/// Receives the frames in `input`, after the stage, the preface and SETTINGS, and responds to each request.
pub fn run(input: &[u8]) {
    let Some((stage, frames)) = FuzzStage::of(input) else { return };
    let bytes = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0", frames].concat();
    let whole = events(std::iter::once(&bytes[..]));
    assert_eq!(events(bytes.chunks(1)), whole, "byte by byte");
    assert_eq!(events(stage.pieces(&bytes)), whole, "in pieces");
}

/// Returns all events as text, in which content is joined, and the end of the connection.
fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> String {
    let limits = Limits { streams_max: 5, ..Limits::default() };
    let (mut head, mut out) = (HeadBuffer::new(limits.head), Vec::new());
    let mut server = Connection::new(limits, 0, &mut out);
    let (mut text, mut input, mut last) = (String::new(), Vec::new(), None);
    for piece in pieces {
        input.extend_from_slice(piece);
        let mut at = 0;
        loop {
            let step = match server.receive(&input[at..], &mut head, &mut out) {
                Ok(step) => step,
                Err(error) => return text + error.name(),
            };
            at += step.consumed;
            match step.event {
                StreamEvent::More => break,
                StreamEvent::Data { stream, content, ends } => {
                    if last != Some(stream) {
                        text += &format!("\n{stream:?} ");
                    }
                    last = Some(stream);
                    text += &format!("{}{}", content.escape_ascii(), if ends { "." } else { "" });
                    server.consumed(stream, content.len(), &mut out);
                    continue;
                }
                StreamEvent::Request { stream, ends } => {
                    text += &format!("\n{stream:?} {} {ends}", head.head().raw().escape_ascii());
                    let response = ResponseHead {
                        status: 200,
                        repeated: b"Server: fuzz\r\n",
                        ..ResponseHead::default()
                    };
                    assert!(server.respond(stream, &response, ends && stream.number() % 3 == 0, &mut out));
                    server.set_available(stream, 10);
                }
                other => text += &format!("\n{other:?}"),
            }
            last = None;
        }
        input.drain(..at);
        assert!(input.len() <= 9 + shearwater_http2::limits::FRAME_BYTES_MAX, "more than a frame is left");
        assert!(server.held_bytes() <= HELD_BYTES_MAX, "{} bytes are held", server.held_bytes());
        while let Some((stream, len)) = server.next_data(7) {
            assert!(len <= server.sendable(stream) && len <= 7);
            assert!(server.data(stream, &b"content"[..len], false, &mut out));
        }
    }
    text
}
