//! Scripted conversations, each without faults and with each fault at each operation.

use shearwater_engine::Limits;
use shearwater_engine::http1::Version;
use shearwater_engine::io::sim::{Fault, SimOptions};

use crate::harness::conversation::Trouble;
use crate::harness::unit::head;
use crate::harness::{Act, ClientEnd, Conversation, ExpectedResponse, Setting, SimWorld, Unit};
use crate::http2::scripted;

/// Maximum number of operations per conversation, to bound the duration of a sweep.
const OPERATIONS_MAX: u64 = 2000;

/// A version of HTTP, and a function that runs a conversation over it.
type Run = (Version, fn(&Conversation) -> SimWorld);

const RUNS: [Run; 2] = [(Version::Http11, Conversation::run), (Version::Http2, scripted::run)];

/// Runs the conversation over each version without a fault, then with each fault at each of its operations. A
/// failure names all three.
fn sweep(conversation: &Conversation) {
    RUNS.into_iter().for_each(|run| sweep_over(run, conversation));
}

fn sweep_over((version, run): Run, conversation: &Conversation) {
    let operations = run(conversation).net.operations();
    assert!((10..OPERATIONS_MAX).contains(&operations), "{version:?}: {operations} operations");
    println!("{version:?}: {operations} operations, each with {} faults", Fault::ALL.len());
    for fault in Fault::ALL {
        let trouble = match fault {
            Fault::Rst => Trouble::Resets(1),
            Fault::Fin => Trouble::Fin,
            Fault::Short | Fault::Eagain | Fault::Delay => Trouble::None,
        };
        for at in 0..operations {
            let _report = FaultReport { version, fault, at };
            let sim = SimOptions { fault_at: Some((at, fault)), ..conversation.setting.sim.clone() };
            let setting = Setting { sim, ..conversation.setting.clone() };
            run(&Conversation { setting, trouble, ..conversation.clone() });
        }
    }
}

/// Prints the fault if the conversation panics.
struct FaultReport {
    version: Version,
    fault: Fault,
    at: u64,
}

impl Drop for FaultReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}, with the fault {:?} at operation {}", self.version, self.fault, self.at);
        }
    }
}

/// Three requests, each after the response to the one before.
#[test]
fn keep_alive() {
    let units: Vec<Unit> = (0..3).map(Unit::get).collect();
    let steps = one_by_one(&units);
    sweep(&Conversation::alone(units, &steps));
}

/// More pipelined requests than one turn processes.
#[test]
fn pipeline_of_two_hundred() {
    sweep(&Conversation::alone(mixture(200), &[Act::SendAll, Act::Settle]));
}

/// Buffered and discarded bodies, each in pieces.
#[test]
fn bodies_in_pieces() {
    let units = vec![
        Unit::post("buffer", 1, 500),
        Unit::post("plain", 2, 300),
        Unit::post("buffer", 3, 1),
        Unit::post("buffer", 4, 0),
        Unit::post("pulled", 5, 0),
        Unit::get(6),
    ];
    sweep(&Conversation::alone(units, &pieces(97, 12)));
}

/// Chunks with extensions and trailers, streamed.
#[test]
fn reads_a_chunked_upload() {
    let units =
        vec![Unit::post_chunked("pulled", 1, 600, 50), Unit::post_chunked("buffer", 2, 90, 89), Unit::get(3)];
    sweep(&Conversation::alone(units, &pieces(61, 30)));
}

/// Deferred handlers that read bodies as they arrive; the last digit says how they wait.
#[test]
fn deferred_responses() {
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
        let at = unit.continue_at.unwrap_or(unit.bytes.len() / 2);
        steps.extend([Act::Send(at), Act::Settle, Act::Send(unit.bytes.len() - at), Act::Settle]);
    }
    sweep(&Conversation::alone(units, &steps));
}

/// The same, all at once.
#[test]
fn deferred_responses_in_a_pipeline() {
    let mut units: Vec<Unit> = (0..30).map(|number| Unit::later("GET", number)).collect();
    units.extend((0..10).map(|number| Unit::post("taken", number, 50 * number)));
    units.push(Unit::closing(1));
    sweep(&Conversation::alone(units, &[Act::SendAll, Act::Settle]));
}

