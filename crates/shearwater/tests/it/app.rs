//! Routes by path and method, and state.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use shearwater::{
    AcceptMode, App, Call, Fast, Line, Method, Request, Response, Service, after, buffered, get, guard,
    later, line, on, post,
};

use crate::served::{Served, here, text};

fn app() -> App {
    App::new()
        .route("/", get(text("root")))
        .route("/both", get(text("got")))
        .route(
            "/both",
            post(|_: &Request, response: &mut Response| {
                response.status(201).text("posted");
            }),
        )
        .route("/post", post(|_: &Request, _: &mut Response| {}))
        .route(
            "/head",
            get(|_: &Request, response: &mut Response| {
                response.field("X-From", "get").text("twelve bytes");
            }),
        )
        .route(
            "/head",
            on(Method::Head, |_: &Request, response: &mut Response| {
                response.field("X-From", "head").text("four");
            }),
        )
        .route("/own", on(Method::Options, text("own options")))
        .route("/a%20b", get(text("as sent")))
        .route(
            "/query",
            get(|request: &Request, response: &mut Response| {
                response.text(request.query_raw().unwrap_or("none"));
            }),
        )
}

#[test]
fn matches_exact_paths() {
    if testkit::tls::skips("its targets begin with http") {
        return;
    }
    let served = Served::app(app());
    let mut client = served.connect();
    for (method, target, status, body) in [
        ("GET", "/", 200, "root"),
        ("GET", "/both", 200, "got"),
        ("POST", "/both", 201, "posted"),
        ("POST", "/post", 200, ""),
        ("GET", "/query", 200, "none"),
        ("GET", "/query?", 200, ""),
        ("GET", "/query?a=/b?c", 200, "a=/b?c"),
        ("GET", "/a%20b", 200, "as sent"),
        ("GET", "http://localhost/both", 200, "got"),
        ("OPTIONS", "/own", 200, "own options"),
        ("GET", "/none", 404, "Not Found\n"),
        ("DELETE", "/none", 404, "Not Found\n"),
        ("GET", "/both/", 404, "Not Found\n"),
        ("GET", "/BOTH", 404, "Not Found\n"),
        ("GET", "//both", 404, "Not Found\n"),
        ("GET", "/a%20B", 404, "Not Found\n"),
        ("DELETE", "/both", 405, "Method Not Allowed\n"),
        ("GET", "/post", 405, "Method Not Allowed\n"),
        ("TRACE", "/", 405, "Method Not Allowed\n"),
        ("BREW", "/", 501, "Not Implemented\n"),
        ("BREW", "/none", 501, "Not Implemented\n"),
        ("get", "/", 501, "Not Implemented\n"),
        ("PROPFIND", "/both", 501, "Not Implemented\n"),
    ] {
        let response = client.request(method, target, &["Content-Length: 0"]);
        assert_eq!((response.status, response.text()), (status, body), "{method} {target}");
    }
}

#[test]
fn lists_allowed_methods() {
    let served = Served::app(app());
    let mut client = served.connect();
    for (method, target, status, allowed) in [
        ("PUT", "/", 405, "GET, HEAD, OPTIONS"),
        ("PUT", "/both", 405, "GET, POST, HEAD, OPTIONS"),
        ("GET", "/post", 405, "POST, OPTIONS"),
        ("HEAD", "/post", 405, "POST, OPTIONS"),
        ("PUT", "/head", 405, "GET, HEAD, OPTIONS"),
        ("OPTIONS", "/both", 204, "GET, POST, HEAD, OPTIONS"),
        ("OPTIONS", "/post", 204, "POST, OPTIONS"),
    ] {
        let response = client.request(method, target, &[]);
        assert_eq!((response.status, response.field("Allow")), (status, Some(allowed)), "{method} {target}");
        assert_eq!(response.field("Content-Length").is_none(), status == 204, "{method} {target}");
    }
}

/// Responds with the method.
fn name_method(request: &Request, response: &mut Response) {
    response.text(request.head().method_name());
}

/// Responds as the files service does, which supports `GET`.
struct Readable;

impl Service for Readable {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        response.unhandled_method(request, "GET, OPTIONS");
    }
}

#[test]
fn trims_mounted_services() {
    struct Counter(Rc<Cell<u32>>);
    impl Service for Counter {
        fn respond(&self, _: &shearwater::engine::Request<'_>, _: &mut Response<'_>) {}

        fn trim(&self) {
            self.0.set(self.0.get() + 1);
        }
    }
    thread_local! {
        static TRIMS: Rc<Cell<u32>> = Rc::default();
    }
    let mut app = App::new();
    for path in ["/one", "/two"] {
        app = app.mount(path, |_| Counter(TRIMS.with(Rc::clone)));
    }
    let app = app.route("/coroutine", get(line(|_: &mut Line| {})));
    app.build().expect("no mistakes").service(0).trim();
    assert_eq!(TRIMS.with(|trims| trims.get()), 2);
}

