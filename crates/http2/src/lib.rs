//! Sans-IO HTTP/2.
#![forbid(unsafe_code)]
mod error;
mod frame;
mod hpack;
pub mod limits;
pub use error::{ConnectionError, ErrorCode};
