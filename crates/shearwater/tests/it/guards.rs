//! Guards: run before the body and before all steps, may wait, and once for each request.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::served::Served;
use shearwater::engine::GuardsPassed;
use shearwater::tasks::Order;
use shearwater::testing::Tested;
use shearwater::{
    App, Call, Cors, Limits, Reading, Request, Response, Routes, RoutesService, Service, Timeouts, after,
    buffered, later_reading,
};

const WAIT: Duration = Duration::from_millis(100);

/// Calls of each guard, and of the handlers.
#[derive(Debug, Default)]
struct Counts {
    outer: AtomicUsize,
    inner: AtomicUsize,
    dropped: AtomicUsize,
}

struct OnDrop(Arc<Counts>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Responds as the query says: `no` refuses, `later` passes after a wait, `later-no` refuses after one, `now` passes at once
/// by a future.
fn guard(
    count: fn(&Counts) -> &AtomicUsize,
    counts: &Arc<Counts>,
) -> impl Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + use<> {
    let counts = Arc::clone(counts);
    move |request, response| {
        count(&counts).fetch_add(1, Ordering::Relaxed);
        let (waits, passes) = match request.query_raw() {
            Some("no") => {
                response.status(403).text("no");
                return ControlFlow::Break(());
            }
            Some("later") => (true, true),
            Some("later-no") => (true, false),
            Some("now") => (false, true),
            _ => {
                response.field("X-Passing", "lost").text("lost");
                return ControlFlow::Continue(());
            }
        };
        let held = OnDrop(Arc::clone(&counts));
        response.defer(request, move |mut call| async move {
            let _held = held;
            if waits {
                call.sleep(WAIT).await;
            }
            match passes {
                true => call.pass(),
                false => {
                    call.response().status(403).text("no");
                }
            }
        });
        ControlFlow::Break(())
    }
}

fn define(app: App, counts: &Arc<Counts>) -> App {
    let inner = Arc::clone(counts);
    app.with(shearwater::guard(guard(|counts| &counts.outer, counts)))
        .with(after(|_, response| {
            response.field("X-After", response.status_code().to_string());
        }))
        .scope("/in", move |app| {
            app.with(shearwater::guard(guard(|counts| &counts.inner, &inner))).route(
                "/kept",
                shearwater::post(buffered(10, |_: &Request, body: &[u8], response: &mut Response| {
                    response.body(body);
                })),
            )
        })
        .route(
            "/discarded",
            shearwater::post(|request: &Request, response: &mut Response| {
                response.text(if request.kept_body().is_none() { "discarded" } else { "kept" });
            }),
        )
        .route(
            "/read",
            shearwater::post(later_reading(async |call: &mut Call<(), Reading>| {
                let body = call.read_to_end(100).await.expect("a short body");
                call.response().body(&body);
            })),
        )
        .route(
            "/page",
            shearwater::get(|_: &Request, response: &mut Response| {
                response.text("page");
            }),
        )
        .route(
            "/page/{name}",
            shearwater::get(|request: &Request, response: &mut Response| {
                response.text(request.param_raw("name").unwrap_or_default());
            }),
        )
}

fn tested() -> (Tested, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    let app = define(App::new(), &counts);
    (Tested::new(app).expect("valid routes"), counts)
}

fn post(target: &str, body: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Sends a request and returns all bytes of the response but its date.
fn exchange(tested: &mut Tested, pieces: &[&str]) -> (String, bool) {
    let mut client = tested.connect();
    for piece in pieces {
        client.send(piece);
        tested.settle();
    }
    tested.pass(WAIT * 2);
    let text = String::from_utf8(client.unread().to_vec()).expect("text");
    let lines = text.split_inclusive('\n').filter(|line| !line.starts_with("Date:"));
    (lines.collect(), client.is_closed())
}

#[test]
fn a_request_that_passes_is_served_as_without_a_wait() {
    let (mut tested, _) = tested();
    for (path, body) in [
        ("/in/kept", "12345"),
        ("/in/kept", "12345678901"),
        ("/in/kept", ""),
        ("/discarded", "abc"),
        ("/read", "abc"),
        ("/nowhere", "abc"),
    ] {
        let (expected, is_closed) = exchange(&mut tested, &[&post(path, body)]);
        assert!(!expected.contains("lost"), "{expected}");
        for query in ["later", "now"] {
            let request = post(&format!("{path}?{query}"), body);
            assert_eq!(exchange(&mut tested, &[&request]), (expected.clone(), is_closed), "{path} {query}");
            let (head, end) = request.split_at(request.len() - body.len());
            let in_pieces = exchange(&mut tested, &[head, end]);
            assert_eq!(in_pieces, (expected.clone(), is_closed), "{path} {query} in pieces");
        }
    }
    for path in ["/page", "/page/a", "/nowhere"] {
        let expected = exchange(&mut tested, &[&get(path)]);
        assert!(!expected.0.contains("lost"), "{}", expected.0);
        for query in ["later", "now"] {
            assert_eq!(
                exchange(&mut tested, &[&get(&format!("{path}?{query}"))]),
                expected,
                "{path} {query}"
            );
        }
    }
}

#[test]
fn each_guard_runs_once_unless_it_has_to_wait() {
    let (mut tested, counts) = tested();
    for query in ["", "later", "now"] {
        let (text, _) = exchange(&mut tested, &[&post(&format!("/in/kept?{query}"), "abc")]);
        assert!(text.ends_with("\r\n\r\nabc"), "{text}");
        let runs = [&counts.outer, &counts.inner].map(|count| count.swap(0, Ordering::Relaxed));
        assert_eq!(runs, [1, 1], "{query}");
    }
}

#[test]
fn refuses_before_the_body_and_before_100_continue() {
    let (mut tested, _) = tested();
    for query in ["no", "later-no"] {
        let head = format!(
            "POST /in/kept?{query} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        );
        for head in [
            &head,
            &head.replace("Expect: 100-continue\r\n", ""),
            &head.replace("Content-Length: 5", "Transfer-Encoding: chunked"),
        ] {
            let mut client = tested.connect();
            client.send(head);
            tested.pass(WAIT * 2);
            let text = String::from_utf8(client.unread().to_vec()).expect("text");
            assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
            assert!(
                text.contains("\r\nConnection: close\r\n") && text.contains("\r\nX-After: 403\r\n"),
                "{text}"
            );
        }
    }
    // Sends the 100 only once the guard has let the request pass.
    let mut client = tested.connect();
    client
        .send("POST /in/kept?later HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    tested.settle();
    assert_eq!(client.unread(), b"");
    tested.pass(WAIT * 3);
    assert!(client.unread().starts_with(b"HTTP/1.1 100 Continue\r\n"), "{:?}", client.unread());
    client.send("12345");
    tested.settle();
    assert!(client.unread().ends_with(b"12345"));
}

#[test]
fn a_refused_request_keeps_the_connection_if_it_is_whole() {
    let (mut tested, _) = tested();
    let mut client = tested.connect();
    client.send(
        post("/in/kept?no", "abc") + &get("/page?later-no") + &post("/in/kept?later", "abc") + &get("/page"),
    );
    tested.pass(WAIT * 5);
    let mut next = || client.response().map(|response| (response.status, response.text().to_owned()));
    assert_eq!(next(), Some((403, "no".to_owned())));
    assert_eq!(next(), Some((403, "no".to_owned())));
    assert_eq!(next(), Some((200, "abc".to_owned())));
    assert_eq!(next(), Some((200, "page".to_owned())));
    assert!(!client.is_closed());
}

#[test]
fn the_wait_ends_with_the_client() {
    let (mut tested, counts) = tested();
    for request in [post("/in/kept?later", "abc"), get("/page?later"), post("/read?later", "abc")] {
        let mut client = tested.connect();
        client.send(&request);
        tested.settle();
        assert_eq!(counts.dropped.load(Ordering::Relaxed), 0, "{request}");
        client.reset();
        tested.settle();
        assert_eq!(counts.dropped.swap(0, Ordering::Relaxed), 1, "{request}");
    }
}

#[test]
fn a_client_that_has_sent_everything_gets_its_response() {
    let (mut tested, _) = tested();
    let whole = post("/in/kept?later", "abc");
    for (request, status) in
        [(get("/page?later"), 200), (whole.clone(), 200), (whole[..whole.len() - 1].to_owned(), 400)]
    {
        let mut client = tested.connect();
        client.send(&request);
        client.finish();
        tested.pass(WAIT * 2);
        assert_eq!(client.response().map(|response| response.status), Some(status), "{request}");
        assert!(client.is_closed());
    }
}

#[test]
fn a_waiting_request_counts_once_toward_the_connection() {
    let counts = Arc::<Counts>::default();
    let app = define(App::new(), &counts);
    let limits = Limits { requests_per_connection_max: 3, ..Limits::default() };
    let mut tested = Tested::with(app, limits, Timeouts::default(), Order::Fifo).expect("valid routes");
    let mut client = tested.connect();
    client.send(get("/page?later") + &post("/in/kept?later", "abc") + &get("/page?later") + &get("/page"));
    tested.pass(WAIT * 10);
    let statuses: Vec<_> = std::iter::from_fn(|| client.response().map(|response| response.status)).collect();
    assert_eq!(statuses, [200, 200, 200]);
    assert!(client.is_closed());
}

/// A service without `guard` around routes with guards.
struct Opaque(RoutesService);

impl Service for Opaque {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        self.0.respond(request, response);
    }
}

/// A service that forwards `guard`.
struct Forwarding(RoutesService);

impl Service for Forwarding {
    fn guard(
        &self,
        request: &shearwater::engine::Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<GuardsPassed> {
        self.0.guard(request, response)
    }

    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        self.0.respond(request, response);
    }
}

fn mounted<S: Service>(wrap: fn(RoutesService) -> S) -> (Tested, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    let inner = define(App::new(), &counts);
    let routes: Routes = inner.build().expect("valid routes");
    let app = App::new()
        .with(after(|_, response| {
            response.field("X-Outermost", "1");
        }))
        .mount("/", move |worker| wrap(routes.service(worker)));
    (Tested::new(app).expect("valid routes"), counts)
}

#[test]
fn guards_of_a_mounted_service_run_within_those_around_it() {
    let (mut tested, counts) = mounted(Forwarding);
    for query in ["", "later", "now"] {
        for request in [post(&format!("/discarded?{query}"), "abc"), get(&format!("/page?{query}"))] {
            let (text, _) = exchange(&mut tested, &[&request]);
            assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
            assert_eq!(text.matches("X-Outermost").count(), 1, "{text}");
            assert_eq!(counts.outer.swap(0, Ordering::Relaxed), 1, "{query}");
        }
    }
    for request in [post("/discarded?no", "abc"), get("/page?no"), get("/page?later-no")] {
        let (text, _) = exchange(&mut tested, &[&request]);
        assert!(text.starts_with("HTTP/1.1 403 ") && text.contains("X-Outermost"), "{text}");
    }
}

#[test]
fn guards_behind_a_service_that_does_not_know_them_still_refuse() {
    let (mut tested, _) = mounted(Opaque);
    for (request, status) in [
        (post("/discarded?no", "abc"), "403"),
        (post("/discarded", "abc"), "200"),
        (get("/page?no"), "403"),
        // Its body would be lost.
        (post("/discarded?later", "abc"), "500"),
    ] {
        let (text, _) = exchange(&mut tested, &[&request]);
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{request}\n{text}");
    }
}

#[test]
fn responds_to_preflights_before_other_guards() {
    let cors = Cors::origins(["https://a.example"]).headers("X-A").credentials();
    let app = App::new()
        .with(cors.for_methods("GET, POST").expect("a policy"))
        .with(shearwater::guard(|_, response| {
            response.status(401);
            ControlFlow::Break(())
        }))
        .route("/", shearwater::get(|_: &Request, _: &mut Response| {}));
    let mut tested = Tested::new(app).expect("valid routes");
    let mut ask =
        |method: &str, headers: &str| tested.ask(format!("{method} / HTTP/1.1\r\nHost: a\r\n{headers}\r\n"));
    let asks = "Access-Control-Request-Method: POST\r\n";
    let preflight = ask("OPTIONS", &format!("Origin: https://a.example\r\n{asks}"));
    assert_eq!((preflight.status, preflight.field("Access-Control-Allow-Methods")), (204, Some("GET, POST")));
    assert_eq!(preflight.field("Access-Control-Allow-Origin"), Some("https://a.example"));
    let other = ask("OPTIONS", &format!("Origin: https://b.example\r\n{asks}"));
    assert_eq!(
        (other.status, other.field("Access-Control-Allow-Origin"), other.field("Vary")),
        (204, None, Some("Origin"))
    );
    let refused = ask("GET", "Origin: https://a.example\r\n");
    assert_eq!(
        (refused.status, refused.field("Access-Control-Allow-Origin")),
        (401, Some("https://a.example"))
    );
    assert_eq!(ask("OPTIONS", asks).status, 401, "without an origin it is no preflight");
    assert!(Cors::any().credentials().for_methods("GET").is_err());
}

/// On the wire: by HTTP/2, too, where content arrives while a guard waits.
#[test]
fn requests_with_bodies_pass_a_guard_that_waits() {
    let counts = Arc::<Counts>::default();
    let app = define(App::new(), &counts);
    let served = Served::app(app);
    for (path, body) in [("/in/kept", "12345"), ("/in/kept", ""), ("/discarded", "abc"), ("/read", "abc")] {
        let post = |query: &str| {
            let mut client = served.connect();
            let response = client.send_body("POST", &format!("{path}{query}"), &[], body.as_bytes());
            (response.status, response.field("X-After").map(str::to_owned), response.body)
        };
        let expected = post("");
        assert_eq!(expected.0, 200, "{path}");
        for query in ["?later", "?now"] {
            assert_eq!(post(query), expected, "{path}{query} {body:?}");
        }
    }
    assert_eq!(served.connect().send_body("POST", "/read?later-no", &[], b"abc").status, 403);
}
