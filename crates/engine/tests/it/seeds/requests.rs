//! Random requests to immediate and deferred handlers: each gets its own response in order, and clients that
//! disconnect at any time leave nothing behind.

use std::io::Cursor;

use shearwater_engine::Limits;
use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::tasks::Order;
use testkit::{Client, Error, Response};

use crate::harness::app::TestApp;
use crate::harness::{Choices, Setting, SimClient, SimDriver, SimWorld};

/// Clients of a seed that read all their responses, one after the other.
const PATIENT_CLIENTS: usize = 4;
/// Clients of a seed that may disconnect at any time, at most.
const IMPATIENT_CLIENTS_MAX: usize = 5;
/// Requests of a client at most.
const REQUESTS_MAX: usize = 6;
/// Lengths of the pieces that clients send.
const PIECES: &[usize] = &[1, 10, 100, 5000, 1 << 30];
/// Longest body that each route reads within its limits and the test's time, and whether its response names
/// the request.
const ROUTES: &[(&str, usize, bool)] = &[
    ("plain", 70_000, true),
    ("later", 70_000, true),
    ("taken", 70_000, true),
    ("mirror", 70_000, false),
    ("unread", 70_000, false),
    ("at-once", 70_000, false),
    ("stream", 70_000, false),
    ("announced", 70_000, false),
    ("pulled", 70_000, true),
    ("buffer", 400, true),
    ("hungry", 400, false),
];

/// Every kind of response, begun and ended in every way.
#[rustfmt::skip]
const TARGETS: &[&str] = &[
    "plain/1", "big", "file", "panic", "buffer/1", "pulled/1", "pulled-panics/1",
    "later/0", "later/1", "later/2", "later/3", "background", "large", "twice/1", "begins-and-panics", "make-panics",
    "taken/0", "taken/1", "taken/2", "mirror/0", "hungry/0", "flood", "speaks-first",
    "unread/0", "unread/1", "unread/2", "at-once/1",
    "stream/0?3", "stream/1?300", "stream/2?3", "stream/3?20", "prebuilt-stream", "bad-field-stream",
    "announced/0?3", "announced/1?10", "announced/2?12",
    "cut/0", "cut/1", "cut/2", "later-panics/0", "later-panics/1", "later-panics/2?begun",
];

/// One request.
#[derive(Debug)]
struct RandomRequest {
    method: &'static str,
    target: String,
    /// Its response has the target as text.
    is_named: bool,
    minor: u8,
    /// Whole lines.
    fields: String,
    /// Length of its body, and whether it comes in chunks.
    body: Option<(usize, bool)>,
}

impl RandomRequest {
    /// Returns a request for `target`, with a body of one of these lengths.
    fn new(dice: &mut Choices, target: String, body_lens: &[usize]) -> Self {
        let (method, is_chunked) =
            dice.pick(&[("GET", false), ("HEAD", false), ("POST", false), ("POST", true)]);
        let minor = u8::from(is_chunked || !dice.once_in(6));
        let options = ["", "", "", "Connection: close\r\n", "Connection: keep-alive\r\n"];
        let mut fields = dice.pick(&options).to_owned();
        if method == "POST" && dice.once_in(4) {
            fields += "Expect: 100-continue\r\n";
        }
        let body_len = dice.pick(body_lens);
        let body = (method == "POST").then_some((body_len, is_chunked));
        Self { method, target, is_named: false, minor, fields, body }
    }

    /// The client requests the close.
    fn is_last(&self) -> bool {
        self.fields.contains("close") || self.minor == 0 && !self.fields.contains("keep-alive")
    }

    /// Appends it in wire format.
    fn push_to(&self, dice: &mut Choices, bytes: &mut Vec<u8>) {
        let Self { method, target, minor, fields, .. } = self;
        bytes.extend(format!("{method} {target} HTTP/1.{minor}\r\nHost: a\r\n{fields}").bytes());
        match self.body {
            None => bytes.extend(b"\r\n"),
            Some((len, false)) => {
                bytes.extend(format!("Content-Length: {len}\r\n\r\n").bytes());
                bytes.resize(bytes.len() + len, b'x');
            }
            Some((len, true)) => {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                push_chunks(dice, len, bytes);
            }
        }
    }
}

