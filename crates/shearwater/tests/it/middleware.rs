//! Middleware: order, paths, and early ends.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use shearwater::{App, Call, Reading, Request, Response, after, get, guard, later_reading, post};
use testkit::TestClient;

use crate::served::Served;

/// Adds a name to those of the request's heads, which [`way`] takes.
#[derive(Clone, Default)]
struct Heads(Arc<Mutex<Vec<&'static str>>>);

impl Heads {
    fn note(
        &self,
        name: &'static str,
    ) -> impl Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync + use<> {
        let heads = self.clone();
        move |_, response| {
            heads.0.lock().expect("no panic").push(name);
            response.field("X-Passing", "lost");
            ControlFlow::Continue(())
        }
    }

    /// Returns a response's status, and the names of the steps that have seen its request.
    fn way(&self, client: &mut TestClient, method: &str, target: &str) -> (u16, String) {
        let response = client.request(method, target, &[]);
        assert_eq!(response.field("X-Passing"), None);
        let named = |field: &&(String, String)| field.0.eq_ignore_ascii_case("x-way");
        let behind = response.fields.iter().filter(named).map(|(_, value)| value.as_str());
        let heads = std::mem::take(&mut *self.0.lock().expect("no panic"));
        (response.status, heads.into_iter().chain(behind).collect::<Vec<_>>().join(", "))
    }
}

/// Adds a header field with the status, after the handler.
pub(crate) fn sign(name: &'static str) -> impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync {
    move |_, response| {
        let status = response.status_code();
        response.field("X-Way", format!("{name} {status}"));
    }
}

fn handler(_: &Request, response: &mut Response) {
    response.field("X-Way", "handler");
}

/// Adds inner scopes and later steps first where the order doesn't matter.
fn app(heads: &Heads) -> App {
    App::new()
        .scope("/api", |api| {
            api.with(after(sign("api1")))
                .with(guard(heads.note("api1")))
                .with(guard(heads.note("api2")))
                .with(after(sign("api2")))
                .route("/x", get(handler))
                .route("/user/{id}", get(handler))
                .route("/fast", get("fast"))
                .scope("/in/ner", |inner| {
                    inner
                        .with(guard(heads.note("inner")))
                        .with(after(sign("inner")))
                        .route("", get(handler))
                        .route("/", get(handler))
                })
                .scope("/own", |own| own.fallback(handler))
        })
        .with(guard(heads.note("app")))
        .with(after(sign("app")))
        .route("/api/beside", get(handler))
        .route("/other", get(handler))
        .route("/any/{x}/{y}", get(handler))
}

#[test]
fn runs_middleware_from_outer_to_inner_scopes_and_back() {
    let heads = Heads::default();
    let served = Served::app(app(&heads));
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
        assert_eq!(heads.way(&mut client, method, target), (status, expected), "{method} {target}");
    }
}

#[test]
fn middleware_can_end_a_request() {
    let heads = Heads::default();
    let app = App::new()
        .with(guard(heads.note("first")))
        .with(guard(|request: &Request, response: &mut Response| {
            if request.head().field_named("X-Key").is_some() {
                return ControlFlow::Continue(());
            }
            response.status(401).text("who are you?");
            ControlFlow::Break(())
        }))
        .with(guard(heads.note("third")))
        .with(after(sign("after")))
        .route("/", get(handler));
    let served = Served::app(app);
    let mut client = served.connect();
    let stopped = client.get("/");
    assert_eq!((stopped.status, stopped.text()), (401, "who are you?"));
    heads.0.lock().expect("no panic").clear();
    assert_eq!(heads.way(&mut client, "GET", "/"), (401, "first, after 401".to_owned()));
    assert_eq!(heads.way(&mut client, "GET", "/none"), (401, "first, after 401".to_owned()));
    let let_in = client.request("GET", "/", &["X-Key: 1"]);
    assert_eq!((let_in.status, let_in.text()), (200, ""));
}

#[test]
fn guards_paths_in_every_encoding() {
    let app = App::new()
        .fallback(handler)
        .route("/{a}/{b}", get(handler))
        .route("/{a}/{b}/{c}", get(handler))
        .scope("/secret", |secret| {
            secret
                .with(guard(|_: &Request, response: &mut Response| {
                    response.status(403);
                    ControlFlow::Break(())
                }))
                .route("/{x}", get(handler))
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
    let app = App::new()
        .with(guard(|request: &Request, response: &mut Response| match request.query_raw() {
            Some("stop") => {
                response.status(403).text("stopped");
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }))
        .with(after(sign("after")))
        .route(
            "/",
            post(later_reading(async |call: &mut Call<(), Reading>| {
                let body = call.read_to_end(10).await.expect("it is short");
                call.response().body(&body);
            })),
        );
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
    let app = App::new()
        .with(guard(|request: &Request, _: &mut Response| {
            assert_eq!(request.query_raw(), None, "asked to");
            ControlFlow::Continue(())
        }))
        .route("/", get(handler));
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
