//! Applications behind layers and extractors: a key-value store with tower's layers, JSON Web Tokens.

use std::collections::HashMap;
use std::future::pending;
use std::io::Read;
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{DefaultBodyLimit, FromRef, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use jsonwebtoken::{DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use testkit::ClientResponse;
use tokio::sync::mpsc;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::serve::{Json as _, Served, serve};

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
fn returns_stored_values() {
    let server = serve(app(DEADLINE));
    let value: Vec<u8> = (0..=255).cycle().take(VALUE_BYTES_MAX).collect();
    assert_eq!(server.ask("PUT", "/blob", &[], &value).status, 200);
    let got = server.get("/blob");
    assert_eq!(got.content_length(), Some(VALUE_BYTES_MAX));
    assert!(got.body == value, "a value that comes back differs");
    assert_eq!(server.get("/none").status, 404);
}

#[test]
fn rejects_values_over_the_limit() {
    let server = serve(app(DEADLINE));
    let value = vec![b'x'; VALUE_BYTES_MAX + 1];
    assert_eq!(server.ask("PUT", "/big", &[], &value).status, 413);
    assert_eq!(server.get("/big").status, 404);
}

#[test]
fn responds_408_after_the_timeout() {
    let server = serve(app(SHORT_DEADLINE));
    let mut client = server.connect();
    for _ in 0..3 {
        let late = client.get("/never");
        assert_eq!((late.status, late.text()), (408, "took too long"), "the connection stays open");
    }
}

#[test]
fn compresses_responses() {
    let server = serve(app(DEADLINE));
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

#[test]
fn protects_routes_by_a_token() {
    let server = serve(app(DEADLINE));
    server.ask("PUT", "/a", &[], b"1");
    assert_eq!(server.ask("DELETE", "/admin/keys", &[], b"").status, 401);
    assert_eq!(server.get("/a").text(), "1");
    let token = format!("Authorization: {TOKEN}");
    assert_eq!(server.ask("DELETE", "/admin/keys", &[&token], b"").status, 204);
    assert_eq!(server.get("/a").status, 404);
}

/// `Server` and `Date` occur once, whether the server or the application sets them.
#[test]
fn sends_each_header_of_a_layer_once() {
    let server = serve(app(DEADLINE));
    server.ask("PUT", "/a", &[], b"1");
    let head = server.get("/a");
    assert_eq!(head.all("cache-control"), ["no-store"]);
    assert_eq!((head.all("server").len(), head.all("date").len()), (1, 1));
}

#[test]
fn sheds_load() {
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
    let mut holder = server.connect();
    holder.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    inside.blocking_recv().unwrap();

    let shed = server.get("/hold");
    assert_eq!((shed.status, shed.text()), (503, "busy, try again"));
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    exp: u64,
}

/// The keys as application state.
#[derive(Clone)]
struct Keys(Arc<(EncodingKey, DecodingKey)>);

impl Keys {
    fn new(secret: &[u8]) -> Self {
        Self(Arc::new((EncodingKey::from_secret(secret), DecodingKey::from_secret(secret))))
    }

    fn token(&self, sub: &str, exp: u64) -> String {
        encode(&Header::default(), &Claims { sub: sub.to_owned(), exp }, &self.0.0).unwrap()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Claims
where
    Keys: FromRef<S>,
{
    type Rejection = (StatusCode, [(header::HeaderName, &'static str); 1]);

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let refused = (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]);
        let field = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = field.and_then(|value| value.strip_prefix("Bearer ")).ok_or(refused.clone())?;
        let keys = Keys::from_ref(state);
        let checked = decode::<Claims>(token, &keys.0.1, &Validation::default());
        checked.map(|token| token.claims).map_err(|_| refused)
    }
}

#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
}

async fn login(State(keys): State<Keys>, Json(login): Json<Login>) -> Result<String, StatusCode> {
    let known = login.user == "ada" && login.password == "lovelace";
    known.then(|| keys.token(&login.user, now() + 60)).ok_or(StatusCode::FORBIDDEN)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn served(keys: &Keys) -> Served {
    let me = async |claims: Claims| Json(json!({ "user": claims.sub }));
    serve(Router::new().route("/login", post(login)).route("/me", get(me)).with_state(keys.clone()))
}

fn me(server: &Served, token: &str) -> ClientResponse {
    server.ask("GET", "/me", &[&format!("Authorization: Bearer {token}")], b"")
}

#[test]
fn accepts_a_valid_token() {
    let server = served(&Keys::new(b"secret"));
    let token = server.ask_json("POST", "/login", &json!({ "user": "ada", "password": "lovelace" }));
    assert_eq!(me(&server, token.text()).json(), json!({ "user": "ada" }));
    let wrong = server.ask_json("POST", "/login", &json!({ "user": "ada", "password": "byron" }));
    assert_eq!(wrong.status, 403);
}

#[test]
fn rejects_invalid_tokens() {
    let keys = Keys::new(b"secret");
    let server = served(&keys);
    let missing = server.get("/me");
    assert_eq!((missing.status, missing.field("www-authenticate")), (401, Some("Bearer")));
    let good = keys.token("ada", now() + 60);
    let forged = Keys::new(b"guess").token("ada", now() + 60);
    let expired = keys.token("ada", now() - 3600);
    assert_eq!(me(&server, &good).status, 200);
    for token in ["", "x", "a.b.c", &good[..good.len() - 2], &forged, &expired] {
        assert_eq!(me(&server, token).status, 401, "`{token}`");
    }
}
