//! Routes by path and method, and state.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use shearwater::{AcceptMode, App, Call, CoroutineCall, Fast, Method, Request, Response, Service};

use crate::served::{Served, here, text};

fn app() -> App {
    let mut app = App::new();
    app.get("/", text("root"));
    app.get("/both", text("got"));
    app.post("/both", |_: &Request, response: &mut Response| {
        response.status(201).text("posted");
    });
    app.post("/post", |_: &Request, _: &mut Response| {});
    app.get("/head", |_: &Request, response: &mut Response| {
        response.field("X-From", "get").text("twelve bytes");
    });
    app.route(Method::Head, "/head", |_: &Request, response: &mut Response| {
        response.field("X-From", "head").text("four");
    });
    app.route(Method::Options, "/own", text("own options"));
    app.get("/a%20b", text("as sent"));
    app.get("/query", |request: &Request, response: &mut Response| {
        response.text(request.query().unwrap_or("none"));
    });
    app
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
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        response.unhandled_method(request, "GET, OPTIONS");
    }
}

#[test]
fn trims_mounted_services() {
    struct Counter(Rc<Cell<u32>>);
    impl Service for Counter {
        fn respond(&self, _: &Request<'_>, _: &mut Response<'_>) {}

        fn trim(&self) {
            self.0.set(self.0.get() + 1);
        }
    }
    thread_local! {
        static TRIMS: Rc<Cell<u32>> = Rc::default();
    }
    let mut app = App::new();
    for path in ["/one", "/two"] {
        app.mount(path, |_| Counter(TRIMS.with(Rc::clone)));
    }
    app.get_coroutine("/coroutine", |_: &mut CoroutineCall| {});
    app.build().expect("no mistakes").service(0).trim();
    assert_eq!(TRIMS.with(|trims| trims.get()), 2);
}

#[test]
fn routes_extension_methods() {
    let mut app = app();
    app.route("PROPFIND", "/dav", name_method);
    app.route("PROPFIND", "/dav/{*path}", name_method);
    app.route("LOCK", "/both", |request: &Request, response: &mut Response| {
        response.text(&format!("{} {}", request.head().method_name(), request.body().len()));
    })
    .buffer(5);
    app.route_async("REPORT", "/dav", async |call: &mut Call| {
        let name = call.head().method_name().to_owned();
        call.response().text(&name);
    });
    app.route_coroutine("propfind", "/dav", |line: &mut CoroutineCall| {
        line.response().text("lower case");
    });
    app.fast("/fast", Fast::text("fast"));
    app.mount("/mounted", |_| Readable);
    app.scope("/inner", |app| {
        app.mount("/", |worker| {
            let mut inner = App::new();
            inner.get("/inner/x", name_method);
            inner.build().expect("one route").service(worker)
        });
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
    let mut app = App::new();
    app.route("PROPFIND", "/dav", name_method);
    app.mount("/", |_| Readable);
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
        app.route(method, "/", |_: &Request, _: &mut Response| {});
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
    let mut app = app();
    app.fallback(|request: &Request, response: &mut Response| {
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
    let served = Served::app(App::of(|request: &Request, response: &mut Response| {
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
    type Define = fn(&mut App);
    let cases: [(&str, Define, &str, &str, Option<&str>); 5] = [
        ("nothing", |_| {}, "/a", "fallback", None),
        ("a pattern", |app| _ = app.get("/{x}", text("pattern")), "/a", "pattern", None),
        ("state", |app| _ = app.state("state".to_owned()), "/a?state", "state", None),
        (
            "middleware",
            |app| _ = app.after(|_, response| _ = response.field("X-After", "yes")),
            "/a",
            "fallback",
            Some("yes"),
        ),
        ("a scope", |app| _ = app.scope("/a", |app| _ = app.fallback(text("inner"))), "/a", "inner", None),
    ];
    for (what, define, target, text, after) in cases {
        let mut app = App::new();
        app.fallback(|request: &Request, response: &mut Response| {
            let with_state = request.query() == Some("state");
            response.text(if with_state { request.state::<String>() } else { "fallback" });
        });
        define(&mut app);
        let response = Served::app(app).connect().get(target);
        assert_eq!((response.text(), response.field("X-After")), (text, after), "{what}");
    }
}

struct Name(&'static str);

#[test]
fn finds_state_by_type_in_every_kind_of_route() {
    let mut app = App::new();
    app.state(Name("shared")).state(AtomicU32::new(0)).local(|_| Name("own")).local(|_| Rc::new(7u8));
    let show = |request: &Request, response: &mut Response| {
        let count = request.state::<AtomicU32>().fetch_add(1, Ordering::Relaxed);
        let (shared, own) = (request.state::<Name>().0, request.local::<Name>().0);
        response.text(&format!("{shared} {own} {} {count}", request.local::<Rc<u8>>()));
    };
    app.get("/exact", show);
    app.get("/of/{name}", show);
    app.scope("/else", |app| {
        app.fallback(show);
    });
    app.before(move |request: &Request, response: &mut Response| match request.path() {
        "/before" => {
            show(request, response);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    let served = Served::app(app);
    let mut client = served.connect();
    for (count, target) in ["/exact", "/of/x", "/else/x", "/before"].into_iter().enumerate() {
        let response = client.get(target);
        assert_eq!(
            (response.status, response.text()),
            (200, format!("shared own 7 {count}").as_str()),
            "{target}"
        );
    }
}

#[test]
fn responds_500_if_state_is_missing() {
    let mut app = App::new();
    app.state(1u8).local(|_| 1u16);
    app.get("/state", |request: &Request, _: &mut Response| assert_eq!(*request.state::<u16>(), 1));
    app.get("/local", |request: &Request, _: &mut Response| assert_eq!(*request.local::<u8>(), 1));
    app.get("/both", |request: &Request, response: &mut Response| {
        response.text(&format!("{} {}", request.state::<u8>(), request.local::<u16>()));
    });
    let served = Served::app(app);
    for (target, status) in [("/state", 500), ("/local", 500), ("/both", 200)] {
        assert_eq!(served.connect().get(target).status, status, "{target}");
    }
}

/// A worker's counter, and the thread that made it.
struct Own {
    worker: usize,
    made_on: ThreadId,
    count: Cell<u32>,
}

#[test]
fn creates_local_state_on_each_workers_thread() {
    const WORKERS: usize = 3;
    let made = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&made);
    let mut app = App::new();
    app.local(move |worker| {
        noted.lock().expect("not poisoned").push(worker);
        Own { worker, made_on: thread::current().id(), count: Cell::new(0) }
    });
    app.get("/", |request: &Request, response: &mut Response| {
        let own: &Own = request.local();
        assert_eq!(own.made_on, thread::current().id());
        own.count.set(own.count.get() + 1);
        response.text(&format!("{} {}", own.worker, own.count.get()));
    });
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