/// Appends a body of so many bytes; of fewer if they would be chunks of one byte each.
fn push_chunks(dice: &mut Choices, len: usize, bytes: &mut Vec<u8>) {
    let mut left = len;
    while left > 0 {
        let count = left.min(dice.pick(&[1, 17, 3000, 65_536]));
        bytes.extend(format!("{count:x}\r\n").bytes());
        bytes.resize(bytes.len() + count, b'x');
        bytes.extend(b"\r\n");
        left -= count;
        if count == 1 {
            left = left.min(100);
        }
    }
    bytes.extend(b"0\r\n\r\n");
}

/// A kernel with one of these buffers, rough three times out of four; limits and an order.
fn setting(dice: &mut Choices, seed: u64, recv: &[usize], send: &[usize]) -> Setting {
    let calm = SimOptions { seed, ..SimOptions::default() };
    let kernel = if dice.once_in(4) { calm } else { SimOptions::rough(seed) };
    let sim = SimOptions { recv_buffer_bytes: dice.pick(recv), send_buffer_bytes: dice.pick(send), ..kernel };
    let limits = Limits {
        output_bytes_max: dice.pick(&[1, 300, 64 * 1024]),
        requests_per_connection_max: dice.pick(&[0, 0, 3]),
        ..Limits::default()
    };
    let order = if dice.once_in(2) { Order::Lifo } else { Order::Fifo };
    Setting { sim, limits, order, is_unobserved: seed.is_multiple_of(2), ..Setting::default() }
}

/// Runs a seed in which each client reads its responses: all arrive, in order.
pub(crate) fn expect_responses<D: SimDriver>(seed: u64) {
    let mut dice = Choices::new(seed);
    let setting = setting(&mut dice, seed, &[23, 200, 2000, 64 * 1024], &[500, 5000, 256 * 1024]);
    let mut world = SimWorld::<_, D>::on_driver(setting, TestApp);
    for _ in 0..PATIENT_CLIENTS {
        let requests = readable_requests(&mut dice);
        let mut client = world.connect();
        send_all(&mut dice, &mut world, &mut client, &requests);
        check(&mut client, &requests);
        client.peer.finish();
    }
    world.end();
}

fn readable_requests(dice: &mut Choices) -> Vec<RandomRequest> {
    let mut all = Vec::new();
    for number in 0..=dice.below(REQUESTS_MAX) {
        let (route, body_max, is_named) = dice.pick(ROUTES);
        let query = match route {
            "stream" => dice.pick(&["", "?0", "?2", "?2000"]),
            "announced" => "?10",
            _ => "",
        };
        let target = format!("/{route}/{number}x{}{query}", dice.below(4));
        all.push(RandomRequest { is_named, ..RandomRequest::new(dice, target, &[0, 3, 400, body_max]) });
        if all[number].is_last() {
            break;
        }
    }
    all
}

