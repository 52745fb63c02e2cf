//! The attacks of group `hostile-http2`: bytes of their connections, and the ends that the server may give them.

use std::time::Duration;

use testkit::http2::frame::{self, Frame};
use testkit::http2::{hpack, request_fields};

/// Target of a file that no window holds.
pub(super) const LARGE: &str = "/large.bin";
/// Target of a small file.
pub(super) const PAGE: &str = "/page.txt";
/// Settings of the server: timeouts that end within a quick run.
pub(super) const SETTINGS: &str =
    "[performance]\nconnection_timeout = \"3s\"\n[timeouts]\nhead = \"1s\"\nwrite = \"1s\"\n";

const CALM: &str = "GOAWAY ENHANCE_YOUR_CALM";
/// Outcomes of requests with large lists: each is rejected, and those of one turn beyond the limit are refused.
const REJECTED: &[&str] = &["431", "200", "RST_STREAM REFUSED_STREAM", CALM];
/// Type of PRIORITY frames.
const PRIORITY: u8 = 2;
/// Requests or frames that are sent at once.
const AT_ONCE: u32 = 20;
const FLOOD_AT_ONCE: u32 = 500;
/// Requests of a connection with windows that stay empty: as many as the server allows.
const STREAMS: u32 = 100;
const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// HPACK: the latest entry of the dynamic table.
const LATEST_ENTRY: u8 = 0x80 | 62;
/// HPACK: a literal with a new name that is added to the table, and one that isn't.
const LITERAL_ADDED: u8 = 0x40;
const LITERAL: u8 = 0;
const NEVER: Duration = Duration::from_secs(3600);

/// An attack: what each connection sends, and its ends.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The client's SETTINGS.
    pub(super) settings: &'static [(u16, u32)],
    /// Sent once.
    pub(super) opening: fn() -> Vec<u8>,
    /// Sent afterwards, by its number, until the server ends the connection.
    pub(super) piece: fn(u32) -> Vec<u8>,
    /// Time between two pieces.
    pub(super) every: Duration,
    /// Reads what the server sends; otherwise only once the server takes no more.
    pub(super) reads: bool,
    /// Ends of connections, and statuses and resets of their streams, that may occur; the first one must.
    pub(super) outcomes: &'static [&'static str],
    /// Growth of the server's memory at its peak, MiB.
    pub(super) peak_mib_max: f64,
}

const DEFAULT: Attack = Attack {
    name: "",
    about: "",
    settings: &[],
    opening: Vec::new,
    piece: |_| Vec::new(),
    every: Duration::ZERO,
    reads: true,
    outcomes: &[CALM],
    peak_mib_max: 16.0,
};

#[rustfmt::skip]
pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "rapid-reset", about: "reset each request at once", piece: rapid_reset, outcomes: &[CALM, "200"], ..DEFAULT },
    Attack { name: "made-resets", about: "make the server reset each request, by wrong windows and frames after the end",
        piece: made_reset, outcomes: &[CALM, "200", "RST_STREAM PROTOCOL_ERROR", "RST_STREAM FLOW_CONTROL_ERROR", "RST_STREAM STREAM_CLOSED"], ..DEFAULT },
    Attack { name: "open-streams", about: "begin requests, send some of their content and never end them", piece: open_stream,
        outcomes: &[CALM, "RST_STREAM REFUSED_STREAM"], ..DEFAULT },
    Attack { name: "header-bomb", about: "refer 16,000 times to a large entry of the HPACK table", opening: large_entry, piece: |number| bomb(number, PAYLOAD_BYTES_MAX),
        outcomes: &[CALM, "200"], ..DEFAULT },
    Attack { name: "large-lists", about: "refer to it as often as is decoded", opening: large_entry, piece: |number| bomb(number, 200), outcomes: REJECTED, ..DEFAULT },
    Attack { name: "tiny-fields", about: "send thousands of fields of two bytes", piece: tiny_fields, outcomes: REJECTED, ..DEFAULT },
    Attack { name: "cookie-crumbs", about: "refer thousands of times to a crumb of a cookie", opening: crumb_entry, piece: |number| bomb(number, PAYLOAD_BYTES_MAX / 2),
        outcomes: REJECTED, ..DEFAULT },
    Attack { name: "continuations", about: "never end a header block", opening: endless_block, piece: continuations, ..DEFAULT },
    Attack { name: "settings", about: "send SETTINGS all the time", piece: |_| flood(&Frame::settings(&[])), ..DEFAULT },
    Attack { name: "pings", about: "send PING all the time", piece: |_| flood(&Frame::new(frame::PING, 0, 0, [0; 8])), ..DEFAULT },
    Attack { name: "unread-pings", about: "send PING all the time and read nothing", piece: |_| flood(&Frame::new(frame::PING, 0, 0, [0; 8])), reads: false,
        outcomes: &[CALM], ..DEFAULT },
    Attack { name: "priorities", about: "send PRIORITY all the time", piece: |_| flood(&Frame::new(PRIORITY, 0, 1, [0, 0, 0, 3, 1])), ..DEFAULT },
    Attack { name: "empty-data", about: "send DATA without content all the time", opening: || post(1), piece: |_| flood(&Frame::data(1, b"", false)),
        outcomes: &[CALM, "405", "RST_STREAM NO_ERROR"], ..DEFAULT },
    Attack { name: "window-updates", about: "widen the window by a byte all the time", piece: |_| flood(&Frame::window_update(0, 1)), ..DEFAULT },
    Attack { name: "zero-window", about: "request large responses and take nothing", settings: &[(frame::INITIAL_WINDOW_SIZE, 0)], opening: many_downloads, every: NEVER,
        outcomes: &["reset", "200"], ..DEFAULT },
    Attack { name: "dripped-window", about: "request large responses and take a byte at a time", settings: &[(frame::INITIAL_WINDOW_SIZE, 0)], opening: many_downloads,
        piece: |number| Frame::window_update(2 * (number % STREAMS) + 1, 1).encode(), every: Duration::from_millis(50), outcomes: &["reset", "200"], ..DEFAULT },
    Attack { name: "unread-responses", about: "widen all windows and read nothing", settings: &[(frame::INITIAL_WINDOW_SIZE, i32::MAX as u32)], opening: unread_downloads,
        piece: |_| Frame::new(frame::PING, 0, 0, [0; 8]).encode(), every: Duration::from_millis(100), reads: false, outcomes: &["reset", "200"], ..DEFAULT },
    Attack { name: "half-frames", about: "send a part of a frame, after a request", opening: || [get(1, PAGE), get(3, PAGE)[..5].to_vec()].concat(), every: NEVER,
        outcomes: &["GOAWAY INTERNAL_ERROR", "200"], ..DEFAULT },
    Attack { name: "dripped-frames", about: "send a byte of a frame at a time, after a request", opening: || get(1, PAGE),
        piece: |number| Frame::new(frame::PING, 0, 0, [0; 8]).encode().get(number as usize..).unwrap_or_default().first().copied().into_iter().collect(),
        every: Duration::from_millis(500), outcomes: &["GOAWAY INTERNAL_ERROR", "200"], ..DEFAULT },
    Attack { name: "half-blocks", about: "send a part of a header block", opening: || [get(1, PAGE), endless_block()].concat(), every: NEVER,
        outcomes: &["GOAWAY INTERNAL_ERROR", "200"], ..DEFAULT },
];

