//! Deferred handlers that misbehave, or act in an unusual order.

use std::cell::RefCell;
use std::future::{Ready, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use shearwater_engine::tasks::Sleep;
use shearwater_engine::{Call, Request, Response};

use super::app::{ON_PURPOSE, prebuilt};
use super::waiting::{Presence, later, never};

/// Size of a send of `/flood`, and number of sends.
const FLOOD: (usize, usize) = (10_000, 1000);
/// Output of `/speaks-first` before it reads the body.
const FIRST_BYTES: usize = 600_000;
/// Length of the response at `/large`.
const LARGE_BYTES: usize = 1_000_000;

thread_local! {
    /// Calls that their handlers have moved elsewhere.
    static KEPT: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
    /// A sleep that is never awaited.
    static FORGOTTEN: RefCell<Option<Pin<Box<Sleep>>>> = const { RefCell::new(None) };
}

/// Returns true if the route's handler reads the body itself.
pub(crate) fn takes_body(route: &str) -> bool {
    matches!(route, "flood" | "speaks-first")
}

/// Defers the response, if the route is one of these.
pub(crate) fn respond(route: &str, request: &Request<'_>, response: &mut Response<'_>) -> bool {
    match route {
        "prebuilt-stream" => response.defer(request, prebuilt_stream),
        "bad-field-stream" => response.defer(request, bad_field_stream),
        "twice" => {
            response.defer(request, never);
            response.defer(request, later);
        }
        "begins-and-panics" => {
            response.defer(request, never);
            panic!("{ON_PURPOSE}");
        }
        "make-panics" => response.defer(request, make_panics),
        "forgets-sleep" => response.defer(request, forgets_sleep),
        "flood" => response.defer(request, flood),
        "speaks-first" => response.defer(request, speaks_first),
        "large" => response.defer(request, large),
        "keeps" => response.defer(request, keeps),
        "lets-go" => {
            KEPT.with(RefCell::take);
            response.text("let go\n");
        }
        _ => return false,
    }
    true
}

async fn prebuilt_stream(mut call: Call) {
    let _presence = Presence::new();
    call.response().prebuilt(&prebuilt());
    call.send(b"streamed").await.expect("the client is there");
}

/// Ignores all errors.
async fn bad_field_stream(mut call: Call) {
    let _presence = Presence::new();
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
    let _presence = Presence::new();
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
    let _presence = Presence::new();
    let piece = vec![b'x'; FLOOD.0];
    for _ in 0..FLOOD.1 {
        call.send(&piece).await.expect("the client is there");
    }
}

/// Sends a large piece before it reads the body.
async fn speaks_first(mut call: Call) {
    let _presence = Presence::new();
    call.send(&vec![b'x'; FIRST_BYTES]).await.expect("the client is there");
    while call.read().await.is_some() {}
}

async fn large(mut call: Call) {
    let _presence = Presence::new();
    call.response().body(vec![b'x'; LARGE_BYTES]);
}

/// Moves its call elsewhere, and never ends.
async fn keeps(mut call: Call) {
    let _presence = Presence::new();
    call.response().text("kept\n");
    KEPT.with_borrow_mut(|kept| kept.push(call));
    std::future::pending::<()>().await;
}
