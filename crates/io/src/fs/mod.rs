//! Opens files beneath a root that nothing escapes: no `..`, no link, no race with concurrent renames.
//!
//! On Linux the kernel confines the resolution ([`Resolver::Kernel`]: `openat2` with `RESOLVE_BENEATH`).
//! Elsewhere [`Resolver::Walk`] opens one component at a time and never follows a link that it hasn't read.
//! One table of tests checks that both return the same results. [`Links`] sets which symbolic links are
//! followed. `..` in a path is always refused.

mod opened;
mod path;
mod root;
mod sibling;
mod walk;
pub mod written;

pub use opened::{DirectoryEntry, EntryKind, Kind, Meta, Opened, Timestamp, leave_descriptors};
pub use path::{Links, OpenError};
pub use root::{Resolver, Root};
pub use sibling::{Coding, is_coded, is_current_sibling, is_current_sibling_by};
