//! JSON Web Tokens: a custom extractor checks signature and expiry.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use jsonwebtoken::{DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::{ClientResponse, ask, ask_json, get as ask_get};
use crate::serve::{Served, serve};

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
    ask(server.addr, "GET", "/me", &[&format!("Authorization: Bearer {token}")], b"")
}

#[test]
fn a_token_opens_what_is_protected() {
    let server = served(&Keys::new(b"secret"));
    let token = ask_json(server.addr, "POST", "/login", &json!({ "user": "ada", "password": "lovelace" }));
    assert_eq!(me(&server, token.text()).json(), json!({ "user": "ada" }));
    let wrong = ask_json(server.addr, "POST", "/login", &json!({ "user": "ada", "password": "byron" }));
    assert_eq!(wrong.status(), 403);
}

#[test]
fn no_other_token_does() {
    let keys = Keys::new(b"secret");
    let server = served(&keys);
    let missing = ask_get(server.addr, "/me");
    assert_eq!((missing.status(), missing.head.field("www-authenticate")), (401, Some("Bearer")));
    let good = keys.token("ada", now() + 60);
    let forged = Keys::new(b"guess").token("ada", now() + 60);
    let expired = keys.token("ada", now() - 3600);
    assert_eq!(me(&server, &good).status(), 200);
    for token in ["", "x", "a.b.c", &good[..good.len() - 2], &forged, &expired] {
        assert_eq!(me(&server, token).status(), 401, "`{token}`");
    }
}
