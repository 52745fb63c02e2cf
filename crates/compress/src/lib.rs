//! Content codings (RFC 9110 section 8.4.1): which one a client accepts, what is worth it, encoding and decoding.
//!
//! Everything here takes time in proportion to the content: none of it belongs on a worker but
//! [`negotiation`] and [`is_compressible`].

#![forbid(unsafe_code)]

mod coding;
pub mod limits;
mod media;
pub mod negotiation;
mod stream;

pub use coding::{decode, encode, encode_bytes, level_max, level_on_the_fly};
pub use media::is_compressible;
pub use shearwater_io::fs::Coding;
pub use stream::StreamEncoder;
