//! A key-value store behind tower's layers.

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

/// `Server` and `Date` occur once, whether the server or the application sets them.
#[test]
fn stores_values_up_to_the_limit_with_each_header_once() {
    for server in serve(|| app(DEADLINE)) {
        let value: Vec<u8> = (0..=255).cycle().take(VALUE_BYTES_MAX + 1).collect();
        assert_eq!(server.ask("PUT", "/blob", &[], &value[1..]).status, 200);
        assert_eq!(server.ask("PUT", "/blob", &[], &value).status, 413);
        let got = server.get("/blob");
        assert_eq!(got.content_length(), Some(VALUE_BYTES_MAX));
        assert!(got.body == value[1..], "a value that comes back differs");
        assert_eq!(got.all("cache-control"), ["no-store"]);
        assert_eq!((got.all("server").len(), got.all("date").len()), (1, 1));
    }
}

#[test]
fn responds_408_after_the_timeout() {
    for server in serve(|| app(SHORT_DEADLINE)) {
        let mut client = server.connect();
        for _ in 0..3 {
            let late = client.get("/never");
            assert_eq!((late.status, late.text()), (408, "took too long"), "the connection stays open");
        }
    }
}

#[test]
fn compresses_responses() {
    for server in serve(|| app(DEADLINE)) {
        let text = "shear water ".repeat(2000);
        server.ask("PUT", "/text", &[], text.as_bytes());
        let packed = server.ask("GET", "/text", &["Accept-Encoding: gzip"], b"");
        assert_eq!(packed.field("content-encoding"), Some("gzip"));
        assert!(packed.field("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("accept-encoding")));
        assert_eq!(packed.content_length(), None, "its length isn't known when the head is sent");
        assert!(packed.body.len() < text.len() / 10);
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(packed.body.as_slice()).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, text);
    }
}

#[test]
fn protects_routes_by_a_token() {
    for server in serve(|| app(DEADLINE)) {
        server.ask("PUT", "/a", &[], b"1");
        assert_eq!(server.ask("DELETE", "/admin/keys", &[], b"").status, 401);
        assert_eq!(server.get("/a").text(), "1");
        let token = format!("Authorization: {TOKEN}");
        assert_eq!(server.ask("DELETE", "/admin/keys", &[&token], b"").status, 204);
        assert_eq!(server.get("/a").status, 404);
    }
}

#[test]
fn sheds_load() {
    let (entered, mut inside) = mpsc::channel(1);
    let app = || {
        let layers = ServiceBuilder::new()
            .layer(HandleErrorLayer::new(told))
            .load_shed()
            .layer(GlobalConcurrencyLimitLayer::new(1));
        let entered = entered.clone();
        let hold = async move || {
            entered.send(()).await.unwrap();
            pending::<()>().await;
        };
        Router::new().route("/hold", get(hold)).layer(layers)
    };
    for server in serve(app) {
        let mut holder = server.connect();
        holder.ask("GET", "/hold", &[]);
        inside.blocking_recv().unwrap();
        let shed = server.get("/hold");
        assert_eq!((shed.status, shed.text()), (503, "busy, try again"));
    }
}
