//! Pipelined requests with immediate, deferred and streamed responses: each gets its own.

use shearwater_engine::Limits;

use super::asked::{Asked, Form, kernel, order};
use crate::harness::dice::Dice;
use crate::harness::{Client, Setting, World};

/// Clients of a seed, one after the other.
const CLIENTS: usize = 4;
/// Requests of a client at most.
const REQUESTS_MAX: usize = 6;
/// Longest body that each route reads within its limits and the test's time.
const ROUTES: &[(&str, usize)] = &[
    ("plain", 70_000),
    ("later", 70_000),
    ("taken", 70_000),
    ("mirror", 70_000),
    ("unread", 70_000),
    ("at-once", 70_000),
    ("stream", 70_000),
    ("announced", 70_000),
    ("pulled", 70_000),
    ("buffer", 400),
    ("hungry", 400),
];
/// Routes whose responses name their request.
const NAMING: &[&str] = &["plain", "later", "taken", "pulled", "buffer"];

/// Runs a seed.
pub(crate) fn hold(seed: u64) {
    let mut dice = Dice::new(seed);
    let sim = kernel(&mut dice, seed, &[23, 200, 2000, 64 * 1024], &[500, 5000, 256 * 1024]);
    let limits = Limits {
        output_bytes_max: [1, 300, 64 * 1024][dice.below(3)],
        requests_per_connection_max: [0, 0, 3][dice.below(3)],
        ..Limits::default()
    };
    let order = order(&mut dice);
    let mut world = World::new(Setting { sim, limits, order, ..Setting::default() });
    for _ in 0..CLIENTS {
        let asked = requests(&mut dice);
        let mut client = world.connect();
        ask(&mut dice, &mut world, &mut client, &asked);
        check(&mut client, &asked);
        client.peer.finish();
    }
    world.end();
}

fn requests(dice: &mut Dice) -> Vec<Asked> {
    let mut all = Vec::new();
    for number in 0..=dice.below(REQUESTS_MAX) {
        let (route, body_max) = ROUTES[dice.below(ROUTES.len())];
        let query = match route {
            "stream" => ["", "?0", "?2", "?2000"][dice.below(4)],
            "announced" => "?10",
            _ => "",
        };
        let target = format!("/{route}/{number}x{}{query}", dice.below(4));
        let asked = Asked::new(dice, target, &[0, 3, 400, body_max]);
        let is_last = asked.is_last();
        all.push(asked);
        if is_last {
            break;
        }
    }
    all
}

/// Sends them in pieces, and reads until the server has closed.
fn ask(dice: &mut Dice, world: &mut World, client: &mut Client, asked: &[Asked]) {
    let mut bytes = Vec::new();
    asked.iter().for_each(|asked| asked.push_to(dice, &mut bytes));
    let mut left = &bytes[..];
    while !left.is_empty() {
        let (piece, rest) = left.split_at([1, 10, 100, 5000, 1 << 30][dice.below(5)].min(left.len()));
        client.send(piece);
        left = rest;
        if dice.once_in(3) {
            for _ in 0..dice.below(4) {
                world.turn_if_ready();
            }
        }
        client.read();
    }
    // Handlers read their bodies one after the other; a client that sends nothing more is idle then.
    for _ in 0..240 {
        world.pass(1000);
        client.read();
        if client.peer.saw_fin() || client.peer.saw_reset() {
            return;
        }
    }
}

/// Checks for its own responses in order, whole; all of them, unless one says that it is the last.
fn check(client: &mut Client, asked: &[Asked]) {
    let was_reset = client.peer.saw_reset();
    let got = client.read();
    if was_reset {
        // Responses may be lost if the client continues sending after the last one.
        let text = String::from_utf8_lossy(got);
        return assert!(text.contains("Connection: close\r\n"), "a reset: {asked:?} {text}");
    }
    let (mut rest, mut responded, mut is_over) = (got, 0, false);
    while !rest.is_empty() {
        let text = String::from_utf8_lossy(&rest[..rest.len().min(300)]);
        assert!(!is_over, "goes on behind the last answer: {text:?}");
        let asked =
            asked.get(responded).unwrap_or_else(|| panic!("an answer that nobody asked for: {text:?}"));
        let response =
            Answered::cut(rest, asked.form).unwrap_or_else(|| panic!("{asked:?} cut off: {text:?}"));
        rest = &rest[response.len..];
        if response.status == 100 {
            continue;
        }
        response.check(asked);
        responded += 1;
        is_over = response.is_last;
    }
    assert!(is_over || responded == asked.len(), "{responded} answers to {asked:?}");
}

/// A response, separated from the next.
struct Answered {
    status: u16,
    body: Vec<u8>,
    /// With its head.
    len: usize,
    /// It says that it is the connection's last.
    is_last: bool,
}

impl Answered {
    /// Splits off the first response, unless it is incomplete.
    fn cut(bytes: &[u8], form: Form) -> Option<Self> {
        let head_len = position(bytes, b"\r\n\r\n")? + 4;
        let (head, rest) = bytes.split_at(head_len);
        let head = std::str::from_utf8(head).expect("a head is text");
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|line| line.get(..3)).expect("a status line");
        let status = status.parse().expect("a status");
        let is_last = head.contains("\r\nConnection: close\r\n");
        let (body, body_len) = match status {
            100 | 204 | 304 => (Vec::new(), 0),
            _ if form == Form::Head => (Vec::new(), 0),
            _ => body_of(head, rest)?,
        };
        Some(Self { status, body, len: head_len + body_len, is_last })
    }

    fn check(&self, asked: &Asked) {
        let text = String::from_utf8_lossy(&self.body);
        assert!(matches!(self.status, 200 | 202), "{} to {asked:?}: {text}", self.status);
        let route = asked.target.split('/').nth(1).unwrap_or_default();
        if asked.form != Form::Head && NAMING.contains(&route) {
            assert!(text.contains(&asked.target), "{asked:?}: {text:?}");
        }
    }
}

/// Returns the body after a head, and its length on the wire.
fn body_of(head: &str, rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let is_chunked = head.contains("\r\nTransfer-Encoding: chunked\r\n");
    if let Some((_, value)) = head.split_once("\r\nContent-Length: ") {
        assert!(!is_chunked, "two lengths: {head}");
        let len = value.split("\r\n").next().and_then(|len| len.parse().ok()).expect("a length");
        return Some((rest.get(..len)?.to_vec(), len));
    }
    if is_chunked {
        return unchunked(rest);
    }
    assert!(head.contains("\r\nConnection: close\r\n"), "no length, and no end: {head}");
    Some((rest.to_vec(), rest.len()))
}

fn unchunked(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let line_len = position(&bytes[at..], b"\r\n")?;
        let digits = std::str::from_utf8(&bytes[at..at + line_len]).expect("a chunk's size is text");
        let len = usize::from_str_radix(digits, 16).expect("a chunk's size");
        let from = at + line_len + 2;
        body.extend_from_slice(bytes.get(from..from + len)?);
        at = from + len + 2;
        assert_eq!(bytes.get(from + len..at)?, b"\r\n", "behind a chunk");
        if len == 0 {
            return Some((body, at));
        }
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
