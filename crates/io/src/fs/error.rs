//! Errors of opening a file: [`OpenError`].

use std::fmt;
use std::io;

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
            errno => Self::Other(errno.into()),
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
