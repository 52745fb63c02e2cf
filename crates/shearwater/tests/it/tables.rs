//! Method tables: replies, parameters, state, timeouts, CORS before a mount, and streams that aren't ended.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{
    App, Body, Call, Cors, Failure, Fast, Head, Json, Line, Reading, Reply, Request, Response, Sent, Service,
    StackOptions, Status, buffered, get, guard, later, later_reading, line, on, post, put,
};

fn tested<S>(app: App<S>) -> Tested<S> {
    app.test()
}

/// Returns the status, the media type and the body of a reply, which a function, an async function and a coroutine return.
#[track_caller]
fn replied<R: Reply>(reply: impl Fn() -> R + Clone + Send + Sync + 'static) -> (u16, Option<String>, String) {
    let (of_async, of_coroutine, of_buffered) = (reply.clone(), reply.clone(), reply.clone());
    let app = App::new()
        .route("/sync", get(move |_: &Request| reply()))
        .route("/buffered", get(buffered(0, move |_: &Request, _: &[u8]| of_buffered())))
        .route("/async", get(later(async move |_: &mut Call| of_async())))
        .route("/coroutine", get(line(move |_: &mut Line| of_coroutine())));
    let mut tested = tested(app);
    let [first, others @ ..] = ["/sync", "/buffered", "/async", "/coroutine"].map(|path| {
        let response = tested.get(path);
        (response.status, response.field("Content-Type").map(str::to_owned), response.text().to_owned())
    });
    assert!(others.iter().all(|other| *other == first), "{first:?} {others:?}");
    first
}

