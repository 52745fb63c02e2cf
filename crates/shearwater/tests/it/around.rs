//! Steps around a deferred response: they wait for it, run once, in order, and may defer it again.

use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use shearwater::engine::Around;
use shearwater::tasks::Order;
use shearwater::testing::{TestResponse, Tested};
use shearwater::{
    App, Call, Failure, Head, Limits, Reading, Request, Response, Service, Status, Timeouts, after, later,
    later_reading, post,
};

const STEP: Duration = Duration::from_millis(10);

/// What a step does with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Sets a field with the status that it sees.
    Looks,
    /// Replaces the body.
    Replaces,
    /// Replaces the body later.
    Defers,
    Panics,
}

/// Wraps a service in a step, as a router or a site does.
struct Wrapped<S> {
    inner: S,
    step: Rc<Step>,
}

struct Step(&'static str, Does);

impl Around for Step {
    fn response(
        self: Rc<Self>,
        key: u64,
        request: &shearwater::engine::Request<'_>,
        response: &mut Response<'_>,
    ) {
        assert_eq!(key, request.path().len() as u64);
        response.field("X-Step", format!("{} {}", self.0, response.status_code()));
        match self.1 {
            Does::Looks => {}
            Does::Replaces => drop(response.status(404).text(self.0)),
            Does::Panics => panic!("on purpose"),
            Does::Defers => {
                let name = self.0;
                response.defer(request, move |mut call| async move {
                    call.sleep(STEP).await;
                    call.response().status(404).text(name);
                });
            }
        }
    }
}

impl<S: Service> Service for Wrapped<S> {
    fn body_policy(&self, head: &shearwater::engine::Head<'_>) -> shearwater::engine::BodyPolicy {
        self.inner.body_policy(head)
    }

    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        response.field("X-Before", self.step.0);
        self.inner.respond(request, response);
        let key = request.path().len() as u64;
        if !response.around(&self.step, key) {
            Rc::clone(&self.step).response(key, request, response);
        }
        response.field("X-Behind", self.step.0);
    }
}

fn app() -> App {
    App::new()
        .route(
            "/sync",
            shearwater::get(|_: &Request, response: &mut Response| {
                response.field("X-Handler", "1").text("handler");
            }),
        )
        .route(
            "/ready",
            shearwater::get(later(async |call: &mut Call| {
                call.response().field("X-Handler", "1").text("handler");
            })),
        )
        .route(
            "/later",
            shearwater::get(later(async |call: &mut Call| {
                call.sleep(STEP).await;
                call.response().field("X-Handler", "1").text("handler");
            })),
        )
        .route(
            "/stream",
            shearwater::get(later(async |call: &mut Call| {
                call.sleep(STEP).await;
                call.response().field("X-Handler", "1").text("replaced by the stream");
                let mut body = call.begin(Head::new(Status::OK).length(7));
                body.push(b"handler");
                body.end()
            })),
        )
        .route(
            "/failed",
            shearwater::get(later(async |call: &mut Call| {
                call.response().field("X-Handler", "1").text("handler");
                Err::<(), _>(Failure::internal("on purpose"))
            })),
        )
}

/// Two steps around the app's routes: `inner` and `outer`.
fn tested(inner: Does, outer: Does) -> Tested {
    let routes = app().build().expect("valid routes");
    let app = App::new().mount("/", move |worker| {
        let inner = Wrapped { inner: routes.service(worker), step: Rc::new(Step("inner", inner)) };
        Wrapped { inner, step: Rc::new(Step("outer", outer)) }
    });
    Tested::new(app).expect("valid routes")
}

/// Returns a response's own fields in order, and its body.
fn seen(response: &TestResponse) -> (u16, Vec<String>, String) {
    let own = response.fields.iter().filter(|(name, _)| name.to_ascii_lowercase().starts_with("x-"));
    let fields = own.map(|(name, value)| format!("{name}: {value}")).collect();
    (response.status, fields, response.text().to_owned())
}

