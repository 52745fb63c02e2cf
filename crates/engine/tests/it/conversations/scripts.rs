//! The scripts of the conversations.

use shearwater_engine::Limits;

use crate::harness::unit::head;
use crate::harness::{Conversation, End, ExpectedResponse, Setting, Step, Unit};

/// 1: three requests, each after the response to the one before.
pub(crate) fn keep_alive() -> Conversation {
    let units: Vec<Unit> = (0..3).map(Unit::get).collect();
    let steps = one_by_one(&units);
    Conversation::alone(units, &steps)
}

/// 2: more pipelined requests than one turn processes.
pub(crate) fn pipeline_of_two_hundred() -> Conversation {
    Conversation::alone(mixture(200), &[Step::SendAll, Step::Settle])
}

/// 3: buffered and discarded bodies, each in pieces.
pub(crate) fn bodies_in_pieces() -> Conversation {
    let units = vec![
        Unit::post("buffer", 1, 500),
        Unit::post("plain", 2, 300),
        Unit::post("buffer", 3, 1),
        Unit::post("buffer", 4, 0),
        Unit::post("pulled", 5, 0),
        Unit::get(6),
    ];
    Conversation::alone(units, &pieces(97, 12))
}

/// 4: chunks with extensions and trailers, streamed.
pub(crate) fn reads_a_chunked_upload() -> Conversation {
    let units =
        vec![Unit::post_chunked("pulled", 1, 600, 50), Unit::post_chunked("buffer", 2, 90, 89), Unit::get(3)];
    Conversation::alone(units, &pieces(61, 30))
}

/// 13: deferred handlers that read bodies as they arrive; the last digit says how they wait.
pub(crate) fn responded_later() -> Conversation {
    let mut units: Vec<Unit> = (0..4).map(|number| Unit::later("GET", number)).collect();
    units.extend([
        Unit::post("taken", 1, 700),
        Unit::get(2),
        Unit::post_chunked("taken", 3, 300, 41),
        Unit::post_expecting("taken", 4, 60),
        Unit::later("HEAD", 5),
        Unit::post("taken", 6, 0),
    ]);
    let mut steps = Vec::new();
    for unit in &units {
        let at = unit.goes_on_at.unwrap_or(unit.bytes.len() / 2);
        steps.extend([Step::Send(at), Step::Settle, Step::Send(unit.bytes.len() - at), Step::Settle]);
    }
    Conversation::alone(units, &steps)
}

/// 14: the same, all at once.
pub(crate) fn responded_later_in_a_pipeline() -> Conversation {
    let mut units: Vec<Unit> = (0..30).map(|number| Unit::later("GET", number)).collect();
    units.extend((0..10).map(|number| Unit::post("taken", number, 50 * number)));
    units.push(Unit::closing(1));
    Conversation::alone(units, &[Step::SendAll, Step::Settle])
}

/// 5: bodies that wait for `100 Continue`.
pub(crate) fn expect_continue() -> Conversation {
    let units = vec![
        Unit::post_expecting("buffer", 1, 40),
        Unit::get(2),
        Unit::post_expecting("pulled", 3, 700),
        Unit::post_expecting("plain", 4, 5),
    ];
    let mut steps = Vec::new();
    for unit in &units {
        if let Some(at) = unit.goes_on_at {
            steps.extend([Step::Send(at), Step::Settle, Step::Send(unit.bytes.len() - at), Step::Settle]);
        } else {
            steps.extend([Step::Send(unit.bytes.len()), Step::Settle]);
        }
    }
    Conversation::alone(units, &steps)
}

/// 6: heads that fill the limit to the last byte, in pieces of one byte; then one that exceeds it.
pub(crate) fn head_in_single_bytes() -> Conversation {
    const HEAD_BYTES_MAX: usize = 160;
    let full = padded(1, HEAD_BYTES_MAX);
    let over = padded(2, HEAD_BYTES_MAX + 1);
    let refusal = ExpectedResponse::refusal(
        "431 Request Header Fields Too Large",
        "The request head is larger than the limit.",
    );
    let over = Unit::refused(over.bytes, HEAD_BYTES_MAX + 1, refusal);
    let limits = Limits { head_bytes_max: HEAD_BYTES_MAX, ..Limits::default() };
    let alone = Conversation::alone(vec![full, over], &pieces(1, 2 * HEAD_BYTES_MAX + 1));
    Conversation { setting: Setting { limits, ..Setting::default() }, ..alone }
}

/// Returns a `GET` whose head has exactly so many bytes.
fn padded(number: usize, head_bytes: usize) -> Unit {
    let plain = Unit::get(number);
    let padding = head_bytes - plain.bytes.len() - "X-Pad: \r\n".len();
    let field = format!("X-Pad: {}\r\n", "p".repeat(padding));
    Unit::new(head("GET", &format!("/plain/{number}"), &field), plain.response)
}

