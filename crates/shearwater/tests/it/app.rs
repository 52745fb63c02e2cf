//! Routes by path and method.

use shearwater::{App, Call, CoroutineCall, Fast, Method, Request, Response, Service};

use crate::served::Served;

fn app() -> App {
    let mut app = App::new();
    app.get("/", |_: &Request, response: &mut Response| {
        response.text("root");
    });
    app.get("/both", |_: &Request, response: &mut Response| {
        response.text("got");
    });
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
    app.route(Method::Options, "/own", |_: &Request, response: &mut Response| {
        response.text("own options");
    });
    app.get("/a%20b", |_: &Request, response: &mut Response| {
        response.text("as sent");
    });
    app.get("/query", |request: &Request, response: &mut Response| {
        response.text(request.query().unwrap_or("none"));
    });
    app
}

#[test]
fn a_request_finds_its_route() {
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
fn a_refused_method_and_options_name_those_allowed() {
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
fn an_extension_method_has_routes_and_is_known_everywhere_then() {
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
fn an_extension_method_is_known_to_a_mount_of_everything() {
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
fn options_of_the_server_as_a_whole_is_responded() {
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
fn no_method_is_named_twice_in_allow() {
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
fn head_is_get_without_the_body_unless_it_has_a_route() {
    let served = Served::app(app());
    let mut client = served.connect();
    let mut get = client.request("GET", "/", &[]);
    let mut head = client.request("HEAD", "/", &[]);
    assert_eq!(get.body, b"root");
    for response in [&mut get, &mut head] {
        response.body.clear();
        response.fields.retain(|(name, _)| name != "Date");
    }
    assert_eq!(head, get);
    let own = client.request("HEAD", "/head", &[]);
    assert_eq!((own.field("X-From"), own.field("Content-Length")), (Some("head"), Some("4")));
    assert_eq!(client.request("GET", "/head", &[]).field("X-From"), Some("get"));
}

#[test]
fn the_fallback_takes_what_has_no_route() {
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
fn a_handler_sees_its_peer_and_the_time() {
    let served = Served::app(App::of(|request: &Request, response: &mut Response| {
        let peer = request.peer().map_or_else(|| "gone".to_owned(), |peer| peer.to_string());
        response.text(&format!("{peer} {}", request.unix_seconds() > 1_700_000_000));
    }));
    for _ in 0..2 {
        let mut client = served.connect();
        let expected = format!("{} true", client.stream.get_ref().local_addr().expect("an address"));
        assert_eq!(client.request("GET", "/", &[]).text(), expected);
    }
}

#[test]
fn a_fallback_of_everything_leaves_the_rest_in_force() {
    let fallback = |app: &mut App| {
        app.fallback(|request: &Request, response: &mut Response| {
            response.text(if request.query() == Some("state") {
                request.state::<String>()
            } else {
                "fallback"
            });
        });
    };
    let response = |define: &dyn Fn(&mut App), target: &str| {
        let mut app = App::new();
        fallback(&mut app);
        define(&mut app);
        let served = Served::app(app);
        let response = served.connect().request("GET", target, &[]);
        (response.text().to_owned(), response.field("X-After").map(str::to_owned))
    };
    let nothing = |_: &mut App| {};
    assert_eq!(response(&nothing, "/a"), ("fallback".to_owned(), None));
    let pattern = |app: &mut App| {
        app.get("/{x}", |_: &Request, response: &mut Response| {
            response.text("pattern");
        });
    };
    assert_eq!(response(&pattern, "/a"), ("pattern".to_owned(), None));
    let state = |app: &mut App| {
        app.state("state".to_owned());
    };
    assert_eq!(response(&state, "/a?state"), ("state".to_owned(), None));
    let after = |app: &mut App| {
        app.after(|_: &Request, response: &mut Response| {
            response.field("X-After", "yes");
        });
    };
    assert_eq!(response(&after, "/a"), ("fallback".to_owned(), Some("yes".to_owned())));
    let mount = |app: &mut App| {
        app.scope("/a", |app| {
            app.fallback(|_: &Request, response: &mut Response| {
                response.text("inner");
            });
        });
    };
    assert_eq!(response(&mount, "/a"), ("inner".to_owned(), None));
}
