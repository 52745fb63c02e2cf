//! Path resolution by the Linux kernel: `openat2`.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, Result};

use super::path::{Links, OpenError, TRIES_MAX};
use super::walk::READ;

fn resolve(root: BorrowedFd<'_>, path: &[u8], flags: OFlags, links: Links) -> Result<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    let which = match links {
        Links::Never => ResolveFlags::NO_SYMLINKS,
        Links::Inside | Links::Follow => ResolveFlags::NO_MAGICLINKS,
    };
    openat2(root, path, flags, Mode::empty(), ResolveFlags::BENEATH | which)
}

/// Returns whether the kernel has the call and permits it. A folder without search permission doesn't matter
/// here.
pub(super) fn resolves(root: BorrowedFd<'_>) -> bool {
    let tried = resolve(root, b"", OFlags::PATH | OFlags::CLOEXEC, Links::Inside);
    !matches!(tried, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL))
}

/// Opens `path` beneath `root`. `None` leaves it to the walk: the kernel doesn't follow links that leave the
/// root, even if they lead back.
pub(super) fn open(
    root: BorrowedFd<'_>,
    path: &[u8],
    links: Links,
) -> std::result::Result<Option<OwnedFd>, OpenError> {
    for _ in 0..TRIES_MAX {
        match resolve(root, path, READ, links) {
            Ok(descriptor) => return Ok(Some(descriptor)),
            // AGAIN: a concurrent rename while the kernel resolved `..`.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // A sandbox that was entered after the root was opened.
            Err(Errno::NOSYS | Errno::XDEV) => return Ok(None),
            Err(Errno::LOOP) if links == Links::Never => return Err(OpenError::Link),
            Err(errno) => return Err(OpenError::of(errno)),
        }
    }
    Ok(None)
}
