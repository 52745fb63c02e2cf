//! Static files of one folder.
//!
//! [`Files::respond`] is the whole way: method → `resolve` (target to name) → `finder`: open beneath the root, which nothing
//! leaves, or the cache → `siblings` and `accept_encoding` (in which coding?) → `conditional` (does the client have it?) → `range` (which part of it?) → reply.

#![forbid(unsafe_code)]

mod accept_encoding;
mod boundary;
mod cache;
mod coding;
mod conditional;
mod files;
mod finder;
mod held;
pub mod limits;
mod media_type;
mod now;
mod open_files;
mod page;
mod partial;
pub mod range;
mod redirect;
mod refuse;
#[doc(hidden)]
pub mod resolve;
mod seen;
mod siblings;
mod validators;
mod variant;
mod version;

pub use files::{Files, Folder};
pub use limits::CacheLimits;
pub use media_type::media_type;
