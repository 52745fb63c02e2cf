//! Handlers and bodies that are always ready leave their worker to its other connections.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::routing::{get, post};
use http_body::Frame;
use testkit::TestClient;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::served::{Served, drivers};

/// Items after which a loop ends by itself: seconds of work, so that a neighbour's request arrives before.
const ITEMS_MAX: usize = 5_000_000;

/// More items than any poll may take.
const ITEMS_PER_POLL_MAX: usize = 1000;

/// A loop that ends once a neighbour's request has been served.
#[derive(Clone, Default)]
struct Loop {
    has_begun: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    /// Maximum number of items that one poll has taken.
    longest: Arc<AtomicUsize>,
}

/// An always-ready source that a loop takes from: a channel of tokio's that is refilled as it is read.
struct Source {
    state: Loop,
    channel: (UnboundedSender<()>, UnboundedReceiver<()>),
    taken: usize,
}

impl Source {
    fn new(state: Loop) -> Self {
        let channel = unbounded_channel();
        channel.0.send(()).expect("the receiver is here");
        Self { state, channel, taken: 0 }
    }

    /// Takes an item, or returns `None` at the end.
    fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.state.has_begun.store(true, Ordering::Relaxed);
        if self.taken == ITEMS_MAX || self.state.is_over.load(Ordering::Relaxed) {
            return Poll::Ready(None);
        }
        let polled = self.channel.1.poll_recv(cx);
        if polled.is_ready() {
            self.taken += 1;
            self.channel.0.send(()).expect("the receiver is here");
        }
        polled
    }

    /// Takes items until the end, or until tokio's budget is used up.
    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let before = self.taken;
        let polled = loop {
            match self.poll_take(cx) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) => break Poll::Ready(()),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.state.longest.fetch_max(self.taken - before, Ordering::Relaxed);
        polled
    }
}

async fn all(State(state): State<Loop>) -> String {
    let mut source = Source::new(state);
    std::future::poll_fn(|cx| source.poll_all(cx)).await;
    source.taken.to_string()
}

/// A body that takes all items before its only frame.
struct LoopingBody(Option<Source>);

impl http_body::Body for LoopingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(source) = &mut self.0 else { return Poll::Ready(None) };
        std::task::ready!(source.poll_all(cx));
        let taken = self.0.take().map_or(0, |source| source.taken);
        Poll::Ready(Some(Ok(Frame::data(taken.to_string().into()))))
    }
}

/// A body of empty frames that asks for no budget.
struct EmptyFrames {
    state: Loop,
    /// Frames so far, or `None` at the end.
    count: Option<usize>,
}

impl http_body::Body for EmptyFrames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.state.has_begun.store(true, Ordering::Relaxed);
        let Some(count) = self.count else { return Poll::Ready(None) };
        let is_over = count == ITEMS_MAX || self.state.is_over.load(Ordering::Relaxed);
        self.count = (!is_over).then_some(count + 1);
        Poll::Ready(Some(Ok(Frame::data(if is_over { count.to_string().into() } else { Bytes::new() }))))
    }
}

async fn neighbour(State(state): State<Loop>) -> String {
    state.is_over.store(true, Ordering::Relaxed);
    state.has_begun.load(Ordering::Relaxed).to_string()
}

fn router(state: &Loop) -> Router {
    Router::new()
        .route("/handler", get(all))
        .route("/handler-with-body", post(|state: State<Loop>, _: Bytes| all(state)))
        .route(
            "/body",
            get(async |State(state): State<Loop>| Body::new(LoopingBody(Some(Source::new(state))))),
        )
        .route(
            "/frames",
            get(async |State(state): State<Loop>| Body::new(EmptyFrames { state, count: Some(0) })),
        )
        .route("/neighbour", get(neighbour))
        .with_state(state.clone())
}

/// Returns how many items a loop took before its neighbour was served, and at most in one poll.
fn looped(served: &Served, state: &Loop, ask: impl Fn(&mut TestClient) -> &mut TestClient) -> (usize, usize) {
    let (mut looping, mut neighbour) = (served.connect(), served.connect());
    ask(&mut looping);
    // Both requests are on one worker; the neighbour's is the later one.
    while !state.has_begun.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    assert_eq!(neighbour.get("/neighbour").text(), "true");
    let taken = looping.response("GET").text().parse().expect("a count");
    (taken, state.longest.load(Ordering::Relaxed))
}

#[test]
fn serves_neighbours_of_what_is_always_ready() {
    for driver in drivers() {
        for path in ["/handler", "/handler-with-body", "/body", "/frames"] {
            let state = Loop::default();
            let served = Served::on(driver, router(&state));
            let (taken, longest) = looped(&served, &state, |client| {
                if path == "/handler-with-body" {
                    client.send(b"POST /handler-with-body HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
                } else {
                    client.ask("GET", path, &[])
                }
            });
            assert!(taken < ITEMS_MAX, "{driver:?}: {path} ended before its neighbour");
            assert!(longest <= ITEMS_PER_POLL_MAX, "{driver:?}: {path} took {longest} items in one poll");
        }
    }
}