/// Bodies that wait for `100 Continue`.
#[test]
fn expect_continue() {
    let units = vec![
        Unit::post_expecting("buffer", 1, 40),
        Unit::get(2),
        Unit::post_expecting("pulled", 3, 700),
        Unit::post_expecting("plain", 4, 5),
    ];
    let mut steps = Vec::new();
    for unit in &units {
        if let Some(at) = unit.continue_at {
            steps.extend([Act::Send(at), Act::Settle, Act::Send(unit.bytes.len() - at), Act::Settle]);
        } else {
            steps.extend([Act::Send(unit.bytes.len()), Act::Settle]);
        }
    }
    sweep(&Conversation::alone(units, &steps));
}

/// Heads that fill the limit to the last byte, in pieces of one byte; then one that exceeds it.
#[test]
fn head_in_single_bytes() {
    const HEAD_BYTES_MAX: usize = 160;
    /// The same fields as a list of HTTP/2, with 32 bytes for each (RFC 9113 section 6.5.2).
    const LIST_BYTES_MAX: usize = 191;
    let full = padded(1, HEAD_BYTES_MAX);
    let over = padded(2, HEAD_BYTES_MAX + 1);
    let refusal = ExpectedResponse::refusal(
        "431 Request Header Fields Too Large",
        "The request head is larger than the limit.",
    );
    let over = Unit::refused(over.bytes, HEAD_BYTES_MAX + 1, refusal);
    let alone = Conversation::alone(vec![full, over], &pieces(1, 2 * HEAD_BYTES_MAX + 1));
    for (run, head_bytes_max) in RUNS.into_iter().zip([HEAD_BYTES_MAX, LIST_BYTES_MAX]) {
        let limits = Limits { head_bytes_max, ..Limits::default() };
        sweep_over(run, &Conversation { setting: Setting { limits, ..Setting::default() }, ..alone.clone() });
    }
}

/// A body rejected at its head, while the client continues sending and reads only then.
#[test]
fn too_large_and_still_sending() {
    let units = vec![Unit::get(1), Unit::too_large(2, 1 << 40, 150_000)];
    let mut steps = vec![Act::StopReading(1 << 20)];
    for _ in 0..8 {
        steps.extend([Act::Send(20_000), Act::Turn]);
    }
    steps.extend([Act::Settle, Act::ReadOn, Act::Settle, Act::Finish, Act::Settle]);
    let mut conversation = Conversation::default();
    conversation.add(units, &steps, ClientEnd::Finish);
    sweep(&conversation);
}

/// Large responses to a client that stops reading, with more pipelined requests than are stored.
#[test]
fn slow_reader() {
    // Over HTTP/2 they are smaller: each 64 KiB are an operation.
    for (run, large) in RUNS.into_iter().zip([Unit::big, Unit::file]) {
        sweep_over(run, &slow_reader_of(large));
    }
}

fn slow_reader_of(large: fn() -> Unit) -> Conversation {
    let mut units = vec![Unit::get(1), large(), Unit::file(), Unit::get(2)];
    units.extend((3..60).map(|number| Unit::post("buffer", number, 4000)));
    units.push(large());
    units.push(Unit::closing(60));
    let mut steps = vec![Act::StopReading(1 << 19), Act::SendAll, Act::Settle];
    for _ in 0..4 {
        steps.extend([Act::Read(1 << 18), Act::Settle]);
    }
    steps.extend([Act::ReadOn, Act::Settle]);
    Conversation::alone(units, &steps)
}

/// A client that sends a FIN right after its requests.
#[test]
fn half_closed() {
    let mut conversation = Conversation::default();
    conversation.add(mixture(100), &[Act::SendAll, Act::Finish, Act::Settle], ClientEnd::Finish);
    let cut = Unit::post("buffer", 1, 100);
    let cut_at = cut.bytes.len() + Unit::get(1).bytes.len() - 30;
    let steps = [Act::Send(cut_at), Act::Turn, Act::Finish, Act::Settle];
    conversation.add(vec![Unit::get(1), cut], &steps, ClientEnd::Finish);
    sweep(&conversation);
}