/// 7: a body rejected at its head, while the client continues sending and reads only then.
pub(crate) fn too_large_and_still_sending() -> Conversation {
    let units = vec![Unit::get(1), Unit::too_large(2, 1 << 40, 150_000)];
    let mut steps = vec![Step::StopReading(1 << 20)];
    for _ in 0..8 {
        steps.extend([Step::Send(20_000), Step::Turn]);
    }
    steps.extend([Step::Settle, Step::ReadOn, Step::Settle, Step::Finish, Step::Settle]);
    let mut conversation = Conversation::default();
    conversation.add(units, &steps, End::Finish);
    conversation
}

/// 8: large responses to a client that stops reading, with more pipelined requests than are stored.
pub(crate) fn slow_reader() -> Conversation {
    let mut units = vec![Unit::get(1), Unit::big(), Unit::file(), Unit::get(2)];
    units.extend((3..60).map(|number| Unit::post("buffer", number, 4000)));
    units.push(Unit::big());
    units.push(Unit::closing(60));
    let mut steps = vec![Step::StopReading(1 << 19), Step::SendAll, Step::Settle];
    for _ in 0..4 {
        steps.extend([Step::Read(1 << 18), Step::Settle]);
    }
    steps.extend([Step::ReadOn, Step::Settle]);
    Conversation::alone(units, &steps)
}

/// 9: a client that sends a FIN right after its requests.
pub(crate) fn half_closed() -> Conversation {
    let mut conversation = Conversation::default();
    conversation.add(mixture(100), &[Step::SendAll, Step::Finish, Step::Settle], End::Finish);
    let cut = Unit::post("buffer", 1, 100);
    let cut_at = cut.bytes.len() + Unit::get(1).bytes.len() - 30;
    let steps = [Step::Send(cut_at), Step::Turn, Step::Finish, Step::Settle];
    conversation.add(vec![Unit::get(1), cut], &steps, End::Finish);
    conversation
}

/// 10: two good requests, then a bad one that is rejected; later input is ignored.
pub(crate) fn malformed_behind_good() -> Conversation {
    let units = vec![Unit::get(1), Unit::post("buffer", 2, 50), Unit::malformed(3), Unit::get(4)];
    let mut conversation = Conversation::alone(units.clone(), &[Step::SendAll, Step::Settle]);
    conversation.add(units, &pieces(40, 12), End::Silence);
    conversation
}

/// 11: concurrent connections that end in different ways; one of the handlers panics.
pub(crate) fn many_ways_to_end() -> Conversation {
    let lives = [
        vec![Unit::http10(1, false)],
        vec![Unit::http10(2, true), Unit::http10(3, true), Unit::http10(4, false)],
        vec![Unit::get(5), Unit::closing(6)],
        vec![Unit::get(7), Unit::closed_by_handler(8), Unit::get(9)],
        vec![Unit::get(10), Unit::panicking(11), Unit::get(12)],
        vec![Unit::get(13), Unit::get(14), Unit::get(15)],
    ];
    let mut conversation = Conversation::default();
    for units in lives {
        let steps = [Step::Send(60), Step::Turn, Step::SendAll, Step::Turn];
        conversation.add(units, &steps, End::Silence);
    }
    conversation
}

/// 12: a drain with an idle connection, one in a head, one in a body, one that continues, and one that
/// doesn't read its response.
pub(crate) fn drained_in_the_middle() -> Conversation {
    let last = |unit: Unit| Unit::new(unit.bytes, unit.response.last());
    let mut conversation = Conversation::default();
    conversation.add(vec![Unit::get(1)], &[Step::SendAll], End::Silence);
    conversation.add(vec![Unit::get(2), Unit::get(3)], &[Step::Send(60)], End::Cut);
    conversation.add(vec![Unit::get(4), last(Unit::post("buffer", 5, 200))], &[Step::Send(200)], End::Cut);
    let first = Unit::get(6).bytes.len();
    conversation.add(vec![Unit::get(6), last(Unit::get(7))], &[Step::Send(first)], End::Cut);
    conversation.add(vec![Unit::big()], &[Step::StopReading(1 << 16), Step::SendAll], End::Gone);
    conversation.steps.extend([(0, Step::Settle), (0, Step::Drain(3000)), (0, Step::Settle)]);
    conversation.steps.extend([(2, Step::SendAll), (3, Step::SendAll), (0, Step::Settle)]);
    conversation
}

/// Returns a mixture of requests that leave the connection open.
fn mixture(count: usize) -> Vec<Unit> {
    let unit = |number| match number % 9 {
        0 => Unit::get(number),
        1 => Unit::head(number),
        2 => Unit::no_content(number),
        3 => Unit::post("buffer", number, number),
        4 => Unit::post_chunked("pulled", number, number, 7),
        5 => Unit::http10(number, true),
        6 => Unit::not_modified(number),
        7 => Unit::plain("PATCH", number),
        _ => Unit::post("plain", number, 2 * number),
    };
    (0..count).map(unit).collect()
}

fn one_by_one(units: &[Unit]) -> Vec<Step> {
    units.iter().flat_map(|unit| [Step::Send(unit.bytes.len()), Step::Settle]).collect()
}

/// Sends `count` pieces of so many bytes, one per turn, then the rest.
fn pieces(bytes: usize, count: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = (0..count).flat_map(|_| [Step::Send(bytes), Step::Turn]).collect();
    steps.extend([Step::SendAll, Step::Settle]);
    steps
}
