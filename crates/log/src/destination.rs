//! Destinations of a log, and how each is opened and written to.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use shearwater_io::fs::written::{append, folder_of};

use crate::limits::LOG_RETRY_INTERVAL;
use crate::syslog::{Syslog, SyslogAddress};

/// Bytes that a pipe takes without blocking once it is reported as writable (POSIX's `PIPE_BUF`, on Linux).
const PIPE_BYTES: usize = 4096;

/// Permissions of a new log file: lines have addresses of clients.
const FILE_MODE: u32 = 0o640;

/// A log's destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Standard output, as this process has it: it may be a socket, which can't be opened by a path.
    Stdout,
    /// Standard error, likewise.
    Stderr,
    /// A file, which is created or appended to, or a named pipe.
    File(PathBuf),
    /// A syslog daemon (RFC 5424).
    Syslog(SyslogAddress),
}

impl Destination {
    /// Parses `-`, `syslog:PATH`, `syslog:ADDRESS:PORT`, or the path of a file. Paths of standard output and standard error,
    /// such as `/dev/stdout`, are these. A file that is called `syslog`, `stdout`, `off` or `none` is written `./syslog`.
    ///
    /// # Errors
    /// A message, if a daemon's address isn't a loopback address with a port, or something is missing.
    pub fn parse(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("syslog:")) {
            ("", _) => Err("missing path of the log".to_owned()),
            ("-" | "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1", _) => Ok(Self::Stdout),
            ("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2", _) => Ok(Self::Stderr),
            ("syslog", _) => Err("missing socket of the daemon, as in `syslog:/dev/log`".to_owned()),
            ("stdout", _) => Err("`-` is standard output".to_owned()),
            ("off" | "none", _) => Err("there is no access log unless one is named".to_owned()),
            (_, Some(address)) => SyslogAddress::parse(address).map(Self::Syslog),
            (path, None) => Ok(Self::File(path.into())),
        }
    }

    /// Checks that a file could be there: its folder exists, and it isn't a folder itself.
    ///
    /// # Errors
    /// The error that opening it would cause.
    pub fn check(&self) -> Result<(), OpenError> {
        let Self::File(path) = self else { return Ok(()) };
        let failed = |error| Err(OpenError { destination: self.clone(), error });
        match folder_of(path).metadata() {
            Err(error) => failed(error),
            Ok(folder) if !folder.is_dir() => failed(ErrorKind::NotADirectory.into()),
            Ok(_) if path.is_dir() => failed(ErrorKind::IsADirectory.into()),
            Ok(_) => Ok(()),
        }
    }
}

/// Formats the destination as it is parsed.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("-"),
            Self::Stderr => f.write_str("/dev/stderr"),
            Self::File(path) => path.display().fmt(f),
            Self::Syslog(address) => write!(f, "syslog:{address}"),
        }
    }
}

/// The reason why a log can't be opened.
#[derive(Debug)]
pub struct OpenError {
    /// The destination.
    pub destination: Destination,
    /// The system's error.
    pub error: io::Error,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't open the access log {}: {}", self.destination, self.error)
    }
}

impl std::error::Error for OpenError {}

/// Returns a way to fix an error of a destination.
pub(crate) fn help(destination: &Destination, error: &io::Error) -> &'static str {
    let is_syslog = matches!(destination, Destination::Syslog(_));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free space on its file system",
        ErrorKind::FileTooLarge => "rotate it, or raise the limit of a file's size (ulimit -f)",
        ErrorKind::NotFound | ErrorKind::ConnectionRefused if is_syslog => "start the syslog daemon",
        ErrorKind::NotFound => "create its folder",
        ErrorKind::IsADirectory => "name a file in it",
        ErrorKind::PermissionDenied => "allow the server's user to write there",
        ErrorKind::ReadOnlyFilesystem => "name a file on a file system that is writable",
        ErrorKind::BrokenPipe => "restart the program that reads it",
        _ if is_without_reader(destination, error) => "start the program that reads it",
        _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            "name a file, `-` for standard output, or `syslog:` and the path of a daemon's socket"
        }
        _ if is_syslog => "check the syslog daemon",
        _ => "check the file and its file system",
    }
}

