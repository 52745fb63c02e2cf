//! Heads and bodies in arbitrary splits: the same events however the bytes are cut, every accepted head as a plain reading of it says,
//! and no limit passed.

use shearwater_http1::{BodyDecoder, BodyEvent, HeadParser, Parsed};

use crate::input::Stage;
use crate::plain_head;
use crate::session::{Event, Session};

/// Reads the requests of `input` whole, byte by byte and in pieces of its own choice.
///
/// # Panics
/// Where the three differ, or a head was accepted that breaks a rule or a limit.
pub fn run(input: &[u8]) {
    let Some((stage, bytes)) = Stage::of(input) else { return };
    let whole = events(&stage, std::iter::once(bytes));
    assert_eq!(events(&stage, bytes.chunks(1)), whole, "byte by byte");
    assert_eq!(events(&stage, stage.pieces(bytes)), whole, "in pieces");
    let heads = check_heads(&stage, bytes);
    let told = whole.iter().filter(|event| matches!(event, Event::Head(_))).count();
    assert_eq!(heads, told, "heads");
}

fn events<'a>(stage: &Stage, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut session = Session::new(stage.head_limits, stage.body_limits, false);
    pieces.for_each(|piece| session.feed(piece));
    session.finish()
}

/// Looks at each head up to the first refusal; gives their number.
fn check_heads(stage: &Stage, bytes: &[u8]) -> usize {
    let mut parser = HeadParser::new(stage.head_limits);
    let mut rest = bytes;
    let mut heads = 0;
    while !rest.is_empty() {
        let Ok(Parsed::Complete { head_len }) = parser.parse(rest) else { break };
        let head = parser.head(rest);
        plain_head::check(&head, &stage.head_limits);
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

/// Length of the body that `bytes` begin with, if it is whole and good.
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
