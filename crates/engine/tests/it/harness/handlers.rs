//! Deferred handlers: ready at once, in a later turn or after a time, as the last digit of their path says; and
//! some that misbehave.

use std::cell::{Cell, RefCell};
use std::future::{Ready, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use shearwater_engine::tasks::{Sleep, yield_now};
use shearwater_engine::{Call, Request, Response};

use super::app::{DIGEST_START, ON_PURPOSE, REFUSED_AT, digest, prebuilt, text_of};

/// Maximum number of yields.
const YIELDS: usize = 3;
/// Duration of a sleep.
const SLEEP_MS: u64 = 3;
/// Interval between the lines of `/ticks`.
pub(crate) const TICK_MS: u64 = 20_000;
/// Announced length of `/announced`.
pub(crate) const ANNOUNCED_BYTES: u64 = 10;
/// Size of a send of `/flood`, and number of sends.
const FLOOD: (usize, usize) = (10_000, 1000);
/// Output of `/speaks-first` before it reads the body.
const FIRST_BYTES: usize = 600_000;
/// Length of the response at `/large`.
const LARGE_BYTES: usize = 1_000_000;

thread_local! {
    /// Handlers that have started and are neither complete nor dropped.
    static AT_WORK: Cell<usize> = const { Cell::new(0) };
    /// Handlers among them that sleep for a moment.
    static ASLEEP: Cell<usize> = const { Cell::new(0) };
    /// Calls that their handlers have moved elsewhere.
    static KEPT: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
    /// A sleep that is never awaited.
    static FORGOTTEN: RefCell<Option<Pin<Box<Sleep>>>> = const { RefCell::new(None) };
}

type PresenceCount = std::thread::LocalKey<Cell<usize>>;

/// Counts a handler during its lifetime.
struct Presence(&'static PresenceCount);

impl Presence {
    fn new() -> Self {
        Self::among(&AT_WORK)
    }

    fn among(count: &'static PresenceCount) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Returns true if a handler of this thread is in a short sleep.
pub(crate) fn is_one_asleep() -> bool {
    ASLEEP.get() > 0
}

/// Returns the number of handlers of this thread in progress.
pub(crate) fn at_work() -> usize {
    AT_WORK.get()
}

/// Returns true if the route's handler reads the body itself.
pub(crate) fn takes_body(route: &str) -> bool {
    matches!(
        route,
        "pulled"
            | "pulled-refuses"
            | "pulled-panics"
            | "pulled-ends-in-panic"
            | "taken"
            | "mirror"
            | "unread"
            | "unread-ticks"
            | "hungry"
            | "at-once"
            | "loyal-taken"
            | "flood"
            | "speaks-first"
            | "trailers"
    )
}

/// Defers the response, if the route is one of these.
pub(crate) fn respond(route: &str, request: &Request<'_>, response: &mut Response<'_>) -> bool {
    match route {
        "later" => defer(request, response, later),
        "polled-now" => polled_now(request, response),
        "taken" => defer(request, response, taken),
        "pulled" | "pulled-refuses" | "pulled-panics" | "pulled-ends-in-panic" => {
            defer(request, response, pulled);
        }
        "mirror" => defer(request, response, mirror),
        "unread" => defer(request, response, unread),
        "hungry" => defer(request, response, hungry),
        "at-once" => drop(response.text("at once\n")),
        "stream" => defer(request, response, stream),
        "ticks" | "unread-ticks" => defer(request, response, ticks),
        "announced" => defer(request, response, announced),
        "stream-status" => defer(request, response, stream_status),
        "cut" => defer(request, response, cut),
        "later-panics" => defer(request, response, later_panics),
        "never" | "buffer-never" => defer(request, response, never),
        "loyal" | "loyal-taken" => defer(request, response, loyal),
        "background" => defer(request, response, background),
        "prebuilt-stream" => defer(request, response, prebuilt_stream),
        "bad-field-stream" => defer(request, response, bad_field_stream),
        "twice" => {
            defer(request, response, never);
            defer(request, response, later);
        }
        "begins-and-panics" => {
            defer(request, response, never);
            panic!("{ON_PURPOSE}");
        }
        "make-panics" => defer(request, response, make_panics),
        "forgets-sleep" => defer(request, response, forgets_sleep),
        "flood" => defer(request, response, flood),
        "speaks-first" => defer(request, response, speaks_first),
        "large" => defer(request, response, large),
        "trailers" => defer(request, response, trailers),
        "keeps" => defer(request, response, keeps),
        "lets-go" => {
            KEPT.with(RefCell::take);
            response.text("let go\n");
        }
        _ => return false,
    }
    true
}

/// Defers the response to a handler, which counts as at work.
fn defer<F>(request: &Request<'_>, response: &mut Response<'_>, handler: fn(Call) -> F)
where
    F: Future<Output = ()> + 'static,
{
    response.defer(request, move |call| {
        let handling = handler(call);
        async {
            let _presence = Presence::new();
            handling.await;
        }
    });
}

fn digit(call: &Call) -> u8 {
    call.path().bytes().last().unwrap_or(b'0') - b'0'
}

/// Waits in one of four ways.
async fn wait(call: &Call) {
    match digit(call) % 4 {
        0 => {}
        1 => yield_now().await,
        2 => {
            let _asleep = Presence::among(&ASLEEP);
            call.sleep(Duration::from_millis(SLEEP_MS)).await;
        }
        _ => {
            for _ in 0..YIELDS {
                yield_now().await;
            }
        }
    }
}

async fn later(mut call: Call) {
    wait(&call).await;
    let text =
        text_of(call.head().method_name(), call.head().target_str(), call.kept_body().unwrap_or_default());
    call.response().text(&text);
}

/// Yields as often as the digit says; polled before there is a call.
fn polled_now(request: &Request<'_>, response: &mut Response<'_>) {
    let digit = request.path().bytes().last().unwrap_or(b'0') - b'0';
    let mut waiting = Box::pin(async move {
        let presence = Presence::new();
        for _ in 0..digit {
            yield_now().await;
        }
        presence
    });
    match response.poll_first(|cx| waiting.as_mut().poll(cx)) {
        Some(Poll::Ready(_)) => drop(response.text("at once\n")),
        Some(Poll::Pending) => response.defer(request, |mut call| async move {
            let _presence = waiting.await;
            call.response().text("later\n");
        }),
        None => {}
    }
}

async fn taken(mut call: Call) {
    let (mut len, mut sum) = (0, DIGEST_START);
    while let Some(piece) = call.read().await {
        assert!(!piece.is_empty(), "a piece of a body is never empty");
        (len, sum) = (len + piece.len(), digest(sum, piece));
        wait(&call).await;
    }
    let (method, target) = (call.head().method_name(), call.head().target_str());
    let text = format!("{method} {target} {len} {sum:016x}\n");
    call.response().text(&text);
}

/// Reads the body without waiting for anything else; rejects it or panics as its route says.
pub(crate) async fn pulled(mut call: Call) {
    let route = call.path().split('/').nth(1).unwrap_or_default().to_owned();
    let (mut len, mut sum) = (0, DIGEST_START);
    while let Some(piece) = call.read().await {
        assert!(!piece.is_empty(), "a piece of a body is never empty");
        (len, sum) = (len + piece.len(), digest(sum, piece));
        match &*route {
            "pulled-refuses" if len > REFUSED_AT => {
                call.response().status(422).text("The body was refused.\n");
                return;
            }
            "pulled-panics" => panic!("{ON_PURPOSE}"),
            _ => {}
        }
    }
    assert!(route != "pulled-ends-in-panic", "{ON_PURPOSE}");
    assert!(call.kept_body().is_none_or(<[u8]>::is_empty), "a body that is read isn't buffered");
    let (method, target) = (call.head().method_name(), call.head().target_str());
    let text = format!("{method} {target} {len} {sum:016x}\n");
    call.response().text(&text);
}

/// Echoes the body as it arrives.
async fn mirror(mut call: Call) {
    call.response().status(202).content_type("application/octet-stream");
    call.begin(None);
    while let Some(piece) = call.read().await {
        let piece = piece.to_vec();
        call.send(&piece).await.expect("the client is there");
    }
}

/// Responds without reading the body.
async fn unread(mut call: Call) {
    wait(&call).await;
    call.response().text("unread\n");
}

/// Delays, then reads the body piece by piece.
async fn hungry(mut call: Call) {
    call.sleep(Duration::from_secs(20)).await;
    let mut len = 0;
    while let Some(piece) = call.read().await {
        len += piece.len();
        call.sleep(Duration::from_millis(100)).await;
    }
    call.response().text(&format!("{len}\n"));
}

/// Sends as many lines as the query says.
async fn stream(mut call: Call) {
    let lines = call.query().and_then(|query| query.parse().ok()).unwrap_or(3);
    for line in 0..lines {
        wait(&call).await;
        call.send(format!("line {line}\n").as_bytes()).await.expect("the client is there");
    }
}

/// Sends as many lines as the query says, at intervals.
async fn ticks(mut call: Call) {
    let lines = call.query().and_then(|query| query.parse().ok()).unwrap_or(0);
    for line in 0..lines {
        call.sleep(Duration::from_millis(TICK_MS)).await;
        if call.send(format!("tick {line}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Announces a length, and sends as much as the query says.
async fn announced(mut call: Call) {
    let sent = call.query().and_then(|query| query.parse().ok()).unwrap_or(0);
    call.begin(Some(ANNOUNCED_BYTES));
    for _ in 0..sent {
        wait(&call).await;
        call.send(b"x").await.expect("the client is there");
    }
}

/// Streams with the status in the query.
async fn stream_status(mut call: Call) {
    let status = call.query().and_then(|query| query.parse().ok()).expect("a status");
    wait(&call).await;
    call.response().status(status);
    call.begin(None);
    for _ in 0..3 {
        call.send(b"streamed").await.expect("the client is there");
        wait(&call).await;
    }
}

async fn cut(mut call: Call) {
    if digit(&call) > 0 {
        call.send(b"begun").await.expect("the client is there");
        wait(&call).await;
    }
    call.cut("it was asked to");
}

async fn later_panics(mut call: Call) {
    if call.query() == Some("begun") {
        call.send(b"begun").await.expect("the client is there");
    }
    wait(&call).await;
    panic!("{ON_PURPOSE}");
}

async fn never(call: Call) {
    std::future::pending::<()>().await;
    drop(call);
}

/// Waits as long as the client does.
async fn loyal(mut call: Call) {
    call.end_with_client();
    never(call).await;
}

/// Continues after its response is complete.
async fn background(mut call: Call) {
    let timers = std::rc::Rc::clone(call.timers());
    call.response().text("responded\n");
    drop(call);
    timers.sleep(Duration::from_millis(500)).await;
}

async fn prebuilt_stream(mut call: Call) {
    call.response().prebuilt(&prebuilt());
    call.send(b"streamed").await.expect("the client is there");
}

/// Ignores all errors.
async fn bad_field_stream(mut call: Call) {
    call.response().field("X-Value", "a\r\nX-Other: b");
    let _ = call.send(b"streamed").await;
    call.sleep(Duration::from_millis(50)).await;
    let _ = call.send(b"streamed on").await;
}

fn make_panics(call: Call) -> Ready<()> {
    let _call = call;
    panic!("{ON_PURPOSE}");
}

/// Begins a sleep and keeps it unawaited, beyond its own end.
async fn forgets_sleep(mut call: Call) {
    let mut sleep = Box::pin(call.timers().sleep(Duration::from_secs(1)));
    poll_fn(|cx| {
        assert!(sleep.as_mut().poll(cx).is_pending(), "a second is not over at once");
        Poll::Ready(())
    })
    .await;
    FORGOTTEN.set(Some(sleep));
    call.response().text("forgotten\n");
}

/// Streams much, and never reads the body.
async fn flood(mut call: Call) {
    let piece = vec![b'x'; FLOOD.0];
    for _ in 0..FLOOD.1 {
        call.send(&piece).await.expect("the client is there");
    }
}

/// Sends a large piece before it reads the body.
async fn speaks_first(mut call: Call) {
    call.send(&vec![b'x'; FIRST_BYTES]).await.expect("the client is there");
    while call.read().await.is_some() {}
}

/// Streams the body back, then its trailers. The query is the stream's length, or the name of another trailer.
async fn trailers(mut call: Call) {
    let query = call.query().unwrap_or_default().to_owned();
    call.begin(query.parse().ok());
    while let Some(piece) = call.read().await {
        let piece = piece.to_vec();
        assert_eq!(call.trailers().count(), 0, "none before the end of the body");
        call.send(&piece).await.expect("the client is there");
    }
    let fields: Vec<_> = call.trailers().map(|field| (field.name.to_owned(), field.value.to_vec())).collect();
    assert_eq!(call.read().await, None);
    assert_eq!(call.trailers().count(), fields.len(), "they stay");
    for (name, value) in fields {
        call.push_trailer(&name, value);
    }
    if !query.is_empty() {
        call.push_trailer(&query, "x");
    }
}

async fn large(mut call: Call) {
    call.response().body(vec![b'x'; LARGE_BYTES]);
}

/// Moves its call elsewhere, and never ends.
async fn keeps(mut call: Call) {
    call.response().text("kept\n");
    call.push_trailer("x-kept", vec![b'x'; 15_000]);
    KEPT.with_borrow_mut(|kept| kept.push(call));
    std::future::pending::<()>().await;
}
