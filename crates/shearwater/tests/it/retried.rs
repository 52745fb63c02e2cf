//! Requests that are repeated once something is there: only the last response counts, and middleware runs once.

use std::any::Any;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use shearwater::tasks::Order;
use shearwater::testing::Tested;
use shearwater::{App, Limits, Request, Response, Timeouts};
use shearwater_engine::limits::RETRIES_MAX;

/// Time between a call and the next.
const STEP: Duration = Duration::from_millis(10);

/// Number of a repeated call, from 1 on; 0 for the first.
fn call(request: &Request<'_>) -> usize {
    request.retried::<usize>().copied().unwrap_or(0)
}

/// Has the request repeated until this call, and sets what the next ones discard.
fn is_repeated(until: usize, request: &Request<'_>, response: &mut Response<'_>) -> bool {
    let call = call(request);
    if call == until {
        return false;
    }
    response.status(404).field("X-Discarded", "1").text("discarded");
    response.retry_when(request, |timers| {
        let sleep = timers.sleep(STEP);
        async move {
            sleep.await;
            Rc::new(call + 1) as Rc<dyn Any>
        }
    });
    true
}

fn app() -> App {
    let mut app = App::new();
    app.get("/{calls}", |request: &Request, response: &mut Response| {
        let until = request.param("calls").and_then(|calls| calls.parse().ok()).expect("a number");
        if !is_repeated(until, request, response) {
            response.field("X-Calls", call(request).to_string()).text("done");
        }
    });
    app
}

fn tested(app: App) -> Tested {
    Tested::new(app).expect("valid routes")
}

#[test]
fn only_the_last_response_is_sent() {
    let mut tested = tested(app());
    for calls in [0, 1, 2, usize::from(RETRIES_MAX)] {
        let response = tested.get(&format!("/{calls}"));
        assert_eq!((response.status, response.text()), (200, "done"), "{calls}");
        assert_eq!(response.field("X-Calls"), Some(&*calls.to_string()));
        assert_eq!(response.field("X-Discarded"), None);
    }
}

#[test]
fn repeats_a_request_a_bounded_number_of_times() {
    let mut tested = tested(app());
    assert_eq!(tested.get(&format!("/{}", usize::from(RETRIES_MAX) + 1)).status, 500);
}

#[test]
fn responses_of_a_connection_stay_in_order() {
    let mut tested = tested(app());
    let mut client = tested.connect();
    for calls in [2, 0, 1, 0] {
        client.send(format!("GET /{calls} HTTP/1.1\r\nHost: test\r\n\r\n"));
    }
    tested.settle();
    assert!(client.response().is_none());
    tested.pass(STEP * 3);
    for calls in [2, 0, 1, 0] {
        let response = client.response().expect("all have responses");
        assert_eq!(response.field("X-Calls"), Some(&*calls.to_string()));
    }
}

#[test]
fn middleware_runs_once() {
    let counts: Arc<[AtomicUsize; 4]> = Arc::default();
    let count = |number: usize| {
        let counts = Arc::clone(&counts);
        move || counts[number].fetch_add(1, Relaxed)
    };
    let (outer, inner, after_inner, after_outer) = (count(0), count(1), count(2), count(3));
    let mut within = app();
    within.before(move |_: &Request, response: &mut Response| {
        inner();
        response.field("X-Before", "inner");
        ControlFlow::Continue(())
    });
    within.after(move |_: &Request, response: &mut Response| {
        after_inner();
        let status = response.status_code().to_string();
        response.field("X-After", status);
    });
    let within = within.build().expect("valid routes");
    let mut app = App::new();
    app.before(move |_: &Request, response: &mut Response| {
        outer();
        response.field("X-Before", "outer");
        ControlFlow::Continue(())
    });
    app.after(move |_: &Request, _: &mut Response| {
        after_outer();
    });
    app.mount("/", move |worker| within.service(worker));
    let mut tested = tested(app);
    let fields = |tested: &mut Tested, target: &str| {
        let response = tested.get(target);
        let fields = response.fields.iter().filter(|(name, _)| name.starts_with("X-") && name != "X-Calls");
        fields.cloned().collect::<Vec<_>>()
    };
    let immediate = fields(&mut tested, "/0");
    assert_eq!(immediate.len(), 3);
    for (requests, target) in [(2, "/1"), (3, "/3")] {
        assert_eq!(fields(&mut tested, target), immediate, "{target}");
        assert_eq!(counts.each_ref().map(|count| count.load(Relaxed)), [requests; 4], "{target}");
    }
}