/// Two good requests, then a bad one that is rejected; later input is ignored.
#[test]
fn malformed_behind_good() {
    let units = vec![Unit::get(1), Unit::post("buffer", 2, 50), Unit::malformed(3), Unit::get(4)];
    let mut conversation = Conversation::alone(units.clone(), &[Act::SendAll, Act::Settle]);
    conversation.add(units, &pieces(40, 12), ClientEnd::Silence);
    sweep(&conversation);
}

/// Concurrent connections that end in different ways; one of the handlers panics.
#[test]
fn many_ways_to_end() {
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
        let steps = [Act::Send(60), Act::Turn, Act::SendAll, Act::Turn];
        conversation.add(units, &steps, ClientEnd::Silence);
    }
    sweep(&conversation);
}

/// A drain with an idle connection, one in a head, one in a body, one that continues, and one that doesn't
/// read its response.
#[test]
fn drained_in_the_middle() {
    let mut conversation = Conversation::default();
    conversation.add(vec![Unit::get(1)], &[Act::SendAll], ClientEnd::Silence);
    conversation.add(vec![Unit::get(2), Unit::get(3)], &[Act::Send(60)], ClientEnd::Cut);
    conversation.add(
        vec![Unit::get(4), Unit::post("buffer", 5, 200).last()],
        &[Act::Send(200)],
        ClientEnd::Cut,
    );
    let first = Unit::get(6).bytes.len();
    conversation.add(vec![Unit::get(6), Unit::get(7).last()], &[Act::Send(first)], ClientEnd::Cut);
    conversation.add(vec![Unit::big()], &[Act::StopReading(1 << 16), Act::SendAll], ClientEnd::Gone);
    conversation.steps.extend([(0, Act::Settle), (0, Act::Drain(3000)), (0, Act::Settle)]);
    conversation.steps.extend([(2, Act::SendAll), (3, Act::SendAll), (0, Act::Settle)]);
    sweep(&conversation);
}

/// PROXY headers of both versions in pieces and with the first requests behind them.
#[test]
fn proxied_connections() {
    const HEADERS: [&[u8]; 3] = [
        b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0F\xC0\0\x02\x01\xC6\x33\x64\x02\xDB\xC4\x01\xBB\x04\0\0",
        b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
    ];
    let units = vec![Unit::get(1), Unit::post("buffer", 2, 300), Unit::later("GET", 3), Unit::get(4)];
    for preamble in HEADERS {
        for first in [pieces(7, 12), vec![Act::Send(preamble.len()), Act::Settle], Vec::new()] {
            let last = [Act::Send(400), Act::Turn, Act::SendAll, Act::Settle, Act::Finish, Act::Settle];
            let mut conversation = Conversation { preamble, ..Conversation::default() };
            conversation.add(units.clone(), &[&first[..], &last].concat(), ClientEnd::Finish);
            conversation.add(units.clone(), &[Act::SendAll, Act::Settle], ClientEnd::Silence);
            conversation.setting = Setting::trusting(&["127.0.0.0/8"], true);
            sweep(&conversation);
        }
    }
}

/// Returns a `GET` whose head has exactly so many bytes.
fn padded(number: usize, head_bytes: usize) -> Unit {
    let plain = Unit::get(number);
    let padding = head_bytes - plain.bytes.len() - "X-Pad: \r\n".len();
    let field = format!("X-Pad: {}\r\n", "p".repeat(padding));
    Unit::new(head("GET", &format!("/plain/{number}"), &field), plain.response)
}

/// Returns a mixture of requests that leave the connection open.
fn mixture(count: usize) -> Vec<Unit> {
    let unit = |number| match number % 9 {
        0 => Unit::get(number),
        1 => Unit::plain("HEAD", number),
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

fn one_by_one(units: &[Unit]) -> Vec<Act> {
    units.iter().flat_map(|unit| [Act::Send(unit.bytes.len()), Act::Settle]).collect()
}

/// Sends `count` pieces of so many bytes, one per turn, then the rest.
fn pieces(bytes: usize, count: usize) -> Vec<Act> {
    let mut steps: Vec<Act> = (0..count).flat_map(|_| [Act::Send(bytes), Act::Turn]).collect();
    steps.extend([Act::SendAll, Act::Settle]);
    steps
}
