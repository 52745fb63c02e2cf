//! Path resolution by the kernel on systems without it: never.

use std::os::fd::{BorrowedFd, OwnedFd};

use super::{Links, OpenError};

/// Returns whether the kernel resolves.
pub(super) const fn resolves(_root: BorrowedFd<'_>) -> bool {
    false
}

/// Leaves every path to the walk.
pub(super) const fn open(
    _root: BorrowedFd<'_>,
    _path: &[u8],
    _links: Links,
) -> Result<Option<OwnedFd>, OpenError> {
    Ok(None)
}