#[test]
fn each_kind_of_handler_returns_each_reply() {
    let text = Some("text/plain; charset=utf-8".to_owned());
    let bytes = Some("application/octet-stream".to_owned());
    let is =
        |status: u16, media_type: &Option<String>, body: &str| (status, media_type.clone(), body.to_owned());
    assert_eq!(replied(|| "text"), is(200, &text, "text"));
    assert_eq!(replied(|| "text".to_owned()), is(200, &text, "text"));
    assert_eq!(replied(|| b"bytes".to_vec()), is(200, &bytes, "bytes"));
    assert_eq!(replied(|| &b"bytes"[..]), is(200, &bytes, "bytes"));
    assert_eq!(replied(|| Status::NO_CONTENT), is(204, &None, ""));
    assert_eq!(replied(|| Status::CREATED), is(201, &None, ""));
    assert_eq!(replied(|| Status::CONFLICT), is(409, &text, "Conflict\n"));
    assert_eq!(replied(|| (Status::CREATED, "made")), is(201, &text, "made"));
    assert_eq!(replied(|| Some("some")), is(200, &text, "some"));
    assert_eq!(replied(|| None::<&str>), is(404, &text, "Not Found\n"));
    assert_eq!(replied(|| Ok::<_, Failure>("fine")), is(200, &text, "fine"));
    assert_eq!(replied(|| Json(["a", "b"])), is(200, &Some("application/json".to_owned()), r#"["a","b"]"#));
    let css = || (Head::ok("text/css").field("X-A", "b"), "a {}");
    assert_eq!(replied(css), is(200, &Some("text/css".to_owned()), "a {}"));
    let moved = || (Head::new(Status::SEE_OTHER).field("Location", "/"), ());
    assert_eq!(replied(moved), is(303, &None, ""));
    let refused = || Err::<(), _>(Failure::new(Status::CONFLICT, "it exists"));
    assert_eq!(replied(refused), is(409, &text, "it exists\n"));
    let failed = || "x".parse::<u8>().map(|number| number.to_string());
    assert_eq!(replied(failed), is(500, &text, "Internal Server Error\n"));
    let nested = || Ok::<_, Failure>(Some((Status::ACCEPTED, "later".to_owned())));
    assert_eq!(replied(nested), is(202, &text, "later"));
}

#[test]
fn parses_decoded_parameters() {
    let of_request = |request: &Request| -> Result<String, Failure> {
        let (name, number): (String, u8) = (request.param("name")?, request.param("number")?);
        let page: Option<u16> = request.query("page")?;
        Ok(format!("{name} {number} {page:?} {:?}", request.header("x-key")))
    };
    let of_call = async |call: &mut Call| -> Result<String, Failure> {
        let (name, number): (String, u8) = (call.param("name")?, call.param("number")?);
        let page: Option<u16> = call.query("page")?;
        Ok(format!("{name} {number} {page:?} {:?}", call.header("x-key")))
    };
    let app = App::new()
        .route("/sync/{name}/{number}", get(of_request))
        .route("/async/{name}/{number}", get(later(of_call)))
        .route("/missing", get(|request: &Request| request.param::<String>("name")));
    let mut tested = tested(app);
    for kind in ["/sync", "/async"] {
        for (target, status, text) in [
            ("/a%20b%2Fc/7", 200, "a b/c 7 None Some(\"k\")"),
            ("/%C3%BC/7?a=1&page=%31+", 400, "the query parameter \"page\": invalid digit found in string\n"),
            ("/x/7?pa%67e=12&page=13", 200, "x 7 Some(12) Some(\"k\")"),
            ("/x/7?page", 400, "the query parameter \"page\": cannot parse integer from empty string\n"),
            ("/x/256", 400, "the parameter \"number\": number too large to fit in target type\n"),
            ("/%FF/7", 400, "the parameter \"name\": not percent-encoded UTF-8\n"),
        ] {
            let response = tested.ask(format!("GET {kind}{target} HTTP/1.1\r\nHost: a\r\nX-Key: k\r\n\r\n"));
            assert_eq!((response.status, response.text()), (status, text), "{kind}{target}");
        }
    }
    assert_eq!(tested.get("/missing").status, 500);
    assert_eq!(tested.totals().handler_errors, 1);
}

#[test]
fn one_path_has_several_kinds() {
    let table = get("constant")
        .post(buffered(10, |_: &Request, body: &[u8]| body.to_vec()))
        .put(later(async |_: &mut Call| "async"))
        .patch(later_reading(async |call: &mut Call<(), Reading>| {
            call.read_to_end(10).await.unwrap_or_default()
        }))
        .delete(line(|_: &mut Line| "coroutine"))
        .on("PROPFIND", |_: &Request| Status::MULTI_STATUS);
    let mut tested = tested(App::new().route("/a", table));
    for (method, status, text) in [
        ("GET", 200, "constant"),
        ("POST", 200, "abc"),
        ("PUT", 200, "async"),
        ("PATCH", 200, "abc"),
        ("DELETE", 200, "coroutine"),
        ("PROPFIND", 207, ""),
        ("TRACE", 405, "Method Not Allowed\n"),
    ] {
        let response = tested.ask(format!("{method} /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"));
        assert_eq!((response.status, response.text()), (status, text), "{method}");
    }
    let allowed = tested.ask("OPTIONS /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(allowed.field("Allow"), Some("GET, POST, PUT, PATCH, DELETE, PROPFIND, HEAD, OPTIONS"));
}

#[test]
fn a_timeout_ends_handlers_that_wait() {
    async fn sleep(call: &mut Call) -> &'static str {
        call.sleep(Duration::from_secs(10)).await;
        "late"
    }
    fn sleep_as_line(line: &mut Line) -> &'static str {
        line.sleep(Duration::from_secs(10));
        "late"
    }
    async fn stream(call: &mut Call) -> Sent {
        let mut body = call.begin(Head::ok("text/plain"));
        body.push("begun");
        body.sleep(Duration::from_secs(10)).await;
        body.end()
    }
    fn stream_as_line(line: &mut Line) -> Sent {
        let mut body = line.begin(Head::ok("text/plain"));
        body.push("begun");
        body.sleep(Duration::from_secs(10));
        body.end()
    }
    for (seconds, status) in [(9, 503), (11, 200)] {
        let timeout = Duration::from_secs(seconds);
        let app = App::new()
            .route("/async", get(later(sleep)).post("not limited").timeout(timeout))
            .route("/line", get(line(sleep_as_line)).timeout(timeout))
            .route("/async/stream", get(later(stream)).timeout(timeout))
            .route("/line/stream", get(line(stream_as_line)).timeout(timeout));
        let mut tested = tested(app);
        for path in ["/async", "/line"] {
            assert_eq!(tested.get(path).status, status, "{path}");
            let mut client = tested.connect();
            client.send(format!("GET {path}/stream HTTP/1.1\r\nHost: a\r\n\r\n"));
            tested.pass(Duration::from_secs(12));
            assert_eq!(client.response().is_some(), status == 200, "{path}");
            assert_eq!(client.is_closed(), status != 200, "{path}: cut off");
        }
        assert_eq!(tested.totals().handler_errors, if status == 200 { 0 } else { 2 });
    }
}

#[test]
fn a_timeout_ends_a_coroutine_that_has_no_stack_yet() {
    let sleep = |line: &mut Line| line.sleep(Duration::from_secs(60));
    let app = App::new()
        .stacks(StackOptions { stacks_max: 1, ..StackOptions::default() })
        .route("/long", get(line(sleep)))
        .route("/short", get(line(sleep)).timeout(Duration::from_secs(1)));
    let mut tested = tested(app);
    let mut long = tested.connect();
    long.send("GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
    tested.settle();
    let mut waiting = tested.connect();
    waiting.send("GET /short HTTP/1.1\r\nHost: a\r\n\r\n");
    tested.pass(Duration::from_secs(2));
    assert_eq!(waiting.response().map(|response| response.status), Some(503));
}

/// Begins a stream, of which something has been sent then.
async fn begin(call: &mut Call) -> Body<'_> {
    let mut body = call.begin(Head::ok("text/plain"));
    body.push("begun");
    body.sleep(Duration::from_millis(1)).await;
    body
}

#[test]
fn a_stream_that_is_not_ended_is_cut_off() {
    let forgets = async |call: &mut Call| {
        begin(call).await;
    };
    let replies = async |call: &mut Call| {
        begin(call).await;
        "lost"
    };
    let fails = async |call: &mut Call| -> Result<Sent, Failure> {
        begin(call).await;
        Err(Failure::new(Status::CONFLICT, "too late"))
    };
    let fails_at_its_end = async |call: &mut Call| -> Result<Sent, Failure> {
        let _sent = begin(call).await.end();
        Err(Failure::new(Status::CONFLICT, "too late"))
    };
    let begins_twice = async |call: &mut Call| {
        begin(call).await;
        begin(call).await.end()
    };
    let app = App::new()
        .route("/forgets", get(later(forgets)))
        .route("/replies", get(later(replies)))
        .route("/fails", get(later(fails)))
        .route("/fails-at-its-end", get(later(fails_at_its_end)))
        .route("/begins-twice", get(later(begins_twice)));
    let mut tested = tested(app);
    let paths = ["/forgets", "/replies", "/fails", "/fails-at-its-end", "/begins-twice"];
    for path in paths {
        let mut client = tested.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        tested.pass(Duration::from_millis(100));
        let received = String::from_utf8_lossy(client.unread()).into_owned();
        assert!(
            received.starts_with("HTTP/1.1 200 OK\r\n") && received.contains("begun"),
            "{path}: {received}"
        );
        assert!(!received.contains("lost") && !received.contains("0\r\n\r\n"), "{path}: {received}");
        assert!(client.is_closed(), "{path}");
    }
    assert_eq!(tested.totals().handler_errors, paths.len() as u64);
}

#[test]
fn a_handler_that_fails_or_is_late_upgrades_nothing() {
    let fails = async |call: &mut Call| -> Result<(), Failure> {
        call.upgrade("x", |_| ());
        Err(Failure::new(Status::FORBIDDEN, "not you"))
    };
    let late = async |call: &mut Call| {
        call.upgrade("x", |_| ());
        call.sleep(Duration::from_secs(10)).await;
    };
    let app = App::new()
        .route("/fails", get(later(fails)))
        .route("/late", get(later(late)).timeout(Duration::from_secs(1)));
    let mut tested = tested(app);
    for (path, status) in [("/fails", 403), ("/late", 503)] {
        let offer = "Host: a\r\nConnection: upgrade\r\nUpgrade: x";
        assert_eq!(tested.ask(format!("GET {path} HTTP/1.1\r\n{offer}\r\n\r\n")).status, status, "{path}");
    }
}

#[test]
fn nothing_beside_a_status_or_a_head_is_not_found() {
    let missing = (404, Some("text/plain; charset=utf-8".to_owned()), "Not Found\n".to_owned());
    assert_eq!(replied(|| None::<String>), missing);
    assert_eq!(replied(|| (Status::CREATED, None::<String>)), missing);
    assert_eq!(replied(|| (Head::ok("text/css"), None::<String>)), missing);
}

#[test]
fn a_constant_serves_an_extension_method() {
    let mut tested = tested(App::new().route("/dav", on("PROPFIND", "found")));
    assert_eq!(tested.ask("PROPFIND /dav HTTP/1.1\r\nHost: a\r\n\r\n").text(), "found");
}

#[test]
fn a_scope_that_returns_another_app_is_a_mistake() {
    let app = App::new().route("/", get("kept")).scope("/api", |_| App::new().route("/x", get("x")));
    let errors = app.build().expect_err("what came before would be lost").to_string();
    assert!(errors.contains("the scope /api") && errors.contains("another app"), "{errors}");
}

#[test]
fn the_body_of_a_response_is_passed_on() {
    async fn half(body: &mut Body<'_, u8>, text: &str) -> Result<(), shearwater::Gone> {
        body.send(format!("{text}{}", body.state())).await
    }
    let whole = async |call: &mut Call<u8>| -> Result<Sent, shearwater::Gone> {
        let mut body = call.begin(Head::ok("text/plain"));
        half(&mut body, "a").await?;
        half(&mut body, "b").await?;
        Ok(body.end())
    };
    let mut tested = tested(App::with_state(|worker| worker as u8).route("/", get(later(whole))));
    assert_eq!(tested.get("/").text(), "a0b0");
}

/// A mounted service that responds with the method and the path.
struct Behind;

impl Service for Behind {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut shearwater::Response<'_>) {
        response.text(&format!("behind {} {}", request.head().method_name(), request.path()));
    }
}

