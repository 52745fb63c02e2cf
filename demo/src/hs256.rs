//! HS256 (RFC 7518 section 3.2) for `jsonwebtoken`, the only algorithm of this program's tokens.
//!
//! The crate's own providers bring in RSA and elliptic curves, or a C library; two small crates suffice here.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use sha2::Sha256;
use signature::{Signer, Verifier};

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
