//! Makes precompressed files, called siblings: `NAME.br`, `NAME.zst` and `NAME.gz` beside `NAME`.
//!
//! [`precompress`] does all of it: `folder` collects the files, `run` distributes them over threads, `sample` skips those
//! that don't compress, `sibling` checks and atomically replaces siblings.

#![forbid(unsafe_code)]

mod folder;
pub mod limits;
mod run;
mod sample;
mod sibling;

pub use folder::{Unused, unused};
pub use run::{FailedFile, Options, PerFormat, RunSummary, precompress};
pub use shearwater_compress::{Coding, level_max};
