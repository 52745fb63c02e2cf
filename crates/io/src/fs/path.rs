//! Paths beneath a root: which are refused, the policy for links, the bounds, the errors.

use std::{fmt, io};

use rustix::io::Errno;

/// Errors of [`Root::open_beneath`](super::Root::open_beneath).
#[derive(Debug)]
pub enum OpenError {
    /// There is no such file, or can't be one: a NUL in the name, a file in place of a directory.
    NotFound,
    /// The file, or a directory of its path, is not permitted.
    Forbidden,
    /// The path, or a link in it, leaves the root or tries to.
    Escapes,
    /// A symbolic link is in the path, and none are followed.
    Link,
    /// Neither a file nor a directory: a FIFO, a socket, a device.
    NotPlain,
    /// More than 40 symbolic links, or a loop.
    TooManyLinks,
    /// A name of more than 255 bytes, or a path of more than 4095.
    NameTooLong,
    /// The process or the system has no descriptor left: try again later.
    Descriptors,
    /// The kernel's caches don't tell whether there is such a file: only from
    /// [`Root::open_cached`](super::Root::open_cached).
    WouldBlock,
    /// Something else, such as a failing disk.
    Other(io::Error),
}

impl OpenError {
    /// Converts an error of the system for a path.
    pub(super) fn of(errno: Errno) -> Self {
        match errno {
            // INVAL, ILSEQ: a name that the file system can't hold. (Opening the root has validated our
            // flags.)
            Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::ILSEQ => Self::NotFound,
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::XDEV => Self::Escapes,
            // Returned for a socket, or a device without a driver.
            Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => Self::NotPlain,
            Errno::LOOP => Self::TooManyLinks,
            Errno::NAMETOOLONG => Self::NameTooLong,
            Errno::MFILE | Errno::NFILE => Self::Descriptors,
            // The standard library has no kind for it; an SMB server that is gone has it.
            Errno::HOSTDOWN => Self::Other(Errno::HOSTUNREACH.into()),
            errno => Self::Other(errno.into()),
        }
    }
}

impl OpenError {
    /// Returns whether the same open may succeed soon: descriptors or memory have run out, or another process holds a
    /// lease on the file.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Descriptors => true,
            Self::Other(error) => {
                use io::ErrorKind::{Interrupted, OutOfMemory, WouldBlock};
                matches!(error.kind(), WouldBlock | Interrupted | OutOfMemory)
            }
            _ => false,
        }
    }
}

impl Clone for OpenError {
    fn clone(&self) -> Self {
        match self {
            Self::NotFound => Self::NotFound,
            Self::Forbidden => Self::Forbidden,
            Self::Escapes => Self::Escapes,
            Self::Link => Self::Link,
            Self::NotPlain => Self::NotPlain,
            Self::TooManyLinks => Self::TooManyLinks,
            Self::NameTooLong => Self::NameTooLong,
            Self::Descriptors => Self::Descriptors,
            Self::WouldBlock => Self::WouldBlock,
            Self::Other(error) => Self::Other(match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => error.kind().into(),
            }),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Forbidden => f.write_str("permission denied"),
            Self::Escapes => f.write_str("leaves the root"),
            Self::Link => f.write_str("a symbolic link, but following links is off"),
            Self::NotPlain => f.write_str("neither a file nor a directory"),
            Self::TooManyLinks => f.write_str("too many symbolic links"),
            Self::NameTooLong => f.write_str("name too long"),
            Self::Descriptors => f.write_str("no descriptor left"),
            Self::WouldBlock => f.write_str("not in memory"),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The error itself is the text.
            Self::Other(error) => error.source(),
            _ => None,
        }
    }
}

/// Policy for symbolic links beneath a root. The path of the root itself may always have links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Links {
    /// Links whose target is beneath the root, absolute links too. Others fail with [`OpenError::Escapes`].
    ///
    /// A link may pass through directories outside, as every absolute link does. It is inside again when it reaches the root directory, which is
    /// recognised by device and inode and not by its path. So bind mounts, links to the root and renamed parents work.
    #[default]
    Inside,
    /// None. A path with a link in it fails with [`OpenError::Link`].
    Never,
    /// All links, wherever they lead. Only for trees whose authors may publish any file that the server can read.
    Follow,
}

/// Rejects invalid paths below a root: absolute ones, `..` anywhere, NUL, and too long ones. The kernel
/// interprets the rest: `a//b` and `a/./b` are `a/b`, a trailing slash asks for a directory, a backslash is
/// an ordinary byte.
pub(super) fn check(path: &[u8]) -> Result<(), OpenError> {
    if path.len() > PATH_BYTES_MAX {
        return Err(OpenError::NameTooLong);
    }
    if path.contains(&0) {
        return Err(OpenError::NotFound);
    }
    if path.first() == Some(&b'/') || path.split(|byte| *byte == b'/').any(|name| name == b"..") {
        return Err(OpenError::Escapes);
    }
    Ok(())
}

/// Longest path in bytes, as the kernel's `PATH_MAX` without its NUL.
pub(super) const PATH_BYTES_MAX: usize = 4095;

/// Symbolic links followed for one path, as the kernel does.
pub(super) const LINKS_MAX: usize = 40;

/// Directories that one walk may hold open: the depth of the tree that it can reach.
pub(super) const DEPTH_MAX: usize = 256;

/// Attempts to open during concurrent renames.
pub(super) const TRIES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::{Errno, OpenError};

    #[test]
    fn a_gone_server_has_a_kind() {
        for errno in [Errno::HOSTDOWN, Errno::HOSTUNREACH] {
            let error = OpenError::of(errno);
            assert!(matches!(&error, OpenError::Other(found) if found.kind() == ErrorKind::HostUnreachable));
            assert!(!error.is_passing(), "a server takes longer than a request");
        }
    }
}
