//! Streams whose content a step around the handler has encoded.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shearwater_engine::{Around, Call, Content, Request, Response, Service, StreamCoder};

use crate::harness::unit::{dechunked, get, head};
use crate::harness::{Setting, SimWorld};

/// Content that a coder holds at most.
const ROOM: usize = 10;

thread_local! {
    static CODERS: Cell<usize> = const { Cell::new(0) };
    static HELD_MAX: Cell<usize> = const { Cell::new(0) };
}

/// Responds by streams: `/PIECES/LENGTH`, where `*` waits 20 s and `!` panics in the coder.
struct Streams(Rc<Capitals>);

struct Capitals;

/// Encodes content as capital letters, at the second look at it.
struct CapitalCoder {
    queue: Vec<u8>,
    is_over: bool,
    /// Polled since the last piece.
    was_polled: bool,
    waker: Option<Waker>,
}

impl CapitalCoder {
    fn new() -> Self {
        CODERS.set(CODERS.get() + 1);
        Self { queue: Vec::new(), is_over: false, was_polled: false, waker: None }
    }

    fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl Drop for CapitalCoder {
    fn drop(&mut self) {
        CODERS.set(CODERS.get() - 1);
    }
}

impl StreamCoder for CapitalCoder {
    fn push(&mut self, content: &[u8]) {
        self.queue.extend_from_slice(content);
        HELD_MAX.set(HELD_MAX.get().max(self.queue.len()));
        self.wake();
    }

    fn end(&mut self) {
        self.is_over = true;
        self.wake();
    }

    fn has_room(&self) -> bool {
        self.queue.len() < ROOM
    }