/// Sets a field around another service.
struct Wrapper(shearwater::RoutesService);

impl shearwater::Service for Wrapper {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        response.field("X-Wrapper", "before");
        self.0.respond(request, response);
        response.field("X-Wrapper", "behind");
    }
}

#[test]
fn a_service_around_a_router_sets_its_fields_once() {
    let mut inner = app();
    inner.before(|_: &Request, response: &mut Response| {
        response.field("X-Inner", "1");
        ControlFlow::Continue(())
    });
    let inner = inner.build().expect("valid routes");
    let mut app = App::new();
    app.mount("/", move |worker| Wrapper(inner.service(worker)));
    let mut tested = tested(app);
    let [immediate, repeated] = ["/0", "/2"].map(|target| {
        let fields = tested.get(target).fields;
        fields.into_iter().filter(|(name, _)| name != "Date" && name != "X-Calls").collect::<Vec<_>>()
    });
    assert_eq!(immediate.iter().filter(|(name, _)| name.starts_with("X-")).count(), 3);
    assert_eq!(repeated, immediate);
}

/// A guard must not be passed because another router's was.
#[test]
fn a_guard_that_has_not_run_yet_runs_in_the_repeated_call() {
    struct Switch(shearwater::RoutesService);
    impl shearwater::Service for Switch {
        fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
            if !is_repeated(1, request, response) {
                self.0.respond(request, response);
            }
        }
    }
    let mut inner = App::new();
    inner.before(|_: &Request, response: &mut Response| {
        response.status(401).text("guarded");
        ControlFlow::Break(())
    });
    inner.get("/", |_: &Request, response: &mut Response| {
        response.text("secret");
    });
    let inner = inner.build().expect("valid routes");
    let mut app = App::new();
    app.before(|_: &Request, _: &mut Response| ControlFlow::Continue(()));
    app.mount("/", move |worker| Switch(inner.service(worker)));
    let response = tested(app).get("/");
    assert_eq!((response.status, response.text()), (401, "guarded"));
}

#[test]
fn a_body_and_a_head_request_are_repeated_too() {
    let mut app = app();
    app.post("/echo", |request: &Request, response: &mut Response| {
        if !is_repeated(2, request, response) {
            response.body(request.body());
        }
    })
    .buffer(1000);
    let mut tested = tested(app);
    assert_eq!(tested.post("/echo", "a body").text(), "a body");
    let mut client = tested.connect();
    client.send("HEAD /1 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    tested.pass(STEP * 2);
    let text = String::from_utf8_lossy(client.unread()).into_owned();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    assert!(text.contains("Content-Length: 4\r\n") && text.contains("X-Calls: 1\r\n"), "{text}");
}

#[test]
fn a_panic_in_a_repeated_call_fails_the_request() {
    let mut app = app();
    app.get("/panic", |request: &Request, response: &mut Response| {
        assert!(is_repeated(1, request, response), "on purpose");
    });
    assert_eq!(tested(app).get("/panic").status, 500);
}

#[test]
fn a_repeated_request_counts_as_deferred() {
    let limits = Limits { calls_max: 1, ..Limits::default() };
    let mut tested = Tested::with(app(), limits, Timeouts::default(), Order::Fifo).expect("valid routes");
    let [mut first, mut second] = [(); 2].map(|()| tested.connect());
    for client in [&mut first, &mut second] {
        client.send("GET /1 HTTP/1.1\r\nHost: test\r\n\r\n");
        tested.settle();
    }
    assert_eq!(second.response().map(|response| response.status), Some(503));
    first.reset();
    tested.settle();
    assert_eq!(tested.get("/1").status, 200, "the first one's place is free");
}

#[test]
fn a_repeated_call_may_defer() {
    let mut app = App::new();
    app.get("/", |request: &Request, response: &mut Response| {
        if !is_repeated(1, request, response) {
            response.defer(request, |mut call| async move {
                call.sleep(STEP).await;
                call.response().text("later");
            });
        }
    });
    assert_eq!(tested(app).get("/").text(), "later");
}
