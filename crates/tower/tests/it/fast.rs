//! Routes of the engine's own in front of a router.

use axum::Router;
use axum::routing::{any, get};
use shearwater::{App, Error, Fast, Request, Response};

use crate::served::{Served, drivers, here};

#[test]
fn what_they_have_no_route_for_is_the_routers() {
    for driver in drivers() {
        let mut fast = App::new();
        fast.fast("/plaintext", Fast::text("fast"));
        fast.post("/echo", |request: &Request, response: &mut Response| {
            response.body(request.body());
        })
        .buffer(1024);
        let router = Router::new()
            .route("/plaintext", any(|| async { "routed" }))
            .route("/", get(|| async { "root" }));
        let served = Served::of(here(router).driver(driver).fast(fast));
        let mut wire = served.wire();
        for (method, target, expected) in
            [("GET", "/plaintext", "fast"), ("PUT", "/plaintext", "routed"), ("GET", "/", "root")]
        {
            assert_eq!(wire.request(method, target, &[]).text(), expected, "{method} {target}");
        }
        assert_eq!(wire.send_body("/echo", &[], b"said").text(), "said");
        assert_eq!(wire.request("GET", "/none", &[]).status, 404);
    }
}

#[test]
fn an_app_that_leaves_nothing_to_the_router_is_an_error() {
    let mut fast = App::new();
    fast.fallback(|_: &Request, response: &mut Response| {
        response.text("all");
    });
    assert!(matches!(here(Router::new()).fast(fast).start().err(), Some(Error::Routes(_))));
}
