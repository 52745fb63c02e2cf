//! Static files of one folder.
//!
//! [`Files`] serves a request as `files` shows it:
//!
//! 1. `resolve`: turns the path into a name, and searches for its file among the candidates beneath the root.
//! 2. `cache`: one table of files in memory, open files, looked up names and directories, checked within 500 ms or now.
//!    `siblings` and `negotiation` select the coding. `compressions` has what was compressed on the fly.
//!    `disk` loads what isn't there, on another thread if the worker would have to wait.
//! 3. `conditional`: validators, preconditions and ranges.
//! 4. `reply`: writes the response of a file's version, an error or a redirect. `listing` builds the list of a folder.

#![forbid(unsafe_code)]

mod cache {
    pub(crate) mod cached_file;
    mod compressed_file;
    pub(crate) mod content_hashes;
    pub(crate) mod directories;
    pub(crate) mod entry;
    mod fifo;
    pub(crate) mod lookups;
    mod open_file;
    mod recently_evicted;
    mod revalidation;
    pub(crate) mod statistics;
    pub(crate) mod store;
    pub(crate) mod table;
    #[cfg(test)]
    pub(crate) mod tests;
}
mod cache_control;
mod compressions;
#[doc(hidden)]
pub mod conditional {
    pub mod preconditions;
    pub mod range;
    pub(crate) mod validators;
}
mod disk;
mod files;
mod finder;
mod folder;
mod leaving_links;
pub mod limits;
mod listing;
mod media_type;
#[doc(hidden)]
pub mod negotiation;
mod now;
mod options;
#[doc(hidden)]
pub mod reply {
    pub mod errors;
    pub(crate) mod version;
}
#[doc(hidden)]
pub mod resolve {
    pub(crate) mod candidate;
    pub mod path;
    pub(crate) mod search;
}
mod settings;
mod siblings;

pub use cache::statistics::{CacheFigures, CacheStatistics};
pub use compressions::{CompressionFigures, compression_figures};
pub use conditional::range;
pub use files::Files;
pub use folder::{FileCache, Folder};
pub use leaving_links::{LeavingLink, LeavingLinks};
pub use limits::CacheLimits;
pub use media_type::media_type;
pub use options::{
    BadOption, CacheRule, FileMatch, FindOptions, FolderError, FolderOptions, Hidden, MediaTypeOptions,
};
/// Content codings of precompressed files, and symbolic links that are followed.
pub use shearwater_io::fs::{Coding, Links};

/// Compiles and runs the code of the guide's page with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/files.md")]
mod guide {}