#[test]
fn a_preflight_for_another_method_goes_to_the_mount_behind() {
    let table = |text: &'static str| get(text).cors(Cors::any());
    let handler = || get(|_: &Request| "handler").cors(Cors::origins(["https://a.example"]));
    let in_front =
        |app: App| app.route("/a", table("constant")).route("/b", handler()).route("/c/{x}", handler());
    let mut alone = tested(in_front(App::new()));
    let mut before = tested(in_front(App::new()).mount("/", |_| Behind));
    let preflight = |path: &str, method: &str| {
        format!(
            "OPTIONS {path} HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: {method}\r\n\r\n"
        )
    };
    for path in ["/a", "/b", "/c/d"] {
        for tested in [&mut alone, &mut before] {
            let response = tested.ask(preflight(path, "GET"));
            let allowed = response.field("Access-Control-Allow-Methods");
            assert_eq!((response.status, allowed), (204, Some("GET, HEAD")), "{path}");
            let get =
                tested.ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n\r\n"));
            assert!(get.field("Access-Control-Allow-Origin").is_some(), "{path}");
        }
        let other = alone.ask(preflight(path, "POST"));
        let allowed = other.field("Access-Control-Allow-Methods");
        assert_eq!((other.status, allowed), (204, Some("GET, HEAD")), "{path}: nobody else handles it");
        let other = before.ask(preflight(path, "POST"));
        assert_eq!((other.status, other.text()), (200, &*format!("behind OPTIONS {path}")), "{path}");
        assert_eq!(other.field("Access-Control-Allow-Methods"), None, "{path}");
    }
    // Methods besides constants fall through, also to a pattern, as their preflights do.
    assert_eq!(before.post("/a", "").text(), "behind POST /a");
    assert_eq!(before.post("/b", "").status, 405);
    let others = put(|_: &Request| "put").cors(Cors::any());
    let mut patterns = tested(App::new().route("/a", table("constant")).route("/{x}", others));
    for (method, allowed) in [("GET", "GET, HEAD"), ("PUT", "PUT"), ("POST", "GET, HEAD")] {
        let response = patterns.ask(preflight("/a", method));
        assert_eq!(response.field("Access-Control-Allow-Methods"), Some(allowed), "{method}");
    }
}

