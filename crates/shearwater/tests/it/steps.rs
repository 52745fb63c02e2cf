//! Steps around each kind of handler: they run once, when the response is complete, and all kinds send the same bytes.

mod kinds;

use std::cell::RefCell;
use std::time::Duration;

use shearwater::tasks::{Order, yield_now};
use shearwater::testing::Tested;
use shearwater::{
    App, Call, Limits, Line, Request, Response, Timeouts, after, buffered, get, later, line, post,
};

use self::kinds::{Cases, Deferring, FAILED, NOT_ALLOWED, NOT_FOUND, STREAMED, Seen, WAIT, WHOLE, app, fill};
use crate::served::{Served, drivers, here};

fn tested(app: App) -> Tested {
    Tested::new(app).expect("valid routes")
}

/// Returns the bytes of a request, with a body if the method is `POST`.
fn request(method: &str, target: &str, fields: &str) -> String {
    let body = if method == "POST" { "Content-Length: 4\r\n\r\nbody" } else { "\r\n" };
    format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{fields}{body}")
}

/// Sends a request and returns all bytes of the response but the date.
fn exchange<S>(tested: &mut Tested<S>, method: &str, target: &str) -> String {
    let mut client = tested.connect();
    client.send(request(method, target, ""));
    tested.pass(WAIT * 2);
    dateless(client.unread())
}

fn dateless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: ")).collect()
}

