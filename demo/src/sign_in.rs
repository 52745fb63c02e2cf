//! `/login` and `/me`: a JSON Web Token for a password, and a page that requires it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode, header};
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use signature::{Signer, Verifier};

use crate::app::Refusal;

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

/// Time for which a token is valid.
pub(crate) const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The claims of a token.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The user.
    pub(crate) sub: String,
    /// Expiry in Unix seconds.
    pub(crate) exp: u64,
}

/// Keys to sign and verify tokens.
#[derive(Clone)]
pub(crate) struct Keys(Arc<(EncodingKey, DecodingKey)>);

impl Keys {
    /// Fails if the secret is no valid key.
    pub(crate) fn new(secret: &[u8]) -> Result<Self, Error> {
        // Fails if already installed; then it is the same provider.
        let _ = PROVIDER.install_default();
        let keys = Self(Arc::new((EncodingKey::from_secret(secret), DecodingKey::from_secret(secret))));
        keys.sign(&Claims { sub: String::new(), exp: 0 })?;
        Ok(keys)
    }

    /// Creates a token for `user`, valid for [`LIFETIME`] from now.
    pub(crate) fn issue(&self, user: &str) -> Result<String, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_err(|_| Error::from(ErrorKind::ExpiredSignature))?;
        self.sign(&Claims { sub: user.to_owned(), exp: (now + LIFETIME).as_secs() })
    }

    fn sign(&self, claims: &Claims) -> Result<String, Error> {
        encode(&Header::new(Algorithm::HS256), claims, &self.0.0)
    }

    /// Returns the claims of a token if its signature is valid and it hasn't expired.
    pub(crate) fn check(&self, token: &str) -> Result<Claims, Error> {
        Ok(decode::<Claims>(token, &self.0.1, &Validation::new(Algorithm::HS256))?.claims)
    }
}

/// The cryptography provider for `jsonwebtoken`.
pub(crate) static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key: &EncodingKey| Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?)),
    verifier_factory: |algorithm, key: &DecodingKey| {
        Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// HMAC with SHA-256 under one key.
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    /// Fails for algorithms other than HS256 and for invalid keys.
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self, Error> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        let mac = Hmac::new_from_slice(key).map_err(|_| Error::from(ErrorKind::InvalidKeyFormat))?;
        Ok(Self(mac))
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.0.clone().chain_update(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        self.0.clone().chain_update(message).verify_slice(signature).map_err(signature::Error::from_source)
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7515 appendix A.1: its key (in JWK form) and token.
    #[test]
    fn signs_as_in_the_rfc() {
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let signed = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
                      eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        Keys::new(b"any").unwrap();
        let key = EncodingKey::from_urlsafe_base64_secret(&format!("{key}==")).unwrap();
        let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &key, Algorithm::HS256).unwrap();
        assert_eq!(signature, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    }

    #[test]
    fn accepts_a_token_for_its_key_and_time_only() {
        let (keys, others) = (Keys::new(b"one").unwrap(), Keys::new(b"another").unwrap());
        let token = keys.issue("ada").unwrap();
        assert_eq!(keys.check(&token).unwrap().sub, "ada");
        assert_eq!(others.check(&token).unwrap_err().kind(), &ErrorKind::InvalidSignature);
        let over = keys.sign(&Claims { sub: "ada".to_owned(), exp: 1_000_000 }).unwrap();
        assert_eq!(keys.check(&over).unwrap_err().kind(), &ErrorKind::ExpiredSignature);
    }

    /// Ignores the algorithm that a token's header names, such as `none`.
    #[test]
    fn ignores_the_algorithm_of_a_token() {
        let keys = Keys::new(b"one").unwrap();
        let token = keys.issue("ada").unwrap();
        let claims = token.split('.').nth(1).unwrap();
        // {"alg":"none"} and {"alg":"HS512"}
        for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJIUzUxMiJ9"] {
            assert!(keys.check(&format!("{header}.{claims}.")).is_err(), "{header}");
        }
    }
}