#[test]
fn guards_of_a_mount_run_once_for_a_preflight_that_it_gets() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let inner = App::new().with(guard(move |_: &Request, _: &mut Response| {
        counted.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    }));
    let inner = inner.fallback("inner").build().expect("valid routes");
    let app = App::new()
        .with(guard(|_: &Request, _: &mut Response| ControlFlow::Continue(())))
        .route("/a", get("constant").cors(Cors::any()))
        .mount("/", inner);
    let preflight = "OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\n";
    let mut tested = tested(app);
    for end in ["\r\n", "Content-Length: 1\r\n\r\nx"] {
        let response = tested.ask(format!("{preflight}{end}"));
        assert_eq!((response.text(), runs.swap(0, Ordering::Relaxed)), ("inner", 1), "{end:?}");
    }
}

#[test]
fn fields_of_a_cors_policy_are_in_every_kind_of_response() {
    let fails = |_: &Request| Err::<(), _>(Failure::new(Status::CONFLICT, "no"));
    let app = App::new()
        .route("/sync", get(|_: &Request| "sync").cors(Cors::any()))
        .route("/async", get(later(async |_: &mut Call| "async")).cors(Cors::any()))
        .route("/line", get(line(|_: &mut Line| "line")).cors(Cors::any()))
        .route("/fails", get(fails).cors(Cors::any()))
        .route("/constant/{x}", get(Fast::json("[]")).cors(Cors::any()));
    let mut tested = tested(app);
    for path in ["/sync", "/async", "/line", "/fails", "/constant/x"] {
        assert_eq!(tested.get(path).field("Access-Control-Allow-Origin"), Some("*"), "{path}");
    }
}

#[test]
fn a_table_begins_with_any_method() {
    let mut tested =
        tested(App::new().route("/", on("LOCK", |_: &Request| "locked").get("got")).route("/", post("x")));
    assert_eq!(tested.ask("LOCK / HTTP/1.1\r\nHost: a\r\n\r\n").text(), "locked");
    assert_eq!((tested.get("/").text(), tested.post("/", "").text()), ("got", "x"));
}

#[test]
fn an_app_is_mounted_in_another_one_of_another_state() {
    let inner = App::with_state(|_| "inner").route(
        "/in/{name}",
        get(|request: &Request<&'static str>| {
            format!("{} {}", request.state(), request.param_raw("name").unwrap_or_default())
        }),
    );
    let outer = App::with_state(|worker| worker)
        .route("/", get(|request: &Request<usize>| request.state().to_string()))
        .mount("/in", inner.build().expect("valid routes"));
    let mut tested = tested(outer);
    assert_eq!((tested.get("/").text(), tested.get("/in/a").text()), ("0", "inner a"));
}

#[test]
#[should_panic(expected = "a path must begin with a slash")]
fn a_test_of_an_app_reports_its_mistakes() {
    drop(App::new().route("a", get("a").post("a")).test());
}
