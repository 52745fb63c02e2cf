//! JSON Web Tokens with a user and an expiry.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};

use crate::hs256::PROVIDER;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7515 appendix A.1: its key (in JWK form) and token.
    #[test]
    fn the_signature_is_that_of_the_rfc() {
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let signed = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
                      eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        Keys::new(b"any").unwrap();
        let key = EncodingKey::from_urlsafe_base64_secret(&format!("{key}==")).unwrap();
        let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &key, Algorithm::HS256).unwrap();
        assert_eq!(signature, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    }

    #[test]
    fn a_token_is_good_for_its_key_and_time_alone() {
        let (keys, others) = (Keys::new(b"one").unwrap(), Keys::new(b"another").unwrap());
        let token = keys.issue("ada").unwrap();
        assert_eq!(keys.check(&token).unwrap().sub, "ada");
        assert_eq!(others.check(&token).unwrap_err().kind(), &ErrorKind::InvalidSignature);
        let over = keys.sign(&Claims { sub: "ada".to_owned(), exp: 1_000_000 }).unwrap();
        assert_eq!(keys.check(&over).unwrap_err().kind(), &ErrorKind::ExpiredSignature);
    }

    /// Ignores the algorithm that a token's header names, such as `none`.
    #[test]
    fn a_token_cannot_choose_its_algorithm() {
        let keys = Keys::new(b"one").unwrap();
        let token = keys.issue("ada").unwrap();
        let claims = token.split('.').nth(1).unwrap();
        // {"alg":"none"} and {"alg":"HS512"}
        for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJIUzUxMiJ9"] {
            assert!(keys.check(&format!("{header}.{claims}.")).is_err(), "{header}");
        }
    }
}
