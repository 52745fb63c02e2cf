//! Opens files beneath a root that nothing escapes: no `..`, no link, no race with concurrent renames.
//!
//! On Linux the kernel confines the resolution ([`Resolver::Kernel`]: `openat2` with `RESOLVE_BENEATH`).
//! Elsewhere [`Resolver::Walk`] opens one component at a time and never follows a link that it hasn't read.
//! One table of tests checks that both return the same results. [`Links`] sets which symbolic links are
//! followed. `..` in a path is always refused.

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
pub use sibling::{Coding, is_current_sibling};
