//! An app with a handler of each kind between steps, and the requests for it by the response that they should get.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use shearwater::tasks::yield_now;
use shearwater::{
    App, Call, Failure, Gone, Head, Line, Reading, Request, Response, Service, Status, after, buffered, get,
    later, later_reading, line, post,
};

use crate::middleware::sign;

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

fn stream_head() -> Head {
    let head = Head::new(Status::new(203)).field("X-Way", "handler").length(8);
    head.field("Content-Type", "text/plain; charset=utf-8")
}

/// Defers without an async handler of a router.
pub(super) struct Deferring;

impl Service for Deferring {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        response.defer(request, |mut call| async move {
            yield_now().await;
            fill(&mut call.response());
        });
    }
}

/// An app with steps for everything and for `/in`, below which these further steps and all handlers are.
pub(super) fn app(seen: &Seen, steps: impl Fn(App) -> App) -> App {
    let seen = seen.clone();
    App::new()
        .with(after(move |request: &Request<'_>, response: &mut Response<'_>| seen.add(request, response)))
        .with(after(sign("app")))
        .scope("/in", |scope| {
            let scope = steps(scope.with(after(sign("scope"))));
            add_mounts(add_coroutines(add_async(add_sync(scope))))
        })
}

fn add_sync(scope: App) -> App {
    scope
        .route("/sync", get(|_: &Request, response: &mut Response| fill(response)))
        .route(
            "/buffered",
            post(buffered(100, |_: &Request, body: &[u8], response: &mut Response| {
                assert_eq!(body, b"body");
                fill(response);
            })),
        )
        .route(
            "/sync/fails",
            get(|_: &Request, response: &mut Response| {
                fill(response);
                response.field("no token", "");
            }),
        )
}

fn add_async(scope: App) -> App {
    scope
        .route("/async", get(later(async |call: &mut Call| fill(&mut call.response()))))
        .route(
            "/async/yields",
            get(later(async |call: &mut Call| {
                yield_now().await;
                fill(&mut call.response());
            })),
        )
        .route(
            "/async/waits",
            get(later(async |call: &mut Call| {
                call.sleep(WAIT).await;
                fill(&mut call.response());
            })),
        )
        .route(
            "/async/reads",
            post(later_reading(async |call: &mut Call<(), Reading>| {
                assert_eq!(call.read_to_end(100).await.expect("it is short"), b"body");
                fill(&mut call.response());
            })),
        )
        .route(
            "/async/streams",
            get(later(async |call: &mut Call| {
                let mut body = call.begin(stream_head());
                body.sleep(WAIT).await;
                body.send("the same").await?;
                Ok::<_, Gone>(body.end())
            })),
        )
        .route(
            "/async/404",
            get(later(async |call: &mut Call| {
                yield_now().await;
                call.response().status(404).text("Not Found\n");
            })),
        )
        .route(
            "/async/405",
            get(later(async |call: &mut Call| {
                call.response().status(405).field("Allow", "GET, HEAD, OPTIONS").text("Method Not Allowed\n");
            })),
        )
        .route(
            "/async/fails",
            get(later(async |call: &mut Call| {
                fill(&mut call.response());
                Err::<(), _>(Failure::internal("on purpose"))
            })),
        )
        .route(
            "/async/fails-late",
            get(later(async |call: &mut Call| {
                fill(&mut call.response());
                call.sleep(WAIT).await;
                Err::<(), _>(Failure::internal("on purpose"))
            })),
        )
        .route(
            "/async/field",
            get(later(async |call: &mut Call| {
                fill(&mut call.response());
                call.response().field("no token", "");
            })),
        )
}

fn add_coroutines(scope: App) -> App {
    scope
        .route("/coroutine", get(line(|line: &mut Line| fill(&mut line.response()))))
        .route(
            "/coroutine/waits",
            get(line(|line: &mut Line| {
                line.sleep(WAIT);
                fill(&mut line.response());
            })),
        )
        .route(
            "/coroutine/streams",
            get(line(|line: &mut Line| {
                let mut body = line.begin(stream_head());
                body.send("the same")?;
                Ok::<_, Gone>(body.end())
            })),
        )
        .route(
            "/coroutine/404",
            get(line(|line: &mut Line| {
                line.response().status(404).text("Not Found\n");
            })),
        )
        .route(
            "/coroutine/fails",
            get(line(|line: &mut Line| {
                fill(&mut line.response());
                line.yield_now();
                Err::<(), _>(Failure::internal("on purpose"))
            })),
        )
}

fn add_mounts(scope: App) -> App {
    let scope = scope.mount("/service", |_| Deferring);
    let inner = App::new()
        .route("/in/app/sync", get(|_: &Request, response: &mut Response| fill(response)))
        .route(
            "/in/app/async",
            get(later(async |call: &mut Call| {
                yield_now().await;
                fill(&mut call.response());
            })),
        )
        .route(
            "/in/app/fails",
            get(later(async |call: &mut Call| {
                fill(&mut call.response());
                Err::<(), _>(Failure::internal("on purpose"))
            })),
        );
    let inner = inner.build().expect("valid routes");
    scope.mount("/app", move |worker| inner.service(worker))
}
