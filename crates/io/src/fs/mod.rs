//! Opening files beneath a root, so that nothing outside it can be reached: not by `..`, not by links, not by a race
//! with someone who moves things about meanwhile.
//!
//! On Linux the kernel itself keeps the walk inside ([`Resolver::Kernel`]: `openat2` with `RESOLVE_BENEATH`). Where
//! it can't, [`Resolver::Walk`] goes step by step and never follows a link that it hasn't read. Both give the same
//! answers; one table of tests holds them to it. [`Links`] sets which symbolic links
//! are followed. `..` in a path is always refused.

mod directory;
mod error;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(not(target_os = "linux"))]
#[path = "kernel_none.rs"]
mod kernel;
mod limits;
mod links;
mod opened;
mod path;
mod root;
mod root_path;
mod sibling;
mod walk;

pub use directory::{Entry, EntryKind};
pub use error::OpenError;
pub use links::Links;
pub use opened::{Kind, Meta, Opened, Timestamp};
pub use root::{Resolver, Root};
pub use sibling::is_current_sibling;
