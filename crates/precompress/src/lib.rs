//! Makes the compressed siblings of a folder's files: `NAME.br`, `NAME.zst` and `NAME.gz`, for a server that sends them ready.
//!
//! [`precompress`] is the whole way: `walk` (which files) → `work` (over the threads) → `sibling` (is it there already? a new one takes its
//! place at once or not at all) → `sample` (does it get smaller at all?) → `format` (the coding).

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod format;
pub mod limits;
mod packed;
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