#[test]
fn routes_extension_methods() {
    let app = app()
        .route("/dav", on("PROPFIND", name_method))
        .route("/dav/{*path}", on("PROPFIND", name_method))
        .route(
            "/both",
            on(
                "LOCK",
                buffered(5, |request: &Request, body: &[u8], response: &mut Response| {
                    response.text(&format!("{} {}", request.head().method_name(), body.len()));
                }),
            ),
        )
        .route(
            "/dav",
            on(
                "REPORT",
                later(async |call: &mut Call| {
                    let name = call.head().method_name().to_owned();
                    call.response().text(&name);
                }),
            ),
        )
        .route(
            "/dav",
            on(
                "propfind",
                line(|line: &mut Line| {
                    line.response().text("lower case");
                }),
            ),
        )
        .route("/fast", get(Fast::text("fast")))
        .mount("/mounted", |_| Readable)
        .scope("/inner", |app| {
            app.mount("/", |worker| {
                let inner = App::new().route("/inner/x", get(name_method));
                inner.build().expect("one route").service(worker)
            })
        });
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, target, status, body, allow) in [
        ("PROPFIND", "/dav", 200, "PROPFIND", None),
        ("propfind", "/dav", 200, "lower case", None),
        ("PROPFIND", "/dav/a/b", 200, "PROPFIND", None),
        ("REPORT", "/dav", 200, "REPORT", None),
        ("LOCK", "/both", 200, "LOCK 4", None),
        ("POST", "/both", 201, "posted", None),
        ("GET", "/dav", 405, "Method Not Allowed\n", Some("PROPFIND, REPORT, propfind, OPTIONS")),
        ("LOCK", "/dav", 405, "Method Not Allowed\n", Some("PROPFIND, REPORT, propfind, OPTIONS")),
        ("REPORT", "/dav/a", 405, "Method Not Allowed\n", Some("PROPFIND, OPTIONS")),
        ("PROPFIND", "/both", 405, "Method Not Allowed\n", Some("GET, POST, LOCK, HEAD, OPTIONS")),
        ("PROPFIND", "/fast", 405, "Method Not Allowed\n", Some("GET, HEAD, OPTIONS")),
        ("PROPFIND", "/none", 404, "Not Found\n", None),
        ("PROPFIND", "/mounted/x", 405, "Method Not Allowed\n", Some("GET, OPTIONS")),
        ("PROPFIND", "/inner/x", 405, "Method Not Allowed\n", Some("GET, HEAD, OPTIONS")),
        ("BREW", "/dav", 501, "Not Implemented\n", None),
        ("BREW", "/mounted/x", 501, "Not Implemented\n", None),
        ("BREW", "/inner/x", 501, "Not Implemented\n", None),
        ("lock", "/both", 501, "Not Implemented\n", None),
    ] {
        let response = client.ask(method, target, &["Content-Length: 4"]).send("body").response(method);
        let form = (response.status, response.text(), response.field("Allow"));
        assert_eq!(form, (status, body, allow), "{method} {target}");
    }
    assert_eq!(client.ask("LOCK", "/both", &["Content-Length: 6"]).response("LOCK").status, 413);
}

#[test]
fn mounts_know_extension_methods() {
    let app = App::new().route("/dav", on("PROPFIND", name_method)).mount("/", |_| Readable);
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, target, status) in
        [("PROPFIND", "/dav", 200), ("PROPFIND", "/x", 405), ("GET", "/dav", 405), ("BREW", "/x", 501)]
    {
        assert_eq!(client.request(method, target, &[]).status, status, "{method} {target}");
    }
}

#[test]
fn responds_to_options_of_the_whole_server() {
    if testkit::tls::skips("its targets begin with http") {
        return;
    }
    let served = Served::app(app());
    let mut client = served.connect();
    // The same request in two forms (RFC 9112 section 3.2.4).
    for target in ["*", "http://localhost"] {
        let response = client.request("OPTIONS", target, &[]);
        let fields = ["Content-Length", "Allow"].map(|name| response.field(name));
        assert_eq!((response.status, fields), (204, [None, None]), "{target}");
    }
    for target in ["http://localhost/", "http://localhost?q", "/"] {
        assert!(
            client.request("OPTIONS", target, &[]).field("Allow").is_some(),
            "{target} is the route of /"
        );
    }
}

#[test]
fn lists_each_allowed_method_once() {
    let mut app = App::new();
    for method in [Method::Options, Method::Get] {
        app = app.route("/", on(method, |_: &Request, _: &mut Response| {}));
    }
    let served = Served::app(app);
    let response = served.connect().request("PUT", "/", &[]);
    let mut methods: Vec<_> = response.field("Allow").expect("Allow").split(", ").collect();
    methods.sort_unstable();
    assert_eq!(methods, ["GET", "HEAD", "OPTIONS"]);
}

