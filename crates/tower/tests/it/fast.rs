//! Native routes in front of a router.

use std::ops::ControlFlow;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
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
        let mut client = served.connect();
        for (method, target, expected) in
            [("GET", "/plaintext", "fast"), ("PUT", "/plaintext", "routed"), ("GET", "/", "root")]
        {
            assert_eq!(client.request(method, target, &[]).text(), expected, "{method} {target}");
        }
        assert_eq!(client.send_body("POST", "/echo", &[], b"said").text(), "said");
        assert_eq!(client.request("GET", "/none", &[]).status, 404);
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

/// Responds with the requested status, immediately or deferred.
async fn response(Path((status, when)): Path<(u16, String)>) -> axum::response::Response {
    if when == "soon" {
        tokio::task::yield_now().await;
    }
    let status = StatusCode::from_u16(status).expect("a status");
    match status {
        StatusCode::OK => "answer".into_response(),
        _ => status.into_response(),
    }
}

/// Middleware applies to a service's response, immediate or deferred, for each method.
#[test]
fn steps_around_a_service_see_no_difference_between_at_once_and_later() {
    for driver in drivers() {
        let mut fast = App::new();
        fast.before(|_: &Request, response: &mut Response| {
            response.text("before").field("Before", "yes");
            ControlFlow::Continue(())
        });
        fast.after(|_: &Request, response: &mut Response| {
            let status = response.status_code().to_string();
            response.field("Seen", status).html("<p>after</p>");
        });
        let router = Router::new().route("/{status}/{when}", get(response));
        let served = Served::of(here(router).driver(driver).fast(fast));
        let mut client = served.connect();
        for (status, body) in [(200, "answer"), (404, ""), (204, "")] {
            let mut heads = Vec::new();
            for (method, when) in [("GET", "now"), ("GET", "soon"), ("HEAD", "now"), ("HEAD", "soon")] {
                let response = client.request(method, &format!("/{status}/{when}"), &[]);
                let body = if method == "HEAD" { "" } else { body };
                assert_eq!((response.status, response.text()), (status, body), "{method} {when}");
                assert_eq!((response.field("Before"), response.field("Seen")), (Some("yes"), Some("200")));
                let mut fields = response.fields.clone();
                fields.retain(|(name, _)| name != "Date");
                fields.sort();
                heads.push(fields);
            }
            assert!(heads.iter().all(|fields| *fields == heads[0]), "{status}: {heads:#?}");
        }
    }
}
