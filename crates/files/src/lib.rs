//! Static files of one folder.
//!
//! [`Files::respond`] is the whole way: method → `resolve` (target to name) → open beneath the root, which nothing
//! leaves, or the cache → `conditional` (does the client have it?) → reply.

#![forbid(unsafe_code)]

mod cache;
mod conditional;
mod files;
mod held;
pub mod limits;
mod media_type;
mod open_files;
mod redirect;
mod resolve;
mod validators;
mod version;

pub use files::{Files, Folder};
pub use limits::CacheLimits;
pub use media_type::media_type;
