//! axum's extractors: form, query, headers, raw target, extensions, the whole request.

use axum::extract::{Extension, Form, Query, RawQuery, Request};
use axum::http::{HeaderMap, Uri, header};
use axum::response::AppendHeaders;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{Client, ask, get as ask_get};
use crate::serve::serve;

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

async fn fields(headers: HeaderMap) -> Json<Value> {
    let all = |name: &str| -> Vec<String> {
        headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    };
    Json(
        json!({ "host": all("host"), "x-twice": all("x-twice"), "x-odd": all("x-odd"), "empty": all("x-empty") }),
    )
}

async fn whole(request: Request) -> String {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1024).await.unwrap();
    format!("{} {} {:?} {}", parts.method, parts.uri, parts.version, body.len())
}

fn app() -> Router {
    Router::new()
        .route("/form", post(async |Form(order): Form<Order>| Json(order)))
        .route("/query", get(async |Query(order): Query<Order>| Json(order)))
        .route("/raw", get(async |RawQuery(query): RawQuery| query.unwrap_or("none".to_owned())))
        .route("/fields", get(fields))
        .route("/uri", get(async |uri: Uri| uri.to_string()))
        .route("/whole", post(whole))
        .route("/name", get(async |Extension(name): Extension<&'static str>| name))
        .route(
            "/cookies",
            get(async || AppendHeaders([(header::SET_COOKIE, "a=1"), (header::SET_COOKIE, "b=2")])),
        )
        .layer(Extension("petrel"))
}

#[test]
fn forms_and_queries_are_decoded() {
    let server = serve(app());
    let form = ["Content-Type: application/x-www-form-urlencoded"];
    let order = json!({ "item": "rope & tar", "count": 3 });
    assert_eq!(ask(server.addr, "POST", "/form", &form, b"item=rope+%26+tar&count=3").json(), order);
    assert_eq!(ask_get(server.addr, "/query?item=rope%20%26%20tar&count=3").json(), order);
    assert_eq!(ask(server.addr, "POST", "/form", &form, b"item=rope&count=many").status(), 422);
    assert_eq!(ask_get(server.addr, "/raw?a=%41&&b").text(), "a=%41&&b");
    assert_eq!(ask_get(server.addr, "/raw").text(), "none");
    assert_eq!(ask_get(server.addr, "/name").text(), "petrel");
}

#[test]
fn fields_arrive_as_they_were_sent() {
    let server = serve(app());
    let sent = ["X-Twice: one", "x-twice:two", "X-Odd: caf\u{e9} \t end", "X-Empty:"];
    let seen = ask(server.addr, "GET", "/fields", &sent, b"").json();
    let odd = "caf\u{e9} \t end";
    assert_eq!(seen, json!({ "host": ["test"], "x-twice": ["one", "two"], "x-odd": [odd], "empty": [""] }));
}

#[test]
fn a_field_may_stand_twice_in_an_response() {
    let server = serve(app());
    assert_eq!(ask_get(server.addr, "/cookies").head.all("set-cookie"), ["a=1", "b=2"]);
}

/// Origin form and absolute form (RFC 9112 section 3.2).
#[test]
fn a_target_comes_in_its_form() {
    let server = serve(app());
    assert_eq!(ask_get(server.addr, "/uri?q=%C3%A4").text(), "/uri?q=%C3%A4");
    assert_eq!(ask_get(server.addr, "http://test/uri?x").text(), "http://test/uri?x");
}

#[test]
fn a_request_may_be_taken_as_a_whole() {
    let server = serve(app());
    let mut client = Client::connect(server.addr);
    assert_eq!(client.ask("POST", "/whole?a", &[], b"12345").text(), "POST /whole?a HTTP/1.1 5");
    assert_eq!(client.ask("POST", "/whole", &[], b"").text(), "POST /whole HTTP/1.1 0");
}