fn get(tested: &mut Tested, target: &str) -> (u16, Vec<String>, String) {
    let mut client = tested.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    tested.pass(STEP * 5);
    seen(&client.response().expect("a response"))
}

#[test]
fn each_step_runs_once_and_sees_the_handlers_status() {
    let mut tested = tested(Does::Looks, Does::Looks);
    for target in ["/ready", "/later", "/stream"] {
        let (status, fields, body) = get(&mut tested, target);
        assert_eq!((status, &*body), (200, "handler"), "{target}");
        let expected = [
            "X-Before: outer",
            "X-Before: inner",
            "X-Handler: 1",
            "X-Step: inner 200",
            "X-Step: outer 200",
            "X-Behind: inner",
            "X-Behind: outer",
        ];
        assert_eq!(fields, expected, "{target}");
    }
    let (status, fields, _) = get(&mut tested, "/sync");
    assert_eq!((status, fields.len()), (200, 7));
}

#[test]
fn an_outer_step_sees_what_an_inner_one_made_of_the_response() {
    for inner in [Does::Replaces, Does::Defers] {
        let mut tested = tested(inner, Does::Looks);
        for target in ["/sync", "/ready", "/later"] {
            let (status, fields, body) = get(&mut tested, target);
            assert_eq!((status, &*body), (404, "inner"), "{target} {inner:?}");
            let steps: Vec<_> = fields.iter().filter(|field| field.starts_with("X-Step")).collect();
            assert_eq!(steps, ["X-Step: inner 200", "X-Step: outer 404"], "{target} {inner:?}");
        }
    }
}

#[test]
fn both_steps_may_defer() {
    let mut tested = tested(Does::Defers, Does::Defers);
    for target in ["/sync", "/later"] {
        let (status, fields, body) = get(&mut tested, target);
        assert_eq!((status, &*body), (404, "outer"), "{target}");
        assert_eq!(fields.iter().filter(|field| field.starts_with("X-Step")).count(), 2, "{target}");
    }
}

/// The head of a stream is all that can still be changed.
#[test]
fn a_step_that_replaces_the_body_of_a_stream_fails_the_request() {
    for inner in [Does::Replaces, Does::Defers] {
        let (status, _, body) = get(&mut tested(inner, Does::Looks), "/stream");
        assert_eq!((status, &*body), (500, "Internal Server Error\n"), "{inner:?}");
    }
}

/// No bytes are queued for a response without a body, so its head may become another one.
#[test]
fn a_step_may_replace_a_stream_that_is_not_sent() {
    for (inner, expected) in [(Does::Looks, "200 7"), (Does::Replaces, "404 5"), (Does::Defers, "404 5")] {
        let mut tested = tested(inner, Does::Looks);
        let mut client = tested.connect();
        client.send("HEAD /stream HTTP/1.1\r\nHost: test\r\n\r\nHEAD /sync HTTP/1.1\r\nHost: test\r\n\r\n");
        tested.pass(STEP * 5);
        let text = String::from_utf8_lossy(client.unread()).into_owned();
        let heads: Vec<&str> = text.split_terminator("\r\n\r\n").collect();
        assert_eq!(heads.len(), 2, "{text}");
        for head in heads {
            let (status, length) = expected.split_once(' ').expect("two numbers");
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{inner:?}: {head}");
            assert!(head.contains(&format!("Content-Length: {length}")), "{inner:?}: {head}");
        }
    }
}

#[test]
fn a_handler_that_fails_reaches_the_steps_as_500() {
    let (status, fields, body) = get(&mut tested(Does::Looks, Does::Replaces), "/failed");
    assert_eq!((status, &*body), (404, "outer"));
    let behind = ["X-Step: inner 500", "X-Step: outer 500", "X-Behind: inner", "X-Behind: outer"];
    assert_eq!(fields, behind, "as if an immediate handler had failed");
}