/// Checks that all cases have the same bytes, and that the steps have seen each once, with this status.
#[track_caller]
fn are_alike(cases: Cases<'_>, status: u16, seen: &Seen, exchange: impl Fn(&str, &str) -> String) -> String {
    let mut first: Option<String> = None;
    for (method, target) in cases {
        let bytes = exchange(method, target);
        assert_eq!(seen.take(), [((*target).to_owned(), status)], "{method} {target}: {bytes}");
        assert!(bytes.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {target}: {bytes}");
        let first = first.get_or_insert_with(|| bytes.clone());
        assert_eq!(bytes, *first, "{method} {target}");
    }
    first.expect("a case")
}

/// Checks all groups of cases.
fn all_are_alike(seen: &Seen, exchange: impl Fn(&str, &str) -> String) {
    let exchange = &exchange;
    let whole = are_alike(&[WHOLE, STREAMED].concat(), 203, seen, exchange);
    let way = "X-Way: handler\r\nX-Way: scope 203\r\nX-Way: app 203\r\n";
    assert!(whole.contains(way) && whole.ends_with("\r\n\r\nthe same"), "{whole}");
    for (cases, status, body) in [
        (NOT_FOUND, 404, "Not Found\n"),
        (NOT_ALLOWED, 405, "Method Not Allowed\n"),
        (FAILED, 500, "Internal Server Error\n"),
    ] {
        let bytes = are_alike(cases, status, seen, exchange);
        assert!(bytes.contains(&format!("X-Way: scope {status}\r\nX-Way: app {status}\r\n")), "{bytes}");
        assert!(bytes.ends_with(&format!("\r\n\r\n{body}")) && !bytes.contains("handler"), "{bytes}");
    }
}

#[test]
fn steps_see_the_response_of_each_kind_of_handler() {
    let seen = Seen::default();
    let tested = RefCell::new(tested(app(&seen, |scope| scope)));
    all_are_alike(&seen, |method, target| exchange(&mut tested.borrow_mut(), method, target));
    let gets: Vec<_> =
        [WHOLE, STREAMED].concat().into_iter().filter(|(method, _)| *method == "GET").collect();
    let heads: Vec<_> = gets.iter().map(|(_, target)| ("HEAD", *target)).collect();
    let head =
        are_alike(&heads, 203, &seen, |method, target| exchange(&mut tested.borrow_mut(), method, target));
    assert!(head.contains("Content-Length: 8\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn steps_see_each_kind_on_each_driver() {
    for driver in drivers() {
        let seen = Seen::default();
        let served = Served::of(here().driver(driver), app(&seen, |scope| scope));
        all_are_alike(&seen, |method, target| {
            let mut client = served.connect();
            client.send(request(method, target, "Connection: close\r\n"));
            dateless(&client.rest())
        });
    }
}

#[test]
fn a_step_replaces_the_response_of_each_kind_of_handler() {
    let replace = |scope: App| {
        scope.with(after(|_: &Request<'_>, response: &mut Response<'_>| {
            response.keep_fields(&[]).status(410).html("<p>replaced").field("X-Way", "replaced");
        }))
    };
    let seen = Seen::default();
    let tested = RefCell::new(tested(app(&seen, replace)));
    let exchange = |method: &str, target: &str| exchange(&mut tested.borrow_mut(), method, target);
    let replaced = are_alike(&[WHOLE, NOT_FOUND, NOT_ALLOWED].concat(), 410, &seen, exchange);
    assert!(replaced.contains("X-Way: replaced\r\nX-Way: scope 410\r\nX-Way: app 410\r\n"), "{replaced}");
    assert!(replaced.contains("text/html") && replaced.ends_with("\r\n\r\n<p>replaced"), "{replaced}");
    // A connection still ends after a failure.
    let failed = are_alike(FAILED, 410, &seen, exchange);
    assert!(failed.contains("Connection: close\r\n") && failed.ends_with("<p>replaced"), "{failed}");
}

#[test]
fn a_step_fails_the_response_of_each_kind_of_handler() {
    let fail = |scope: App| {
        scope.with(after(|_: &Request<'_>, response: &mut Response<'_>| {
            response.field("no token", "");
        }))
    };
    let mut tested = tested(app(&Seen::default(), fail));
    let sent: Vec<_> = [WHOLE, STREAMED, NOT_FOUND]
        .concat()
        .into_iter()
        .map(|(method, target)| (target, exchange(&mut tested, method, target)))
        .collect();
    let (_, first) = &sent[0];
    assert!(
        first.starts_with("HTTP/1.1 500 ") && first.ends_with("\r\n\r\nInternal Server Error\n"),
        "{first}"
    );
    for (target, bytes) in &sent {
        assert_eq!(bytes, first, "{target}");
    }
}

/// The name of an app and the number of the worker.
type State = (&'static str, usize);

/// Adds a field with what a step can find out about a request.
fn describe(request: &Request<'_, State>, response: &mut Response<'_>) {
    let (id, (name, worker)) = (request.param_raw("id"), request.state());
    let (method, path, query, body) =
        (request.method(), request.path(), request.query_raw(), request.kept_body());
    let described = format!("{method:?} {path} {query:?} {id:?} {name} {worker} {body:?}");
    response.field("X-Request", described);
}

#[test]
fn steps_see_the_request_of_each_kind_of_handler() {
    type Add = fn(App<State>) -> App<State>;
    let kinds: [Add; 2] = [
        |app| {
            let handler = |_: &Request<State>, body: &[u8], response: &mut Response| {
                assert_eq!(body, b"body");
                fill(response);
            };
            app.route("/user/{id}", post(buffered(100, handler)))
        },
        |app| {
            let handler = |request: &Request<State>, _: &[u8], response: &mut Response| {
                shearwater::Service::respond(&Deferring, request, response);
            };
            app.route("/user/{id}", post(buffered(100, handler)))
        },
    ];
    let sent = kinds.map(|add| {
        let named = |name: &'static str| App::with_state(move |worker| (name, worker)).with(after(describe));
        let inner = named("inner").scope("/app", add).build().expect("valid routes");
        let app = named("outer")
            .scope("/in", |scope| add(scope.with(after(describe))))
            .mount("/app", move |worker| inner.service(worker));
        let mut tested = Tested::new(app).expect("valid routes");
        ["/in/user/7?q=1", "/app/user/8"].map(|target| exchange(&mut tested, "POST", target))
    });
    let [in_scope, mounted] = &sent[0];
    let body = "Some([98, 111, 100, 121])";
    let described = format!("X-Request: Post /in/user/7 Some(\"q=1\") Some(\"7\") outer 0 {body}\r\n");
    assert_eq!(in_scope.matches(&described).count(), 2, "{in_scope}");
    assert!(mounted.contains(&format!("Post /app/user/8 None Some(\"8\") inner 0 {body}\r\n")), "{mounted}");
    for (kind, sent) in sent.iter().enumerate() {
        assert_eq!([&sent[0], &sent[1]], [in_scope, mounted], "{kind}");
    }
}

#[test]
fn steps_run_once_the_response_is_complete() {
    let seen = Seen::default();
    let mut tested = tested(app(&seen, |scope| scope));
    for target in ["/in/async/waits", "/in/coroutine/waits", "/in/async/fails-late"] {
        let mut client = tested.connect();
        client.send(request("GET", target, ""));
        tested.settle();
        assert_eq!((seen.take(), client.unread().len()), (Vec::new(), 0), "{target}");
        tested.pass(WAIT * 2);
        assert_eq!(seen.take().len(), 1, "{target}");
        assert!(client.response().is_some(), "{target}");
    }
    let mut client = tested.connect();
    client.send(request("GET", "/in/async/streams", ""));
    tested.settle();
    assert_eq!(seen.take().len(), 1, "the head of a stream is complete");
    assert!(client.unread().ends_with(b"\r\n\r\n"));
    tested.pass(WAIT * 2);
    assert_eq!((seen.take().len(), client.response().expect("complete").text()), (0, "the same"));
}

fn on_purpose() {
    panic!("on purpose");
}

#[test]
fn steps_skip_what_the_server_says_on_its_own() {
    let seen = Seen::default();
    let app = app(&seen, |scope| {
        scope
            .route("/panics", get(|_: &Request, _: &mut Response| on_purpose()))
            .route("/panics/async", get(later(async |_: &mut Call| on_purpose())))
            .route(
                "/panics/late",
                get(later(async |_: &mut Call| {
                    yield_now().await;
                    on_purpose();
                })),
            )
            .route("/panics/coroutine", get(line(|_: &mut Line| on_purpose())))
    });
    let wait = later(async |call: &mut Call| call.sleep(Duration::from_secs(60)).await);
    let app = app.route("/waits", get(wait));
    let limits = Limits { calls_max: 1, ..Limits::default() };
    let mut tested = Tested::with(app, limits, Timeouts::default(), Order::Fifo).expect("valid routes");
    let panics = ["", "/async", "/late", "/coroutine"].map(|kind| {
        let bytes = exchange(&mut tested, "GET", &format!("/in/panics{kind}"));
        assert!(bytes.starts_with("HTTP/1.1 500 ") && !bytes.contains("X-Way"), "{kind}: {bytes}");
        bytes
    });
    assert!(panics.iter().all(|bytes| *bytes == panics[0]));
    let mut waiting = tested.connect();
    waiting.send(request("GET", "/waits", ""));
    tested.settle();
    let refused = exchange(&mut tested, "GET", "/in/async/waits");
    assert!(refused.starts_with("HTTP/1.1 503 ") && !refused.contains("X-Way"), "{refused}");
    // Its client leaves.
    waiting.reset();
    tested.settle();
    assert_eq!(seen.take(), []);
}

#[test]
fn a_panic_in_a_step_costs_only_its_request() {
    let seen = Seen::default();
    let app = app(&seen, |scope| {
        scope.with(after(|request: &Request<'_>, _: &mut Response<'_>| {
            assert_ne!(request.query_raw(), Some("panic"), "on purpose");
        }))
    });
    let mut tested = tested(app);
    for (method, target) in WHOLE {
        let failed = exchange(&mut tested, method, &format!("{target}?panic"));
        assert!(failed.starts_with("HTTP/1.1 500 ") && !failed.contains("handler"), "{target}: {failed}");
        assert_eq!(seen.take(), []);
        assert!(exchange(&mut tested, method, target).starts_with("HTTP/1.1 203 "), "{target}");
        seen.take();
    }
}

/// As a site does for an error page on a slow disk.
#[test]
fn further_steps_wait_for_one_that_defers() {
    let defer = |scope: App| {
        scope.with(after(|request: &Request<'_>, response: &mut Response<'_>| {
            if response.status_code() == 404 {
                response.keep_fields(&[]);
                response.defer(request, |mut call| async move {
                    call.sleep(WAIT).await;
                    call.response().status(404).field("X-Way", "page").html("<p>page");
                });
            }
        }))
    };
    let seen = Seen::default();
    let tested = RefCell::new(tested(app(&seen, defer)));
    let exchange = |method: &str, target: &str| exchange(&mut tested.borrow_mut(), method, target);
    let page = are_alike(NOT_FOUND, 404, &seen, exchange);
    assert!(page.contains("X-Way: page\r\nX-Way: scope 404\r\nX-Way: app 404\r\n"), "{page}");
    assert!(page.ends_with("\r\n\r\n<p>page"), "{page}");
    are_alike(WHOLE, 203, &seen, exchange);
}

#[test]
fn steps_of_pipelined_requests_run_in_order() {
    let seen = Seen::default();
    let mut tested = tested(app(&seen, |scope| scope));
    let mut client = tested.connect();
    let targets: Vec<_> = [WHOLE, NOT_FOUND].concat();
    let all: String = targets.iter().map(|(method, target)| request(method, target, "")).collect();
    client.send(all);
    tested.pass(WAIT * 4);
    let expected: Vec<_> = targets
        .iter()
        .map(|(_, target)| {
            ((*target).to_owned(), if WHOLE.iter().any(|it| it.1 == *target) { 203 } else { 404 })
        })
        .collect();
    assert_eq!(seen.take(), expected);
    for (_, target) in targets {
        assert!(client.response().is_some(), "{target}");
    }
}
