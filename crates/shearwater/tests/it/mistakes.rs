//! Mistakes in routes, all reported at startup with their places.

use std::ops::ControlFlow;
use std::time::Duration;

use shearwater::{
    App, Call, Cors, Error, Fast, Method, Request, Response, RouteError, Server, get, guard, later, on, post,
    put,
};

fn noop(_: &Request, _: &mut Response) {}

/// Returns the only mistake of an app, without places, whose lines other tests check.
#[track_caller]
fn mistake(define: impl FnOnce(App) -> App) -> String {
    let app = define(App::new());
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

type Define = fn(App) -> App;

#[test]
fn names_both_items_of_a_conflict() {
    let a: Define = |app| app.route("/a", get(noop));
    let fast: Define = |app| app.route("/a", get(Fast::text("a")));
    let pattern: Define = |app| app.route("/a/{x}", get(noop));
    let fallback: Define = |app| app.fallback(noop);
    let propfind: Define = |app| app.route("/", on("PROPFIND", noop));
    let conflicts: [(Define, Define, &str); 11] = [
        (a, a, "GET /a = GET /a"),
        (a, |app| app.route("/a", on(Method::Get, noop)), "GET /a = GET /a"),
        (a, fast, "GET /a = GET /a"),
        (fast, a, "GET /a = GET /a"),
        (fast, fast, "GET /a = GET /a"),
        (pattern, pattern, "GET /a/{x} = GET /a/{x}"),
        (pattern, |app| app.route("/a/{y}", get(noop)), "GET /a/{y} = GET /a/{x}"),
        (pattern, |app| app.route("/a/{y}", post(noop)), "POST /a/{y} = GET /a/{x}"),
        (pattern, |app| app.route("/a/{*x}", get(noop)), "GET /a/{*x} = GET /a/{x}"),
        (propfind, propfind, "PROPFIND / = PROPFIND /"),
        (fallback, fallback, "the fallback of / = the fallback of /"),
    ];
    for (first, second, expected) in conflicts {
        let found = mistake(|app| second(first(app)));
        assert_eq!(found, expected);
    }
}

#[test]
fn names_the_item_that_hides_an_unreachable_one() {
    let fallback: Define = |app| app.fallback(noop);
    let inner: Define = |app| app.scope("/a", |app| app.fallback(noop));
    for (hidden, by, expected) in [
        (fallback, "/{*rest}", "the fallback of / < GET /{*rest}"),
        (inner, "/{x}/{*rest}", "the fallback of /a < GET /{x}/{*rest}"),
    ] {
        let found = mistake(|app| hidden(app).route(by, get(noop)));
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
        assert_eq!(mistake(|app| app.route(path, get(noop))), format!("GET {path}: {why}"));
    }
    let scope = mistake(|app| app.scope("/{x}", |app| app));
    assert_eq!(scope, "the scope /{x}: a prefix can't have parameters");
    let inner = mistake(|app| app.scope("/a", |app| app.route("b", get(noop))));
    assert_eq!(inner, "GET b: a path must begin with a slash");
}

#[test]
fn rejects_methods_that_cannot_be_routed() {
    for (method, name) in [(Method::Connect, "CONNECT"), (Method::Other, "Other")] {
        let found = mistake(|app| app.route("/", on(method, noop)));
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
        assert_eq!(mistake(|app| app.route("/", on(name, noop))), format!("{name} /: {why}"));
    }
}

#[test]
fn rejects_upgrades_that_no_request_can_have() {
    let of_post = mistake(|app| app.route("/", post(noop).upgrades("websocket")));
    assert_eq!(of_post, "the upgrades of /: `.upgrades(protocol)` is for tables with a handler of GET");
    let spaced = mistake(|app| app.route("/", get(noop).upgrades("web socket")));
    let why = "invalid protocol \"web socket\"; help: write a name such as \"websocket\"";
    assert_eq!(spaced, format!("the upgrades of /: {why}"));
}

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
        let given = mistake(|app| app.route(path, get(noop)));
        assert_eq!(given, format!("GET {path}: {why}; help: write {right:?}"));
        let given = mistake(|app| app.route(path, get(Fast::text("a"))));
        assert_eq!(given, format!("GET {path}: {why}; help: write {right:?}"));
    }
    for (path, right) in [("/static/*", "/static"), ("/static/{*path}", "/static"), ("/*", "/")] {
        let given = mistake(|app| app.scope(path, |app| app));
        let why = "a prefix includes all paths under it";
        assert_eq!(given, format!("the scope {path}: {why}; help: write {right:?}"));
    }
    let mut app = App::new();
    for path in ["/v1/things:batch", "/a:b/{id}", "/{{id}}", "/a*b", "/a-{b}.html", "/{image-number}"] {
        app = app.route(path, get(noop));
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
        let given = mistake(|app| app.mount(path, |_| App::new().build().expect("no mistakes").service(0)));
        assert_eq!(given, format!("the mount {path}: {why}"));
        let inner: [fn(App) -> App; 2] = [
            |app| app.mount("/", |_| App::new().build().expect("no mistakes").service(0)),
            |app| app.fallback(noop),
        ];
        for define in inner {
            let given = mistake(|app| app.scope(path, define));
            assert_eq!(given, format!("the scope {path}: {why}"));
        }
    }
    let mut app = App::new();
    for path in ["/a:b", "/c*d", "/e<f>"] {
        app = app.mount(path, |_| App::new().build().expect("no mistakes").service(0));
    }
    assert!(app.build().is_ok(), "these are what they say");
}

