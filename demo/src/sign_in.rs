//! `/login` and `/me`: a token for a password, and a page that requires it.

use axum::Json;
use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode, header};
use serde::{Deserialize, Serialize};

use crate::app::Refusal;
use crate::token::{Claims, Keys, LIFETIME};

/// The only account; it protects nothing but `/me`.
const USER: &str = "demo";
const PASSWORD: &str = "demo";

/// Request body of `/login`.
#[derive(Deserialize)]
pub(crate) struct Login {
    user: String,
    password: String,
}

/// Response body of `/login`.
#[derive(Serialize)]
pub(crate) struct Granted {
    token: String,
    expires_in_seconds: u64,
}

/// Response body of `/me`.
#[derive(Serialize)]
pub(crate) struct Me {
    user: String,
    /// Expiry in Unix seconds.
    expires: u64,
}

pub(crate) async fn login(
    State(keys): State<Keys>,
    Json(login): Json<Login>,
) -> Result<Json<Granted>, Refusal> {
    if login.user != USER || login.password != PASSWORD {
        let why = format!("wrong user or password; here they are `{USER}` and `{PASSWORD}`\n");
        return Err((StatusCode::UNAUTHORIZED, why));
    }
    let token = keys.issue(&login.user);
    let token = token.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("no token: {error}\n")))?;
    Ok(Json(Granted { token, expires_in_seconds: LIFETIME.as_secs() }))
}

pub(crate) async fn me(claims: Claims) -> Json<Me> {
    Json(Me { user: claims.sub, expires: claims.exp })
}

/// Requires a valid token for handlers that take `Claims`.
impl<S: Send + Sync> FromRequestParts<S> for Claims
where
    Keys: FromRef<S>,
{
    type Rejection = (StatusCode, [(HeaderName, &'static str); 1], &'static str);

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let refused = |why| (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], why);
        let field = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = field.and_then(bearer).ok_or(refused("a token from /login is needed\n"))?;
        Keys::from_ref(state).check(token).map_err(|_| refused("this token is not good, or not any more\n"))
    }
}

/// Returns the token of `Bearer TOKEN`; the scheme is case-insensitive (RFC 9110 section 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(token.trim_start())
}