/// Sends them in pieces, and reads until the server has closed.
fn send_all<D: SimDriver>(
    dice: &mut Choices,
    world: &mut SimWorld<TestApp, D>,
    client: &mut SimClient,
    requests: &[RandomRequest],
) {
    let mut bytes = Vec::new();
    requests.iter().for_each(|request| request.push_to(dice, &mut bytes));
    let mut left = &bytes[..];
    while !left.is_empty() {
        let (piece, rest) = left.split_at(dice.pick(PIECES).min(left.len()));
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
fn check(client: &mut SimClient, requests: &[RandomRequest]) {
    if client.peer.saw_reset() {
        // Responses may be lost if the client continues sending after the last one.
        let text = client.text();
        return assert!(text.contains("Connection: close\r\n"), "a reset: {requests:?} {text}");
    }
    let mut received = Client::new(Cursor::new(client.read().to_vec()));
    let mut rest = requests.iter();
    let mut is_over = false;
    loop {
        let response = match received.response_to(rest.as_slice().first().map_or("GET", |next| next.method)) {
            Ok(response) => response,
            Err(Error::Closed) => break,
            Err(error) => panic!("{error}: {requests:?}: {}", client.text()),
        };
        assert!(!is_over, "another response after the last: {response:?}");
        if response.status() == 100 {
            continue;
        }
        let request = rest.next().unwrap_or_else(|| panic!("a response without a request: {response:?}"));
        check_one(&response, request);
        is_over = response.head.closes();
    }
    assert!(is_over || rest.len() == 0, "{} of {requests:?} without a response", rest.len());
}

fn check_one(response: &Response, request: &RandomRequest) {
    let text = response.text();
    assert!(matches!(response.status(), 200 | 202), "{} to {request:?}: {text}", response.status());
    if request.is_named && request.method != "HEAD" {
        assert!(text.contains(&request.target), "{request:?}: {text:?}");
    }
}

/// Runs a seed in which clients connect, send anything and disconnect; after the last of them nothing is left.
pub(crate) fn leave_nothing<D: SimDriver>(seed: u64) {
    let mut dice = Choices::new(seed);
    let Setting { sim, limits, order, .. } =
        setting(&mut dice, seed, &[230, 2000, 64 * 1024], &[5000, 60_000, 256 * 1024]);
    let sim = SimOptions { resets: dice.pick(&[0.0, 0.0, 0.01]), ..sim };
    let limits = Limits {
        buffered_bytes_max: dice.pick(&[3000, 40_000, 10_000_000]),
        calls_max: dice.pick(&[1, 3, 1000]),
        body_bytes_max: dice.pick(&[50, 500_000]),
        ..limits
    };
    let setting = Setting { sim, limits, order, ..Setting::default() };
    let mut world = SimWorld::<_, D>::on_driver(setting, TestApp);
    let mut clients = Vec::new();
    for _ in 0..=dice.below(IMPATIENT_CLIENTS_MAX) {
        let bytes = any_requests(&mut dice);
        let mut client = world.connect();
        speak(&mut dice, &mut world, &mut client, &bytes);
        clients.push(client);
        if dice.once_in(12) {
            world.control.drain(3000);
        }
        clients.iter_mut().for_each(|client| maybe_leave(&mut dice, client));
    }
    world.pass(500);
    world.pass(dice.pick(&[0, 100_000]));
    for client in &mut clients {
        client.read();
        client.peer.reset();
    }
    world.pass(200_000);
    world.end();
}

/// Returns a client's input; one byte of it may be wrong, and its end may be missing.
fn any_requests(dice: &mut Choices) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=dice.below(REQUESTS_MAX) {
        let target = format!("/{}", dice.pick(TARGETS));
        let mut request = RandomRequest::new(dice, target, &[0, 3, 400, 70_000, 200_000]);
        if dice.once_in(4) {
            request.fields += &format!("X-Large: {}\r\n", "x".repeat(5000));
        }
        request.push_to(dice, &mut bytes);
    }
    if dice.once_in(5) {
        let at = dice.below(bytes.len());
        bytes[at] = b'\0';
    }
    if dice.once_in(3) {
        bytes.truncate(dice.below(bytes.len()) + 1);
    }
    bytes
}

/// Sends in pieces, may read, lets turns and time pass, and may stop at any byte.
fn speak<D: SimDriver>(
    dice: &mut Choices,
    world: &mut SimWorld<TestApp, D>,
    client: &mut SimClient,
    mut bytes: &[u8],
) {
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(dice.pick(PIECES).min(bytes.len()));
        client.send(piece);
        bytes = rest;
        if dice.once_in(40) {
            client.peer.set_reading(false);
        }
        if dice.once_in(20) {
            client.peer.set_reading(true);
        }
        if dice.once_in(3) {
            for _ in 0..dice.below(4) {
                world.turn_if_ready();
            }
        }
        if dice.once_in(30) {
            world.pass(dice.pick(&[5, 300, 3000, 40_000]));
        }
        if piece.len() == 1 && dice.once_in(3) {
            return;
        }
    }
}

fn maybe_leave(dice: &mut Choices, client: &mut SimClient) {
    match dice.below(12) {
        0 => client.peer.finish(),
        1 => client.peer.reset(),
        2 => client.peer.close(),
        _ => {}
    }
    client.read();
}
