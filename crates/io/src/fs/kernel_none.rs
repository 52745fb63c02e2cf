//! Resolving by the kernel where no kernel does: never.

use std::os::fd::{BorrowedFd, OwnedFd};

use super::{Links, OpenError};

/// Whether the kernel resolves.
pub(super) const fn resolves(_root: BorrowedFd<'_>) -> bool {
    false
}

/// The kernel can't tell.
pub(super) const fn open(
    _root: BorrowedFd<'_>,
    _path: &[u8],
    _links: Links,
) -> Result<Option<OwnedFd>, OpenError> {
    Ok(None)
}