#[test]
fn serves_head_by_get_routes() {
    let served = Served::app(app());
    let mut client = served.connect();
    let mut get = client.get("/");
    let mut head = client.request("HEAD", "/", &[]);
    assert_eq!(get.body, b"root");
    for response in [&mut get, &mut head] {
        response.body.clear();
        response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
    }
    assert_eq!(head, get);
    let own = client.request("HEAD", "/head", &[]);
    assert_eq!((own.field("X-From"), own.field("Content-Length")), (Some("head"), Some("4")));
    assert_eq!(client.get("/head").field("X-From"), Some("get"));
}

#[test]
fn fallback_takes_unmatched_requests() {
    let app = app().fallback(|request: &Request, response: &mut Response| {
        response.text(&format!("{} {}", request.head().method_name(), request.path()));
    });
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, target, body) in [
        ("GET", "/x/y", "GET /x/y"),
        ("BREW", "/pot", "BREW /pot"),
        ("OPTIONS", "/x", "OPTIONS /x"),
        ("GET", "/", "root"),
    ] {
        assert_eq!(client.request(method, target, &[]).text(), body);
    }
    assert_eq!(client.request("PUT", "/both", &[]).status, 405);
}

#[test]
fn handlers_see_the_peer_and_the_time() {
    let served = Served::app(App::new().fallback(|request: &Request, response: &mut Response| {
        let peer = request.peer().map_or_else(|| "gone".to_owned(), |peer| peer.to_string());
        response.text(&format!("{peer} {}", request.unix_seconds() > 1_700_000_000));
    }));
    for _ in 0..2 {
        let mut client = served.connect();
        let expected = format!("{} true", client.stream().local_addr().expect("an address"));
        assert_eq!(client.get("/").text(), expected);
    }
}

#[test]
fn runs_everything_else_before_a_fallback() {
    type Define = fn(App) -> App;
    let cases: [(&str, Define, &str, &str, Option<&str>); 4] = [
        ("nothing", |app| app, "/a", "fallback", None),
        ("a pattern", |app| app.route("/{x}", get(text("pattern"))), "/a", "pattern", None),
        (
            "middleware",
            |app| app.with(after(|_, response| _ = response.field("X-After", "yes"))),
            "/a",
            "fallback",
            Some("yes"),
        ),
        ("a scope", |app| app.scope("/a", |app| app.fallback(text("inner"))), "/a", "inner", None),
    ];
    for (what, define, target, text, after) in cases {
        let app = define(App::new().fallback("fallback"));
        let response = Served::app(app).connect().get(target);
        assert_eq!((response.text(), response.field("X-After")), (text, after), "{what}");
    }
}

#[test]
fn every_kind_of_route_has_the_state() {
    struct State {
        shared: Arc<AtomicU32>,
        own: Rc<u8>,
    }
    let show = |request: &Request<State>, response: &mut Response| {
        let State { shared, own } = request.state();
        response.text(&format!("{own} {}", shared.fetch_add(1, Ordering::Relaxed)));
    };
    let shared = Arc::<AtomicU32>::default();
    let app = App::with_state(move |_| State { shared: Arc::clone(&shared), own: Rc::new(7) })
        .route("/exact", get(show))
        .route("/of/{name}", get(show))
        .scope("/else", |app| app.fallback(show))
        .with(guard(move |request: &Request<State>, response: &mut Response| match request.path() {
            "/guarded" => {
                show(request, response);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }));
    let served = Served::app(app);
    let mut client = served.connect();
    for (count, target) in ["/exact", "/of/x", "/else/x", "/guarded"].into_iter().enumerate() {
        let response = client.get(target);
        let expected = format!("7 {count}");
        assert_eq!((response.status, response.text()), (200, expected.as_str()), "{target}");
    }
}

/// A worker's counter, and the thread that made it.
struct Own {
    worker: usize,
    made_on: ThreadId,
    count: Cell<u32>,
}

#[test]
fn creates_state_on_each_workers_thread() {
    const WORKERS: usize = 3;
    let made = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&made);
    let show = |request: &Request<Own>| {
        let own = request.state();
        assert_eq!(own.made_on, thread::current().id());
        own.count.set(own.count.get() + 1);
        format!("{} {}", own.worker, own.count.get())
    };
    let app = App::with_state(move |worker| {
        noted.lock().expect("not poisoned").push(worker);
        Own { worker, made_on: thread::current().id(), count: Cell::new(0) }
    })
    .route("/", get(show));
    // One acceptor distributes connections round-robin, so each worker gets one.
    let served = Served::of(here().workers(WORKERS).accept_mode(AcceptMode::Dispatch), app);
    let mut clients: Vec<_> = (0..WORKERS).map(|_| served.connect()).collect();
    for round in 1..=2 {
        let mut responses: Vec<_> =
            clients.iter_mut().map(|client| client.get("/").text().to_owned()).collect();
        responses.sort();
        assert_eq!(responses, (0..WORKERS).map(|worker| format!("{worker} {round}")).collect::<Vec<_>>());
    }
    let mut made = made.lock().expect("not poisoned").clone();
    made.sort_unstable();
    assert_eq!(made, [0, 1, 2]);
}