#[test]
fn rejects_a_timeout_of_handlers_that_do_not_wait() {
    let second = Duration::from_secs(1);
    let given = mistake(|app| app.route("/a", get(noop).post(noop).timeout(second)));
    assert_eq!(given, "the timeout of /a: none of its handlers waits; help: remove it");
    let app = App::new().route("/a", get(noop).post(later(async |_: &mut Call| ())).timeout(second));
    assert!(app.build().is_ok());
}

#[test]
fn rejects_invalid_constants() {
    for (fast, why) in [
        (Fast::text("a").field("Bad name", "x"), "the field \"Bad name\""),
        (Fast::text("a").field("X", "a\r\nb"), "the field \"X\""),
        (Fast::text("a").field("Content-Length", "1"), "the server's own"),
        (Fast::text("a").field("Content-Type", "x/y"), "Content-Type"),
        (Fast::bytes("a\nb", b"x".as_slice()), "Content-Type"),
    ] {
        let told = mistake(|app| app.route("/a", get(fast)));
        assert!(told.starts_with("GET /a: ") && told.contains(why), "{told}");
    }
}

#[test]
fn rejects_invalid_cors_policies_once() {
    for (cors, why) in [
        (Cors::any().credentials(), "credentials"),
        (Cors::origins(["https://example.org/"]), "invalid origin"),
        (Cors::origins(["example.org"]), "invalid origin"),
        (Cors::any().headers("X\n"), "Access-Control-Allow-Headers"),
        (Cors::any().expose("X\n"), "Access-Control-Expose-Headers"),
    ] {
        let told = mistake(|app| app.route("/a", get("a").post(noop).cors(cors)));
        assert!(told.starts_with("the CORS policy of /a: ") && told.contains(why), "{told}");
    }
    let told = mistake(|app| app.route("/a", on(Method::Options, noop).get("a").cors(Cors::any())));
    assert_eq!(told, "OPTIONS /a = the CORS policy of /a");
}

#[test]
fn reports_all_mistakes_with_file_and_line() {
    let app = App::new().route("/a", get(noop));
    let line = line!() + 1;
    let app = app.route("/a", get(noop));
    let app = app.route("b", get(noop));
    let Err(Error::Routes(errors)) = Server::bind("127.0.0.1:0").start(app) else {
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
    let app = App::new()
        .route("/a/{x}", get(noop))
        .route("/a/{x}", post(noop))
        .route("/a/b", put(noop))
        .route("/a/{x}/c", get("constant"))
        .route("/{x}/{y}/{z}/{u}", get(noop))
        .route("/b/{*rest}", get(noop))
        .route("/a/b", get(Fast::text("a")))
        .fallback(noop)
        .scope("/a", |app| {
            let pass = |_: &Request, _: &mut Response| ControlFlow::Continue(());
            app.fallback(noop).with(guard(pass))
        });
    assert!(app.build().is_ok());
}
