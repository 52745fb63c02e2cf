//! A key-value store behind tower layers: timeout, load shedding, body limit, compression, authorization.

use std::collections::HashMap;
use std::future::pending;
use std::io::Read;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get};
use tokio::sync::mpsc;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::client::{Client, ask, get as ask_get};
use crate::serve::serve;

const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Timeout of requests in tests that don't wait for it.
const DEADLINE: Duration = Duration::from_secs(20);
const SHORT_DEADLINE: Duration = Duration::from_millis(20);
const TOKEN: &str = "Bearer let-me-in";

type Store = Arc<RwLock<HashMap<String, Bytes>>>;

async fn read(State(store): State<Store>, Path(key): Path<String>) -> Result<Bytes, StatusCode> {
    store.read().unwrap().get(&key).cloned().ok_or(StatusCode::NOT_FOUND)
}

async fn write(State(store): State<Store>, Path(key): Path<String>, value: Bytes) {
    store.write().unwrap().insert(key, value);
}

async fn clear(State(store): State<Store>) -> StatusCode {
    store.write().unwrap().clear();
    StatusCode::NO_CONTENT
}

async fn authorise(request: Request, next: Next) -> Result<Response, StatusCode> {
    match request.headers().get(header::AUTHORIZATION) {
        Some(token) if token == TOKEN => Ok(next.run(request).await),
        _ => Err(StatusCode::UNAUTHORIZED),
    }
}

/// Converts an error of a layer to a response.
async fn told(error: BoxError) -> (StatusCode, String) {
    if error.is::<tower::timeout::error::Elapsed>() {
        return (StatusCode::REQUEST_TIMEOUT, "took too long".to_owned());
    }
    if error.is::<tower::load_shed::error::Overloaded>() {
        return (StatusCode::SERVICE_UNAVAILABLE, "busy, try again".to_owned());
    }
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn app(deadline: Duration) -> Router {
    let admin = Router::new().route("/keys", delete(clear)).layer(middleware::from_fn(authorise));
    let layers = ServiceBuilder::new()
        .layer(SetResponseHeaderLayer::overriding(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        .layer(SetResponseHeaderLayer::overriding(header::SERVER, HeaderValue::from_static("store")))
        .layer(CompressionLayer::new())
        .layer(HandleErrorLayer::new(told))
        .load_shed()
        .concurrency_limit(64)
        .timeout(deadline);
    Router::new()
        .route("/{key}", get(read).put(write))
        .route("/never", get(async || pending::<()>().await))
        .layer((DefaultBodyLimit::disable(), RequestBodyLimitLayer::new(VALUE_BYTES_MAX)))
        .nest("/admin", admin)
        .layer(layers)
        .with_state(Store::default())
}

#[test]
fn a_value_comes_back_as_it_was_put() {
    let server = serve(app(DEADLINE));
    let value: Vec<u8> = (0..=255).cycle().take(VALUE_BYTES_MAX).collect();
    assert_eq!(ask(server.addr, "PUT", "/blob", &[], &value).status(), 200);
    let got = ask_get(server.addr, "/blob");
    assert_eq!(got.head.content_length(), Some(VALUE_BYTES_MAX));
    assert!(got.body == value, "a value that comes back differs");
    assert_eq!(ask_get(server.addr, "/none").status(), 404);
}

#[test]
fn a_value_over_the_limit_is_413() {
    let server = serve(app(DEADLINE));
    let value = vec![b'x'; VALUE_BYTES_MAX + 1];
    assert_eq!(ask(server.addr, "PUT", "/big", &[], &value).status(), 413);
    assert_eq!(ask_get(server.addr, "/big").status(), 404);
}

#[test]
fn what_takes_too_long_is_told_so() {
    let server = serve(app(SHORT_DEADLINE));
    let mut client = Client::connect(server.addr);
    for _ in 0..3 {
        let late = client.ask("GET", "/never", &[], b"");
        assert_eq!((late.status(), late.text()), (408, "took too long"), "the connection stays open");
    }
}

#[test]
fn a_compressed_response_unpacks_to_the_value() {
    let server = serve(app(DEADLINE));
    let text = "shear water ".repeat(2000);
    ask(server.addr, "PUT", "/text", &[], text.as_bytes());
    let packed = ask(server.addr, "GET", "/text", &["Accept-Encoding: gzip"], b"");
    assert_eq!(packed.head.field("content-encoding"), Some("gzip"));
    assert!(packed.head.field("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("accept-encoding")));
    assert_eq!(packed.head.content_length(), None, "its length isn't known when the head is sent");
    assert!(packed.body.len() < text.len() / 10);
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(packed.body.as_slice()).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, text);
}

#[test]
fn the_part_behind_a_token_asks_for_it() {
    let server = serve(app(DEADLINE));
    ask(server.addr, "PUT", "/a", &[], b"1");
    assert_eq!(ask(server.addr, "DELETE", "/admin/keys", &[], b"").status(), 401);
    assert_eq!(ask_get(server.addr, "/a").text(), "1");
    let token = format!("Authorization: {TOKEN}");
    assert_eq!(ask(server.addr, "DELETE", "/admin/keys", &[&token], b"").status(), 204);
    assert_eq!(ask_get(server.addr, "/a").status(), 404);
}

/// `Server` and `Date` occur once, whether the server or the application sets them.
#[test]
fn a_field_that_a_layer_sets_stands_once() {
    let server = serve(app(DEADLINE));
    ask(server.addr, "PUT", "/a", &[], b"1");
    let head = ask_get(server.addr, "/a").head;
    assert_eq!(head.all("cache-control"), ["no-store"]);
    assert_eq!((head.all("server").len(), head.all("date").len()), (1, 1));
}

#[test]
fn what_finds_no_place_is_shed() {
    let (entered, mut inside) = mpsc::channel(1);
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(told))
        .load_shed()
        .layer(GlobalConcurrencyLimitLayer::new(1));
    let hold = async move || {
        entered.send(()).await.unwrap();
        pending::<()>().await;
    };
    let server = serve(Router::new().route("/hold", get(hold)).layer(layers));
    let mut holder = Client::connect(server.addr);
    holder.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    inside.blocking_recv().unwrap();

    let shed = ask_get(server.addr, "/hold");
    assert_eq!((shed.status(), shed.text()), (503, "busy, try again"));
}