fn fields(method: &'static str, target: &'static str) -> Vec<(&'static str, &'static str)> {
    request_fields("http", method, target, &[])
}

fn get(stream: u32, target: &'static str) -> Vec<u8> {
    Frame::headers(stream, &fields("GET", target), true).encode()
}

/// Begins a request with content, which the server rejects.
fn post(stream: u32) -> Vec<u8> {
    Frame::headers(stream, &fields("POST", PAGE), false).encode()
}

/// Returns the streams of a piece.
fn streams(number: u32, count: u32) -> impl Iterator<Item = u32> {
    (number * count..(number + 1) * count).map(|index| 2 * index + 1)
}

fn flood(frame: &Frame) -> Vec<u8> {
    frame.encode().repeat(FLOOD_AT_ONCE as usize)
}

fn rapid_reset(number: u32) -> Vec<u8> {
    let both = |stream| [get(stream, LARGE), Frame::reset(stream, frame::CANCEL).encode()].concat();
    streams(number, AT_ONCE).flat_map(both).collect()
}

/// Begins requests that can't be finished yet, each followed by a frame that the server must respond to with a reset.
fn made_reset(number: u32) -> Vec<u8> {
    let wrong = |stream: u32| match stream / 2 % 3 {
        0 => Frame::window_update(stream, 0).encode(),
        1 => Frame::window_update(stream, i32::MAX as u32).encode().repeat(2),
        _ => Frame::data(stream, b"content after the end", true).encode(),
    };
    streams(number, AT_ONCE).flat_map(|stream| [get(stream, LARGE), wrong(stream)].concat()).collect()
}

fn open_stream(number: u32) -> Vec<u8> {
    let stream = 2 * number + 1;
    [post(stream), Frame::data(stream, b"content", false).encode()].concat()
}

/// Adds an entry of almost the table's size, by a request.
fn large_entry() -> Vec<u8> {
    entry("x-large", &"a".repeat(4_000))
}

fn crumb_entry() -> Vec<u8> {
    entry("cookie", "a")
}

fn entry(name: &str, value: &str) -> Vec<u8> {
    let mut literal = hpack::encode(&[(name, value)]);
    literal[0] = LITERAL_ADDED;
    let block = [hpack::encode(&fields("GET", PAGE)), literal].concat();
    Frame::new(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, 1, block).encode()
}

/// Requests with so many bytes of a block that each name the latest entry.
fn bomb(number: u32, count: usize) -> Vec<u8> {
    let mut block = hpack::encode(&fields("GET", PAGE));
    block.resize((block.len() + count).min(PAYLOAD_BYTES_MAX), LATEST_ENTRY);
    Frame::new(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, 2 * number + 3, block).encode()
}

fn tiny_fields(number: u32) -> Vec<u8> {
    let mut block = hpack::encode(&fields("GET", PAGE));
    let field = [LITERAL, 1, b'a', 1, b'b'];
    block.extend(field.iter().cycle().take((PAYLOAD_BYTES_MAX - block.len()) / field.len() * field.len()));
    Frame::new(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, 2 * number + 1, block).encode()
}

fn endless_block() -> Vec<u8> {
    Frame::new(frame::HEADERS, frame::END_STREAM, 3, hpack::encode(&fields("GET", PAGE))).encode()
}

/// Continues it with frames of one byte and without any.
fn continuations(_: u32) -> Vec<u8> {
    let frame = |payload: &[u8]| Frame::new(frame::CONTINUATION, 0, 3, payload).encode();
    [frame(&[]), frame(&[LITERAL])].concat()
}

fn many_downloads() -> Vec<u8> {
    streams(0, STREAMS).flat_map(|stream| get(stream, LARGE)).collect()
}

fn unread_downloads() -> Vec<u8> {
    [Frame::window_update(0, i32::MAX as u32 - 65_535).encode(), many_downloads()].concat()
}