#[test]
fn a_panic_in_a_step_fails_the_request() {
    for target in ["/sync", "/ready", "/later", "/stream"] {
        let (status, fields, body) = get(&mut tested(Does::Panics, Does::Looks), target);
        assert_eq!((status, &*body), (500, "Internal Server Error\n"), "{target}");
        assert!(!fields.iter().any(|field| field.starts_with("X-Step")), "{target}: {fields:?}");
    }
}

#[test]
fn a_deferred_step_ends_with_its_client() {
    let limits = Limits { calls_max: 1, ..Limits::default() };
    let routes = app().build().expect("valid routes");
    let app = App::new().mount("/", move |worker| Wrapped {
        inner: routes.service(worker),
        step: Rc::new(Step("only", Does::Defers)),
    });
    let mut tested = Tested::with(app, limits, Timeouts::default(), Order::Fifo).expect("valid routes");
    let [mut first, mut second] = [(); 2].map(|()| tested.connect());
    for client in [&mut first, &mut second] {
        client.send("GET /sync HTTP/1.1\r\nHost: test\r\n\r\n");
        tested.settle();
    }
    assert_eq!(second.response().map(|response| response.status), Some(503));
    first.reset();
    tested.settle();
    assert_eq!(get(&mut tested, "/later").0, 404, "the first one's place is free");
}

