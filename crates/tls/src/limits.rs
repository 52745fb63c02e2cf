//! Bounds of this crate. `docs/limits.md` lists them.

/// Largest PEM file that is read: a certificate chain, a key, a file of client authorities.
pub const PEM_BYTES_MAX: usize = 1 << 20;

/// Largest number of certificates in a server's chain.
pub const CHAIN_CERTIFICATES_MAX: usize = 16;
