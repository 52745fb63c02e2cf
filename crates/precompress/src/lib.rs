//! Makes precompressed files, called siblings: `NAME.br`, `NAME.zst` and `NAME.gz` beside `NAME`.
//!
//! [`precompress`] does all of it: `walk` collects the files, `work` distributes them over threads, `sample` skips those that don't
//! compress, `sibling` checks and atomically replaces siblings, `format` encodes.

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod format;
pub mod limits;
mod sample;
mod sibling;
mod summary;
mod temporary;
mod unused;
mod walk;
mod work;

pub use format::Format;
pub use summary::{Failed, PerFormat, Summary};
pub use unused::{Unused, unused};
pub use work::{Options, precompress};
