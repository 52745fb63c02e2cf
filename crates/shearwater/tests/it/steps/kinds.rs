//! An app with a handler of each kind between steps, and the requests for it by the response that they should get.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use shearwater::tasks::yield_now;
use shearwater::{App, Call, CoroutineCall, Request, Response, Service};

use crate::middleware::{note, sign};

/// Time that some handlers wait.
pub(super) const WAIT: Duration = Duration::from_millis(20);

/// Methods and targets of handlers that should send the same bytes.
pub(super) type Cases<'a> = &'a [(&'a str, &'a str)];

pub(super) const WHOLE: Cases = &[
    ("GET", "/in/sync"),
    ("POST", "/in/buffered"),
    ("GET", "/in/async"),
    ("GET", "/in/async/yields"),
    ("GET", "/in/async/waits"),
    ("POST", "/in/async/reads"),
    ("GET", "/in/coroutine"),
    ("GET", "/in/coroutine/waits"),
    ("GET", "/in/service"),
    ("GET", "/in/app/sync"),
    ("GET", "/in/app/async"),
];

/// Heads that are sent before their bodies are complete.
pub(super) const STREAMED: Cases = &[("GET", "/in/async/streams"), ("GET", "/in/coroutine/streams")];

pub(super) const NOT_FOUND: Cases =
    &[("GET", "/in/none"), ("GET", "/in/app/none"), ("GET", "/in/async/404"), ("GET", "/in/coroutine/404")];

pub(super) const NOT_ALLOWED: Cases = &[
    ("DELETE", "/in/sync"),
    ("DELETE", "/in/async"),
    ("DELETE", "/in/coroutine"),
    ("DELETE", "/in/app/async"),
    ("GET", "/in/async/405"),
];

pub(super) const FAILED: Cases = &[
    ("GET", "/in/sync/fails"),
    ("GET", "/in/async/fails"),
    ("GET", "/in/async/fails-late"),
    ("GET", "/in/async/field"),
    ("GET", "/in/coroutine/fails"),
    ("GET", "/in/app/fails"),
];

/// Paths and statuses that the outermost step has seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<(String, u16)>>>);

impl Seen {
    fn add(&self, request: &Request<'_>, response: &Response<'_>) {
        let seen = (request.path().to_owned(), response.status_code());
        self.0.lock().expect("no panic").push(seen);
    }

    pub(super) fn take(&self) -> Vec<(String, u16)> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

/// The response of each kind of handler.
pub(super) fn fill(response: &mut Response<'_>) {
    response.status(203).field("X-Way", "handler").text("the same");
}

fn fill_head(response: &mut Response<'_>) {
    response.status(203).field("X-Way", "handler").content_type("text/plain; charset=utf-8");
}

/// Defers without an async handler of a router.
pub(super) struct Deferring;

impl Service for Deferring {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        response.defer(request, |mut call| async move {
            yield_now().await;
            fill(&mut call.response());
        });
    }
}

/// An app with steps for everything and for `/in`, below which these further steps and all handlers are.
pub(super) fn app(seen: &Seen, steps: impl Fn(&mut App)) -> App {
    let mut app = App::new();
    let seen = seen.clone();
    app.after(move |request: &Request<'_>, response: &mut Response<'_>| seen.add(request, response));
    app.before(note("app")).after(sign("app"));
    app.scope("/in", |scope| {
        scope.before(note("scope")).after(sign("scope"));
        steps(scope);
        add_sync(scope);
        add_async(scope);
        add_coroutines(scope);
        add_mounts(scope);
    });
    app
}

fn add_sync(scope: &mut App) {
    scope.get("/sync", |_: &Request, response: &mut Response| fill(response));
    scope
        .post("/buffered", |request: &Request, response: &mut Response| {
            assert_eq!(request.body(), b"body");
            fill(response);
        })
        .buffer(100);
    scope.get("/sync/fails", |_: &Request, response: &mut Response| {
        fill(response);
        response.field("no token", "");
    });
}

fn add_async(scope: &mut App) {
    scope.get_async("/async", async |call: &mut Call| fill(&mut call.response()));
    scope.get_async("/async/yields", async |call: &mut Call| {
        yield_now().await;
        fill(&mut call.response());
    });
    scope.get_async("/async/waits", async |call: &mut Call| {
        call.sleep(WAIT).await;
        fill(&mut call.response());
    });
    scope
        .post_async("/async/reads", async |call: &mut Call| {
            assert_eq!(call.read_to_end(100).await.expect("it is short"), b"body");
            fill(&mut call.response());
        })
        .read();
    scope.get_async("/async/streams", async |call: &mut Call| {
        fill_head(&mut call.response());
        call.begin(Some(8));
        call.sleep(WAIT).await;
        // A client that has left needs no body.
        let _ = call.send(b"the same").await;
    });
    scope.get_async("/async/404", async |call: &mut Call| {
        yield_now().await;
        call.response().status(404).text("Not Found\n");
    });
    scope.get_async("/async/405", async |call: &mut Call| {
        call.response().status(405).field("Allow", "GET, HEAD, OPTIONS").text("Method Not Allowed\n");
    });
    scope.get_async("/async/fails", async |call: &mut Call| {
        fill(&mut call.response());
        Err::<(), _>("on purpose")
    });
    scope.get_async("/async/fails-late", async |call: &mut Call| {
        fill(&mut call.response());
        call.sleep(WAIT).await;
        Err::<(), _>("on purpose")
    });
    scope.get_async("/async/field", async |call: &mut Call| {
        fill(&mut call.response());
        call.response().field("no token", "");
    });
}

fn add_coroutines(scope: &mut App) {
    scope.get_coroutine("/coroutine", |line: &mut CoroutineCall| fill(&mut line.response()));
    scope.get_coroutine("/coroutine/waits", |line: &mut CoroutineCall| {
        line.sleep(WAIT);
        fill(&mut line.response());
    });
    scope.get_coroutine("/coroutine/streams", |line: &mut CoroutineCall| {
        fill_head(&mut line.response());
        line.begin(Some(8));
        // A client that has left needs no body.
        let _ = line.send(b"the same");
    });
    scope.get_coroutine("/coroutine/404", |line: &mut CoroutineCall| {
        line.response().status(404).text("Not Found\n");
    });
    scope.get_coroutine("/coroutine/fails", |line: &mut CoroutineCall| {
        fill(&mut line.response());
        line.yield_now();
        Err::<(), _>("on purpose")
    });
}

fn add_mounts(scope: &mut App) {
    scope.mount("/service", |_| Deferring);
    let mut inner = App::new();
    inner.get("/in/app/sync", |_: &Request, response: &mut Response| fill(response));
    inner.get_async("/in/app/async", async |call: &mut Call| {
        yield_now().await;
        fill(&mut call.response());
    });
    inner.get_async("/in/app/fails", async |call: &mut Call| {
        fill(&mut call.response());
        Err::<(), _>("on purpose")
    });
    let inner = inner.build().expect("valid routes");
    scope.mount("/app", move |worker| inner.service(worker));
}
