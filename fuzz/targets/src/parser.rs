//! Heads and bodies: the events don't depend on how the bytes are split, and each accepted head matches a second reading.

use shearwater_http1::{BodyDecoder, BodyEvent, HeadParser, Parsed};

use crate::head;
use crate::input::Stage;
use crate::session::{Session, SessionEvent};

/// Reads the requests of `input` whole, byte by byte and in pieces.
pub fn run(input: &[u8]) {
    let Some((stage, bytes)) = Stage::of(input) else { return };
    let whole = events(&stage, std::iter::once(bytes));
    assert_eq!(events(&stage, bytes.chunks(1)), whole, "byte by byte");
    assert_eq!(events(&stage, stage.pieces(bytes)), whole, "in pieces");
    let heads = whole.iter().filter(|event| matches!(event, SessionEvent::Head(_))).count();
    assert_eq!(check_heads(&stage, bytes), heads, "heads");
}

fn events<'a>(stage: &Stage, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<SessionEvent> {
    let mut session = Session::new(stage.head_limits, stage.body_limits, false);
    pieces.for_each(|piece| session.feed(piece));
    session.finish()
}

/// Checks each head up to the first rejection and returns their number.
fn check_heads(stage: &Stage, bytes: &[u8]) -> usize {
    let mut parser = HeadParser::new(stage.head_limits);
    let (mut rest, mut heads) = (bytes, 0);
    while !rest.is_empty() {
        let Ok(Parsed::Complete { head_len }) = parser.parse(rest) else { break };
        let head = parser.head(rest);
        head::check(&head, &stage.head_limits);
        heads += 1;
        let mut body = BodyDecoder::new(head.framing(), stage.body_limits);
        rest = &rest[head_len..];
        parser.reset();
        match skip_body(&mut body, rest) {
            Some(len) => rest = &rest[len..],
            None => break,
        }
    }
    heads
}

/// Returns the length of the body at the start of `bytes`, if it is complete and valid.
fn skip_body(body: &mut BodyDecoder, bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let step = body.decode(&bytes[at..]).ok()?;
        at += step.consumed;
        match step.event {
            BodyEvent::Data(_) | BodyEvent::Trailer(_) => {}
            BodyEvent::More => return body.is_done().then_some(at),
            BodyEvent::Done => return Some(at),
        }
    }
}
