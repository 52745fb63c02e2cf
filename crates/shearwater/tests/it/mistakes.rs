//! Mistakes in routes, all reported at startup with their places.

use std::ops::ControlFlow;

use shearwater::{App, Cors, Error, Fast, Method, Request, Response, RouteError, Server};

fn noop(_: &Request, _: &mut Response) {}

/// Returns the only mistake of an app, without places, whose lines other tests check.
#[track_caller]
fn mistake(define: impl FnOnce(&mut App)) -> String {
    let mut app = App::new();
    define(&mut app);
    let Err(errors) = app.build() else { panic!("nothing is wrong") };
    assert_eq!(errors.all().len(), 1, "{errors}");
    match &errors.all()[0] {
        RouteError::Conflict { given, with } => format!("{} = {}", given.what(), with.what()),
        RouteError::Unreachable { given, by } => format!("{} < {}", given.what(), by.what()),
        RouteError::Refused { given, why } => format!("{}: {why}", given.what()),
        other => panic!("{other}"),
    }
}

const LONG_METHOD: &str = "M-OF-MORE-BYTES-THAN-A-METHOD-HAS";

type Define = fn(&mut App);

#[test]
fn names_both_items_of_a_conflict() {
    let get: Define = |app| _ = app.get("/a", noop);
    let fast: Define = |app| _ = app.fast("/a", Fast::text("a"));
    let pattern: Define = |app| _ = app.get("/a/{x}", noop);
    let fallback: Define = |app| _ = app.fallback(noop);
    let propfind: Define = |app| _ = app.route("PROPFIND", "/", noop);
    let state: Define = |app| _ = app.state(1u8);
    let local: Define = |app| _ = app.local(|_| 1u8);
    let conflicts: [(Define, Define, &str); 13] = [
        (get, get, "GET /a = GET /a"),
        (get, |app| _ = app.route(Method::Get, "/a", noop), "GET /a = GET /a"),
        (get, fast, "the fast route /a = GET /a"),
        (fast, get, "the fast route /a = GET /a"),
        (fast, fast, "the fast route /a = the fast route /a"),
        (pattern, pattern, "GET /a/{x} = GET /a/{x}"),
        (pattern, |app| _ = app.get("/a/{y}", noop), "GET /a/{y} = GET /a/{x}"),
        (pattern, |app| _ = app.post("/a/{y}", noop), "POST /a/{y} = GET /a/{x}"),
        (pattern, |app| _ = app.get("/a/{*x}", noop), "GET /a/{*x} = GET /a/{x}"),
        (propfind, propfind, "PROPFIND / = PROPFIND /"),
        (fallback, fallback, "the fallback of / = the fallback of /"),
        (state, state, "the state of type u8 = the state of type u8"),
        (local, local, "the local state of type u8 = the local state of type u8"),
    ];
    for (first, second, expected) in conflicts {
        let found = mistake(|app| {
            first(app);
            second(app);
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn names_the_item_that_hides_an_unreachable_one() {
    let fallback: Define = |app| _ = app.fallback(noop);
    let inner: Define = |app| _ = app.scope("/a", |app| _ = app.fallback(noop));
    for (hidden, by, expected) in [
        (fallback, "/{*rest}", "the fallback of / < GET /{*rest}"),
        (inner, "/{x}/{*rest}", "the fallback of /a < GET /{x}/{*rest}"),
    ] {
        let found = mistake(|app| {
            hidden(app);
            app.get(by, noop);
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn rejects_paths_that_no_request_has() {
    for (path, why) in [
        ("a", "a path must begin with a slash"),
        ("", "a path must begin with a slash"),
        ("/a b", "' ' can't occur in a request's path; help: write it percent-encoded"),
        ("/ü", "'ü' can't occur in a request's path; help: write it percent-encoded"),
        ("/a?b", "'?' can't occur in a request's path; help: write it percent-encoded"),
        ("/{", "a parameter is written {name} or {*name}, and a literal brace {{ or }}"),
        ("/{a}{b}", "a segment can have one parameter only"),
        ("/{*a}/b", "{*name} must be last, because it matches the rest of the path"),
        ("/{a}/{a}", "two of its parameters are named \"a\""),
    ] {
        assert_eq!(mistake(|app| _ = app.get(path, noop)), format!("GET {path}: {why}"));
    }
    let scope = mistake(|app| _ = app.scope("/{x}", |_| {}));
    assert_eq!(scope, "the scope /{x}: a prefix can't have parameters");
    let inner = mistake(|app| _ = app.scope("/a", |app| _ = app.get("b", noop)));
    assert_eq!(inner, "GET b: a path must begin with a slash");
}

#[test]
fn rejects_methods_that_cannot_be_routed() {
    for (method, name) in [(Method::Connect, "CONNECT"), (Method::Other, "Other")] {
        let found = mistake(|app| _ = app.route(method, "/", noop));
        assert_eq!(found, format!("{name} /: {method:?} can't be routed"));
    }
    const TOKEN: &str = "a method is a token of at most 32 bytes";
    for (name, why) in [
        ("CONNECT", "Connect can't be routed".to_owned()),
        ("", format!("invalid method \"\": {TOKEN}")),
        ("PROP FIND", format!("invalid method \"PROP FIND\": {TOKEN}")),
        ("A/B", format!("invalid method \"A/B\": {TOKEN}")),
        (LONG_METHOD, format!("invalid method {LONG_METHOD:?}: {TOKEN}")),
        ("get", "method names are case-sensitive; help: write \"GET\"".to_owned()),
        ("Patch", "method names are case-sensitive; help: write \"PATCH\"".to_owned()),
        ("connect", "method names are case-sensitive; help: write \"CONNECT\"".to_owned()),
    ] {
        assert_eq!(mistake(|app| _ = app.route(name, "/", noop)), format!("{name} /: {why}"));
    }
}

#[test]
fn rejects_upgrades_that_no_request_can_have() {
    let of_post = mistake(|app| _ = app.post("/", noop).upgrades("websocket"));
    assert_eq!(of_post, "POST /: `.upgrades(protocol)` is for routes of GET");
    let spaced = mistake(|app| _ = app.get("/", noop).upgrades("web socket"));
    assert_eq!(spaced, "GET /: invalid protocol \"web socket\"; help: write a name such as \"websocket\"");
}

/// Rejects parameters in the syntax of other routers.
#[test]
fn corrects_parameters_of_other_routers() {
    const BRACES: &str = "a parameter is written {name}";
    const ALL: &str = "a parameter for the rest of the path is written {*name}";
    const PATTERN: &str = "a parameter can't have a pattern";
    const OPTIONAL: &str = "a parameter can't be optional: add a route for each path";
    for (path, why, right) in [
        ("/user/:id", BRACES, "/user/{id}"),
        ("/user/:id/posts/:post", BRACES, "/user/{id}/posts/{post}"),
        ("/user/<id>", BRACES, "/user/{id}"),
        ("/user/<int:id>", BRACES, "/user/{id}"),
        ("/{}", BRACES, "/{name}"),
        ("/{ id }", BRACES, "/{id}"),
        ("/user/:id?", OPTIONAL, "/user/{id}"),
        ("/{id?}", OPTIONAL, "/{id}"),
        ("/{id:[0-9]+}", PATTERN, "/{id}"),
        ("/{id:\\d{2}}/x", PATTERN, "/{id}/x"),
        ("/:id(\\d+)", PATTERN, "/{id}"),
        ("/files/*", ALL, "/files/{*rest}"),
        ("/files/**", ALL, "/files/{*rest}"),
        ("/files/*path", ALL, "/files/{*path}"),
        ("/files/:path*", ALL, "/files/{*path}"),
        ("/files/<path..>", ALL, "/files/{*path}"),
        ("/files/<path:rest>", ALL, "/files/{*rest}"),
        ("/{*}", ALL, "/{*rest}"),
        ("/{**path}", ALL, "/{*path}"),
        ("/{path*}", ALL, "/{*path}"),
        ("/{path...}", ALL, "/{*path}"),
        ("/{...path}", ALL, "/{*path}"),
    ] {
        let given = mistake(|app| _ = app.get(path, noop));
        assert_eq!(given, format!("GET {path}: {why}; help: write {right:?}"));
        let given = mistake(|app| _ = app.fast(path, Fast::text("a")));
        assert_eq!(given, format!("the fast route {path}: {why}; help: write {right:?}"));
    }
    for (path, right) in [("/static/*", "/static"), ("/static/{*path}", "/static"), ("/*", "/")] {
        let given = mistake(|app| _ = app.scope(path, |_| {}));
        let why = "a prefix includes all paths under it";
        assert_eq!(given, format!("the scope {path}: {why}; help: write {right:?}"));
    }
    let mut app = App::new();
    for path in ["/v1/things:batch", "/a:b/{id}", "/{{id}}", "/a*b", "/a-{b}.html", "/{image-number}"] {
        app.get(path, noop);
    }
    assert!(app.build().is_ok(), "these are what they say");
}

/// Rejects prefixes with parameters, in any syntax.
#[test]
fn rejects_parameters_in_prefixes() {
    const WHY: &str = "a prefix can't have parameters";
    const REST: &str = "a prefix includes all paths under it; help: write \"/a\"";
    for (path, why) in [
        ("/:tenant", WHY),
        ("/<tenant>/x", WHY),
        ("/{tenant}", WHY),
        ("/a/*x/b", WHY),
        ("/a/:x/*", WHY),
        ("/a/*", REST),
        ("/a/{*x}", REST),
    ] {
        let given =
            mistake(|app| _ = app.mount(path, |_| App::new().build().expect("no mistakes").service(0)));
        assert_eq!(given, format!("the mount {path}: {why}"));
        let inner: [fn(&mut App); 2] = [
            |app| _ = app.mount("/", |_| App::new().build().expect("no mistakes").service(0)),
            |app| _ = app.fallback(noop),
        ];
        for define in inner {
            let given = mistake(|app| _ = app.scope(path, define));
            assert_eq!(given, format!("the scope {path}: {why}"));
        }
    }
    let mut app = App::new();
    for path in ["/a:b", "/c*d", "/e<f>"] {
        app.mount(path, |_| App::new().build().expect("no mistakes").service(0));
    }
    assert!(app.build().is_ok(), "these are what they say");
}

#[test]
fn rejects_read_on_sync_handlers() {
    const WHY: &str = "`.read()` is for async handlers and coroutines";
    let given = mistake(|app| _ = app.post("/upload", noop).read());
    let help =
        "add the handler with `post_async` or `post_coroutine`, or buffer the body with `.buffer(bytes_max)`";
    assert_eq!(given, format!("POST /upload: {WHY}; help: {help}"));
    let given = mistake(|app| _ = app.put("/upload/{id}", noop).read());
    let help = "add the handler with `route_async` or `route_coroutine`, or buffer the body with `.buffer(bytes_max)`";
    assert_eq!(given, format!("PUT /upload/{{id}}: {WHY}; help: {help}"));
    let given = mistake(|app| _ = app.fallback(noop).read());
    assert_eq!(given, format!("the fallback of /: {WHY}; help: buffer the body with `.buffer(bytes_max)`"));
    let mut app = App::new();
    app.post_async("/a", async |_: &mut shearwater::Call| {}).read();
    app.post("/b", noop).read().buffer(1);
    assert!(app.build().is_ok());
}

#[test]
fn rejects_invalid_fast_routes() {
    for (fast, why) in [
        (Fast::text("a").field("Bad name", "x"), "the field \"Bad name\""),
        (Fast::text("a").field("X", "a\r\nb"), "the field \"X\""),
        (Fast::text("a").field("Content-Length", "1"), "the server's own"),
        (Fast::text("a").field("Content-Type", "x/y"), "Content-Type"),
        (Fast::bytes("a\nb", b"x".as_slice()), "Content-Type"),
        (Fast::text("a").methods(&[]), "no methods"),
        (Fast::text("a").methods(&[Method::Connect]), "can't be routed"),
        (Fast::text("a").cors(Cors::any().credentials()), "credentials"),
        (Fast::text("a").cors(Cors::origins(["https://example.org/"])), "invalid origin"),
        (Fast::text("a").cors(Cors::origins(["example.org"])), "invalid origin"),
        (Fast::with(|_| {}).cors(Cors::any().headers("X\n")), "Access-Control-Allow-Headers"),
    ] {
        let told = mistake(|app| _ = app.fast("/a", fast));
        assert!(told.starts_with("the fast route /a: ") && told.contains(why), "{told}");
    }
    let told = mistake(|app| _ = app.fast("/{a}", Fast::text("a")));
    assert_eq!(told, "the fast route /{a}: a fast route can't have parameters");
}

#[test]
fn reports_all_mistakes_with_file_and_line() {
    let mut app = App::new();
    app.get("/a", noop);
    let line = line!() + 1;
    app.get("/a", noop);
    app.get("b", noop);
    let Err(Error::Routes(errors)) = Server::new("127.0.0.1:0").start_app(app) else {
        panic!("it starts with mistakes")
    };
    let file = file!();
    let told = errors.to_string();
    let told: Vec<_> = told.lines().collect();
    assert_eq!(
        told,
        [
            format!(
                "GET /a ({file}:{line}) conflicts with GET /a ({file}:{}); help: remove one of them",
                line - 2
            ),
            format!("GET b ({file}:{}): a path must begin with a slash", line + 1),
        ]
    );
    let RouteError::Conflict { given, .. } = &errors.all()[0] else { panic!("{errors}") };
    assert_eq!((given.what(), given.location().line()), ("GET /a", line));
}

#[test]
fn accepts_routes_without_conflicts() {
    let mut app = App::new();
    app.get("/a/{x}", noop);
    app.post("/a/{x}", noop);
    app.put("/a/b", noop);
    app.get("/a/{x}/c", noop);
    app.get("/{x}/{y}/{z}/{u}", noop);
    app.get("/b/{*rest}", noop);
    app.fast("/a/b", Fast::text("a"));
    app.fallback(noop);
    app.scope("/a", |app| {
        app.fallback(noop);
        app.before(|_: &Request, _: &mut Response| ControlFlow::Continue(()));
    });
    app.state(1u8).state(1u16).local(|_| 1u8);
    assert!(app.build().is_ok());
}