    fn poll_take(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Result<(), String>> {
        assert!(!self.queue.contains(&b'!'), "{}", crate::harness::app::ON_PURPOSE);
        if self.queue.contains(&b'?') {
            return Poll::Ready(Err("no question marks".to_owned()));
        }
        if self.queue.is_empty() && !self.is_over {
            self.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if !std::mem::replace(&mut self.was_polled, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.was_polled = false;
        out.extend(self.queue.drain(..).map(|byte| byte.to_ascii_uppercase()));
        if self.is_over {
            out.push(b'.');
            return Poll::Ready(Ok(()));
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn held_bytes(&self) -> usize {
        self.queue.capacity()
    }
}

impl Service for Streams {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        response.defer(request, stream);
        assert!(response.around(&self.0, 0), "it is deferred");
    }
}

async fn stream(mut call: Call) {
    let path = call.path().to_owned();
    let (pieces, length) = path[1..].split_once('/').expect("two parts");
    call.response().field("X-Of", "handler");
    call.begin(length.parse().ok());
    for piece in pieces.split('-') {
        if piece == "*" {
            call.sleep(Duration::from_secs(20)).await;
        } else if call.send(piece.as_bytes()).await.is_err() {
            return;
        }
    }
    call.push_trailer("X-End", "1");
}

impl Around for Capitals {
    fn response(self: Rc<Self>, _: u64, request: &Request<'_>, response: &mut Response<'_>) {
        if response.content() != Content::Stream {
            return;
        }
        assert_eq!(response.values("x-of").collect::<Vec<_>>(), [b"handler"]);
        response.remove_field("X-Of").field("Content-Encoding", "capitals");
        assert!(response.code_stream(request, || Box::new(CapitalCoder::new())));
    }
}

fn world() -> SimWorld<Streams> {
    HELD_MAX.set(0);
    SimWorld::of(Setting::default(), Streams(Rc::new(Capitals)))
}

/// Returns head and body of a response.
#[track_caller]
fn parts(text: &str) -> (&str, &str) {
    text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"))
}

#[test]
fn encodes_streams_whatever_their_framing() {
    let mut world = world();
    for (target, expected) in
        [("/ab-cd/", "ABCD."), ("/ab-cd/4", "ABCD."), ("//0", "."), ("/ab-*-cd/4", "ABCD."), ("/*-*/", ".")]
    {
        let mut client = world.send(get(target));
        world.pass(41_000);
        let text = client.text();
        let (head, body) = parts(&text);
        assert!(head.contains("\r\nContent-Encoding: capitals") && !head.contains("X-Of"), "{head}");
        assert!(
            head.contains("\r\nTransfer-Encoding: chunked") && !head.contains("Content-Length"),
            "{head}"
        );
        let (content, end) = dechunked(body);
        assert_eq!(content, expected, "{target}");
        // Of a known length, it has no place for trailers before it has a coder.
        let has_trailers = target.ends_with('/') || target.contains('*');
        assert_eq!(end, if has_trailers { "0\r\nX-End: 1\r\n\r\n" } else { "0\r\n\r\n" }, "{target}");
        let before = client.read().len();
        world.feed(&mut client, get("/x/"));
        assert!(client.text()[before..].ends_with("2\r\nX.\r\n0\r\nX-End: 1\r\n\r\n"), "{target}");
        client.peer.finish();
    }
    let (text, mut client) = world.ask(b"GET /ab-cd/4 HTTP/1.0\r\n\r\n");
    assert_eq!(parts(&text).1, "ABCD.");
    client.assert_closed();
    world.finish(&client);
    assert_eq!((CODERS.get(), world.totals().handler_errors), (0, 0));
}

#[test]
fn encodes_nothing_without_a_body() {
    let mut world = world();
    let (text, mut client) = world.ask(head("HEAD", "/ab/2", ""));
    assert!(parts(&text).0.ends_with("Content-Encoding: capitals"), "{text}");
    assert_eq!((parts(&text).1, CODERS.get()), ("", 0));
    world.feed(&mut client, get("/ab/2"));
    assert!(client.text().ends_with("3\r\nAB.\r\n0\r\n\r\n"));
    world.finish(&client);
}

#[test]
fn sends_what_is_encoded_while_the_handler_waits() {
    let mut world = world();
    let mut client = world.send(get("/ab-*-cd/"));
    assert!(client.text().ends_with("\r\n\r\n2\r\nAB\r\n"), "{}", client.text());
    world.pass(20_000);
    assert!(client.text().contains("2\r\nAB\r\n3\r\nCD.\r\n0\r\n"), "{}", client.text());
    world.finish(&client);
}

#[test]
fn a_handler_waits_for_room_in_the_coder() {
    let mut world = world();
    let piece = "x".repeat(ROOM);
    // Before the first wait there is no coder yet.
    let mut client = world.send(get(&format!("/*-{}/", [&*piece; 9].join("-"))));
    world.pass(20_000);
    let text = client.text();
    let capitals = format!("{}.", "X".repeat(9 * ROOM));
    assert_eq!(dechunked(parts(&text).1).0, capitals);
    assert_eq!(HELD_MAX.get(), ROOM);
    world.finish(&client);
}

#[test]
fn cuts_a_stream_that_ends_short_or_whose_coder_panics() {
    for target in ["/ab/3", "/ab-!/", "/!/", "/ab-*-!/", "/ab-*-?/"] {
        let mut world = world();
        let mut client = world.send(get(target));
        world.pass(20_000);
        assert!(!client.text().contains("0\r\n\r\n"), "{}", client.text());
        client.assert_closed();
        world.finish(&client);
        assert_eq!(
            (CODERS.get(), world.totals().handler_errors + world.totals().handler_panics),
            (0, 1),
            "{target}"
        );
    }
}

#[test]
fn a_client_that_leaves_ends_the_coder() {
    for ms in [0, 1, 30_000] {
        let mut world = world();
        let client = world.send(get("/ab-*-*-*-cd/"));
        world.pass(ms);
        assert_eq!(CODERS.get(), 1);
        client.peer.reset();
        world.end();
        assert_eq!(CODERS.get(), 0);
    }
}
