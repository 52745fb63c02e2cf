//! Static files of one folder.
//!
//! [`Files::respond`] is the whole way: method → `resolve` (target to name) → `finder`: what the name came to a moment ago (`lookups`), or `search`: its
//! candidates, opened beneath the root, which nothing leaves → `store`: the file in memory or open, or `listing`, the list of a folder → `siblings` and `accept_encoding` (in which coding?) → `conditional` (does the client have it?) → `range` (which part of it?) → reply.

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

#[doc(hidden)]
pub mod accept;
#[doc(hidden)]
pub mod accept_encoding;
mod boundary;
mod cache;
mod cache_control;
mod candidate;
mod clock_cache;
#[doc(hidden)]
pub mod coding;
mod conditional;
mod content;
#[doc(hidden)]
pub mod entity_tag;
mod file_cache;
mod files;
mod finder;
mod folder;
mod held;
pub mod limits;
mod listing;
mod lookups;
mod media_type;
mod media_types;
mod navigation;
mod now;
mod one_path;
mod open_files;
mod options;
mod outlook;
mod partial;
mod plain_path;
mod plan;
pub mod range;
mod redirect;
mod refuse;
#[doc(hidden)]
pub mod resolve;
mod search;
mod seen;
mod shelf;
mod siblings;
mod store;
mod validators;
mod variant;
mod version;
mod weight;

pub use cache_control::{CacheRule, FileMatch};
pub use coding::Coding;
pub use file_cache::FileCache;
pub use files::Files;
pub use folder::Folder;
pub use limits::CacheLimits;
pub use media_type::media_type;
pub use options::{BadOption, FindOptions, FolderError, FolderOptions, Hidden, MediaTypeOptions};
/// The symbolic links that are followed.
pub use shearwater_io::fs::Links;

/// The page of `docs/guide`: its code is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/files.md")]
mod guide {}
