//! Static files of one folder.
//!
//! [`Files::respond`] serves a request in these steps:
//!
//! 1. `resolve` turns the target into a file name.
//! 2. `finder` looks the name up: first in `lookups` (results of the last 500 ms), then with `search`, which opens the
//!    candidates beneath the root.
//! 3. `store` returns the file from memory, from an open descriptor or newly opened, in the coding that `siblings` and
//!    `accept_encoding` select. `listing` builds the list of a folder.
//! 4. `version` evaluates preconditions (`conditional`) and ranges (`range`) and writes the response.

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
mod cached_file;
mod candidate;
mod canonical;
mod checks;
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
mod folder_cache;
pub mod limits;
mod listing;
mod lookups;
mod media_type;
mod media_types;
mod navigation;
mod now;
mod open_files;
mod options;
mod partial;
mod plain_path;
mod qvalue;
pub mod range;
mod redirect;
mod refuse;
#[doc(hidden)]
pub mod resolve;
mod search;
mod settings;
mod sibling_cache;
mod siblings;
mod store;
mod validators;
mod variant;
mod version;

pub use cache_control::{CacheRule, FileMatch};
pub use coding::Coding;
pub use file_cache::FileCache;
pub use files::Files;
pub use folder::Folder;
pub use limits::CacheLimits;
pub use media_type::media_type;
pub use options::{BadOption, FindOptions, FolderError, FolderOptions, Hidden, MediaTypeOptions};
/// Symbolic links that are followed.
pub use shearwater_io::fs::Links;

/// Compiles and runs the code of the guide's page with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/files.md")]
mod guide {}
