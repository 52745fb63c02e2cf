//! Middleware: order, paths, and early ends.

use std::ops::ControlFlow;

use shearwater::{App, Call, Fast, Request, Response};
use testkit::TestClient;

use crate::served::Served;

/// Adds a header field and continues.
pub(crate) fn note(
    name: &'static str,
) -> impl Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync {
    move |_, response| {
        response.field("X-Way", name);
        ControlFlow::Continue(())
    }
}

/// Adds a header field with the status, after the handler.
pub(crate) fn sign(name: &'static str) -> impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync {
    move |_, response| {
        let status = response.status_code();
        response.field("X-Way", format!("{name} {status}"));
    }
}

fn way(client: &mut TestClient, method: &str, target: &str) -> (u16, String) {
    let response = client.request(method, target, &[]);
    let way = response
        .fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("x-way"))
        .map(|(_, value)| value.as_str());
    (response.status, way.collect::<Vec<_>>().join(", "))
}

fn handler(_: &Request, response: &mut Response) {
    response.field("X-Way", "handler");
}

/// Adds inner scopes and later steps first where the order doesn't matter.
fn app() -> App {
    let mut app = App::new();
    app.scope("/api", |api| {
        api.after(sign("api1"));
        api.before(note("api1")).before(note("api2"));
        api.after(sign("api2"));
        api.get("/x", handler);
        api.get("/user/{id}", handler);
        api.fast("/fast", Fast::text("fast"));
        api.scope("/in/ner", |inner| {
            inner.before(note("inner")).after(sign("inner"));
            inner.get("", handler);
            inner.get("/", handler);
        });
        api.scope("/own", |own| {
            own.fallback(handler);
        });
    });
    app.before(note("app")).after(sign("app"));
    app.get("/api/beside", handler);
    app.get("/other", handler);
    app.get("/any/{x}/{y}", handler);
    app
}

#[test]
fn runs_middleware_from_outer_to_inner_scopes_and_back() {
    let served = Served::app(app());
    let mut client = served.connect();
    let api = |status, handler| {
        format!("app, api1, api2, {handler}api2 {status}, api1 {status}, app {status}").replace("  ", " ")
    };
    let inner = "app, api1, api2, inner, handler, inner 200, api2 200, api1 200, app 200";
    for (method, target, status, expected) in [
        ("GET", "/api/x", 200, api(200, "handler, ")),
        ("HEAD", "/api/x", 200, api(200, "handler, ")),
        ("GET", "/api/user/7", 200, api(200, "handler, ")),
        ("GET", "/api/beside", 200, api(200, "handler, ")),
        ("GET", "/api/own/x", 200, api(200, "handler, ")),
        ("GET", "/api/fast", 200, api(200, "")),
        ("GET", "/api/none", 404, api(404, "")),
        ("GET", "/api", 404, api(404, "")),
        ("POST", "/api/x", 405, api(405, "")),
        ("OPTIONS", "/api/x", 204, api(204, "")),
        ("GET", "/api/in/ner", 200, inner.to_owned()),
        ("GET", "/api/in/ner/", 200, inner.to_owned()),
        ("GET", "/other", 200, "app, handler, app 200".to_owned()),
        ("GET", "/apix", 404, "app, app 404".to_owned()),
        ("OPTIONS", "*", 204, "app, app 204".to_owned()),
    ] {
        assert_eq!(way(&mut client, method, target), (status, expected), "{method} {target}");
    }
}

#[test]
fn middleware_can_end_a_request() {
    let mut app = App::new();
    app.before(note("first"));
    app.before(|request: &Request, response: &mut Response| {
        if request.head().field_named("X-Key").is_some() {
            return ControlFlow::Continue(());
        }
        response.status(401).text("who are you?");
        ControlFlow::Break(())
    });
    app.before(note("third"));
    app.after(sign("after"));
    app.get("/", handler);
    let served = Served::app(app);
    let mut client = served.connect();
    let stopped = client.get("/");
    assert_eq!((stopped.status, stopped.text()), (401, "who are you?"));
    assert_eq!(way(&mut client, "GET", "/"), (401, "first, after 401".to_owned()));
    assert_eq!(way(&mut client, "GET", "/none"), (401, "first, after 401".to_owned()));
    let let_in = client.request("GET", "/", &["X-Key: 1"]);
    assert_eq!((let_in.status, let_in.text()), (200, ""));
}

#[test]
fn guards_paths_in_every_encoding() {
    let mut app = App::new();
    app.fallback(handler);
    app.get("/{a}/{b}", handler);
    app.get("/{a}/{b}/{c}", handler);
    app.scope("/secret", |secret| {
        secret.before(|_: &Request, response: &mut Response| {
            response.status(403);
            ControlFlow::Break(())
        });
        secret.get("/{x}", handler);
    });
    let served = Served::app(app);
    let mut client = served.connect();
    for (target, status) in [
        ("/secret", 403),
        ("/secret/", 403),
        ("/secret/a", 403),
        // A mounted service of another framework might read these as they were sent.
        ("/secret/..", 403),
        ("/secret/../a", 403),
        ("/secret/%2e%2e/a", 403),
        ("/%73ecret/../a", 403),
        ("//secret/.%2e/./a", 403),
        ("/%73ecret/a", 403),
        ("/s%65cret", 403),
        ("/x/../secret", 403),
        ("/x/%2E%2e/secret", 403),
        ("/x/../y/../secret/a", 403),
        ("/x/..%2fsecret/a", 403),
        ("//secret", 403),
        ("/./secret", 403),
        ("/secret%2Fa", 403),
        ("http://localhost/secret", 403),
        ("/secrets", 200),
        ("/x/secret", 200),
        ("/Secret", 200),
        ("/x/../y", 200),
        ("/", 200),
    ] {
        assert_eq!(client.get(&testkit::tls::target(target)).status, status, "{target}");
    }
}

#[test]
fn middleware_surrounds_a_handler_that_reads_the_body() {
    let mut app = App::new();
    app.before(|request: &Request, response: &mut Response| match request.query() {
        Some("stop") => {
            response.status(403).text("stopped");
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    app.after(sign("after"));
    app.post_async("/", async |call: &mut Call| {
        let body = call.read_to_end(10).await.expect("it is short");
        call.response().body(&body);
    })
    .read();
    let served = Served::app(app);
    let mut client = served.connect();
    for (target, status, body) in [("/", 200, "abc"), ("/?stop", 403, "stopped")] {
        let response = client.send_body("POST", target, &[], b"abc");
        assert_eq!((response.status, response.text()), (status, body));
        assert_eq!(response.field("X-Way"), Some(format!("after {status}").as_str()));
    }
}

#[test]
fn panic_in_middleware_costs_only_its_request() {
    let mut app = App::new();
    app.before(|request: &Request, _: &mut Response| {
        assert_eq!(request.query(), None, "asked to");
        ControlFlow::Continue(())
    });
    app.get("/", handler);
    let served = Served::app(app);
    let mut client = served.connect();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.get("/?panic").status, 500);
    if testkit::http2::is_on() {
        // Other streams share it.
        assert_eq!(client.get("/").status, 200);
    } else {
        client.is_ended();
    }
    assert_eq!(served.connect().get("/").status, 200);
}