/// Returns true for the error of a named pipe that nobody has open for reading. Opening a socket has the same one.
pub(crate) fn is_without_reader(destination: &Destination, error: &io::Error) -> bool {
    let Destination::File(path) = destination else { return false };
    let is_socket = |path| rustix::fs::stat(path).is_ok_and(|stat| kind(&stat) == FileType::Socket);
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && !is_socket(path)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

impl OpenError {
    /// Returns a way to fix it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        help(&self.destination, &self.error)
    }
}

/// An open destination.
#[derive(Debug)]
pub(crate) enum Sink {
    File {
        file: File,
        /// A write never waits for a reader.
        is_regular: bool,
    },
    Syslog(Syslog),
}

impl Sink {
    pub(crate) fn open(destination: &Destination) -> io::Result<Self> {
        match destination {
            Destination::Stdout => Self::of(io::stdout().as_fd().try_clone_to_owned()?.into()),
            Destination::Stderr => Self::of(io::stderr().as_fd().try_clone_to_owned()?.into()),
            Destination::File(path) => match append(path, FILE_MODE) {
                Err(error) => standard_socket(path).ok_or(error).and_then(Self::of),
                Ok(file) => Self::of(file),
            },
            Destination::Syslog(address) => Syslog::connect(address).map(Self::Syslog),
        }
    }

    fn of(file: File) -> io::Result<Self> {
        Ok(Self::File { is_regular: kind(&rustix::fs::fstat(&file)?) == FileType::RegularFile, file })
    }

    /// Writes lines; returns how many bytes were taken. Waits up to [`LOG_RETRY_INTERVAL`] for a reader, then fails with
    /// [`ErrorKind::WouldBlock`].
    pub(crate) fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, is_regular: true } => file.write(lines),
            Self::File { file, .. } => {
                await_writable(file)?;
                file.write(&lines[..lines.len().min(PIPE_BYTES)])
            }
            Self::Syslog(syslog) => syslog.send_lines(lines),
        }
    }

    /// Returns true if its file has no name any more.
    pub(crate) fn is_removed(&self) -> bool {
        match self {
            Self::File { file, is_regular: true } => {
                rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink == 0)
            }
            Self::File { .. } | Self::Syslog(_) => false,
        }
    }

    /// Returns true if both are the same file.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (Self::File { file, .. }, Self::File { file: other, .. }) = (self, other) else { return false };
        let id = |file: &File| rustix::fs::fstat(file).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        id(file).is_some_and(|own| Some(own) == id(other))
    }
}

/// Returns standard output or standard error if it is a socket that a path leads to, such as a link to `/dev/stdout`.
fn standard_socket(path: &Path) -> Option<File> {
    let named = rustix::fs::stat(path).ok().filter(|stat| kind(stat) == FileType::Socket)?;
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let is_named = |fd: &BorrowedFd<'_>| {
        let found = rustix::fs::fstat(fd);
        found.is_ok_and(|found| (found.st_dev, found.st_ino) == (named.st_dev, named.st_ino))
    };
    let fd = [stdout.as_fd(), stderr.as_fd()].into_iter().find(is_named)?;
    fd.try_clone_to_owned().ok().map(File::from)
}

/// Waits until a descriptor takes bytes, at most [`LOG_RETRY_INTERVAL`].
pub(crate) fn await_writable(fd: &impl AsFd) -> io::Result<()> {
    let timeout = Timespec { tv_sec: LOG_RETRY_INTERVAL.as_secs() as i64, tv_nsec: 0 };
    match poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&timeout))? {
        0 => Err(ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}
