//! The library of cryptography that the features choose.

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

#[cfg(feature = "aws-lc-rs")]
pub(crate) use aws_lc_rs as library;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(crate) use ring as library;

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
compile_error!("shearwater-tls needs one of its features `aws-lc-rs` and `ring`");

/// Returns the algorithms of rustls, the same for all configurations of the process.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    #[cfg(feature = "aws-lc-rs")]
    use rustls::crypto::aws_lc_rs::default_provider;
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    use rustls::crypto::ring::default_provider;

    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(default_provider()));
    Arc::clone(&PROVIDER)
}
