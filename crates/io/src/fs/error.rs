//! Why a file could not be opened: [`OpenError`].

use std::fmt;
use std::io;

use rustix::io::Errno;

/// Why [`Root::open_beneath`](super::Root::open_beneath) gave no file.
#[derive(Debug)]
pub enum OpenError {
    /// There is no such file, and maybe there can't be one: a NUL in the name, a file where a directory should be.
    NotFound,
    /// The file, or a directory on the way, may not be read.
    Forbidden,
    /// The path, or a link on the way, leads out of the root or tries to.
    Escapes,
    /// It is a symbolic link, or one lies on the way, and none are followed.
    Link,
    /// It is neither a file nor a directory: a FIFO, a socket, a device.
    NotPlain,
    /// More symbolic links than can be meant (40), or links in a circle.
    TooManyLinks,
    /// A name of more than 255 bytes, or a path of more than 4095.
    NameTooLong,
    /// The process or the system has no descriptor left: try again later.
    Descriptors,
    /// Something else, such as a failing disk.
    Other(io::Error),
}

impl OpenError {
    /// What an error of the system says of a path.
    pub(super) fn of(errno: Errno) -> Self {
        match errno {
            // INVAL, ILSEQ: a name that the file system can't hold. (Our flags were tried when the root was opened.)
            Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::ILSEQ => Self::NotFound,
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::XDEV => Self::Escapes,
            // What opening a socket, or a device without a driver, gives.
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
            Self::Escapes => f.write_str("leads out of the root"),
            Self::Link => f.write_str("a symbolic link, and none are followed"),
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