#[test]
fn responses_of_a_connection_stay_in_order() {
    let mut tested = tested(Does::Defers, Does::Looks);
    let mut client = tested.connect();
    for target in ["later", "sync", "ready", "sync"] {
        client.send(format!("GET /{target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    }
    tested.settle();
    assert!(client.response().is_none());
    tested.pass(STEP * 10);
    for _ in 0..4 {
        let response = client.response().expect("all have responses");
        assert_eq!((response.status, response.text()), (404, "inner"));
    }
}

/// A call continues the response that deferred it.
#[test]
fn a_call_begins_with_what_was_set_before() {
    let app = App::new().route(
        "/",
        shearwater::get(|request: &Request, response: &mut Response| {
            response.status(202).field("X-Before", "1").text("before");
            response.defer(request, |call| async move { drop(call) });
            // The last one wins, and still begins with what was set before.
            response.defer(request, |mut call| async move {
                call.response().field("X-Call", "1");
            });
        }),
    );
    let response = Tested::new(app).expect("valid routes").get("/");
    assert_eq!(
        seen(&response),
        (202, vec!["X-Before: 1".to_owned(), "X-Call: 1".to_owned()], "before".to_owned())
    );
}

/// Returns what a client gets that sends this text to an app.
fn sent(app: App, text: &str) -> String {
    let mut tested = Tested::new(app).expect("valid routes");
    let mut client = tested.connect();
    client.send(text);
    tested.pass(STEP * 10);
    String::from_utf8_lossy(client.unread()).into_owned()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

#[test]
fn the_page_of_a_failed_handler_may_be_streamed() {
    for is_sync in [false, true] {
        let table = match is_sync {
            true => shearwater::get(|_: &Request, response: &mut Response| {
                response.field("bad name", "x");
            }),
            false => {
                shearwater::get(later(async |_: &mut Call| Err::<(), _>(Failure::internal("on purpose"))))
            }
        };
        let app = App::new().route("/", table).with(after(|request: &Request, response: &mut Response| {
            assert_eq!(response.status_code(), 500);
            response.defer(request, |mut call| async move {
                call.begin(Some(5));
                call.push(b"sorry");
            });
        }));
        let text = sent(app, GET);
        assert!(text.starts_with("HTTP/1.1 500 ") && text.ends_with("\r\n\r\nsorry"), "{text}");
    }
}

/// A stream of a response without a body has no bytes for a head that announces some.
#[test]
fn a_stream_that_is_not_sent_is_no_body_of_another_status() {
    for length in [None, Some(7)] {
        let app = App::new()
            .route(
                "/",
                shearwater::get(later(async move |call: &mut Call| {
                    let head = Head::new(Status::NO_CONTENT);
                    let mut body = call.begin(length.map_or(head.clone(), |length| head.length(length)));
                    body.push(b"handler");
                    body.end()
                })),
            )
            .with(after(|request: &Request, response: &mut Response| {
                response.defer(request, |mut call| async move {
                    call.sleep(STEP).await;
                    call.response().status(200);
                });
            }));
        let text = sent(app, &GET.repeat(2));
        assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{text}");
        assert_eq!(text.matches("Content-Length: 0\r\n\r\n").count(), 2, "{text}");
    }
}

#[test]
fn a_routers_further_steps_wait_for_one_that_defers() {
    for target in ["/sync", "/later"] {
        let app = App::new()
            .route(
                "/sync",
                shearwater::get(|_: &Request, response: &mut Response| {
                    response.status(404).text("none");
                }),
            )
            .route(
                "/later",
                shearwater::get(later(async |call: &mut Call| {
                    call.sleep(STEP).await;
                    call.response().status(404).text("none");
                })),
            )
            // The step that was added last runs first.
            .with(after(|_: &Request, response: &mut Response| {
                let status = response.status_code();
                response.field("X-Seen", status.to_string()).status(410);
            }))
            .with(after(|request: &Request, response: &mut Response| {
                response.defer(request, |mut call| async move {
                    call.sleep(STEP).await;
                    call.response().text("page");
                });
            }));
        let (status, fields, body) = get(&mut Tested::new(app).expect("valid routes"), target);
        assert_eq!((status, fields, &*body), (410, vec!["X-Seen: 404".to_owned()], "page"), "{target}");
    }
}

#[test]
fn a_steps_future_is_polled_whatever_the_handler_has_polled() {
    let app = App::new()
        .route(
            "/",
            shearwater::get(|_: &Request, response: &mut Response| {
                let polled = response.poll_first(|_| Poll::<()>::Pending);
                assert!(matches!(polled, Some(Poll::Pending)));
                response.status(503).text("busy");
            }),
        )
        .with(after(|request: &Request, response: &mut Response| {
            response.defer(request, |mut call| async move {
                call.response().text("page");
            });
        }));
    assert_eq!(get(&mut Tested::new(app).expect("valid routes"), "/").2, "page");
}

#[test]
fn a_connection_is_kept_if_the_body_is_complete_when_a_step_responds() {
    let app = App::new()
        .route(
            "/",
            post(later_reading(async |call: &mut Call<(), Reading>| {
                call.response().status(404);
            })),
        )
        .with(after(|request: &Request, response: &mut Response| {
            response.defer(request, |mut call| async move {
                call.sleep(STEP * 5).await;
                call.response().text("page");
            });
        }));
    let mut tested = Tested::new(app).expect("valid routes");
    let mut client = tested.connect();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n01234");
    tested.pass(STEP);
    client.send("56789");
    tested.pass(STEP * 10);
    let response = client.response().expect("a response");
    assert_eq!((response.status, response.field("Connection")), (404, None));
    assert!(!client.is_closed());
}

/// A rejected step skips those around it, and the handler's own fault is still reported.
#[test]
fn a_step_that_is_rejected_skips_the_others() {
    let limits = Limits { calls_max: 1, ..Limits::default() };
    let inner = App::new().route(
        "/",
        shearwater::get(|request: &Request, response: &mut Response| {
            response.defer(request, |call| async move {
                call.cut("on purpose");
                std::future::pending::<()>().await;
            });
        }),
    );
    let routes = inner.build().expect("valid routes");
    let app = App::new().mount("/", move |worker| {
        let inner = Wrapped { inner: routes.service(worker), step: Rc::new(Step("inner", Does::Defers)) };
        Wrapped { inner, step: Rc::new(Step("outer", Does::Looks)) }
    });
    let mut tested = Tested::with(app, limits, Timeouts::default(), Order::Fifo).expect("valid routes");
    let (status, fields, _) = get(&mut tested, "/");
    assert_eq!(status, 503);
    assert!(!fields.iter().any(|field| field.starts_with("X-Step: outer")), "{fields:?}");
    assert_eq!(tested.totals().handler_errors, 1);
}
