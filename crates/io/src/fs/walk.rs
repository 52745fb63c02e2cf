//! Resolving by a walk, for every Unix: from directory to directory, each held by its descriptor, no link followed
//! that was not read.
//!
//! `..` in a link's target goes back to the directory that the walk came from, never by name. So whatever is moved
//! meanwhile, the walk has only ever entered directories that it found beneath the root.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::{Errno, retry_on_intr};

use super::limits::{DEPTH_MAX, LINKS_MAX, TRIES_MAX};
use super::{Links, OpenError};

/// How a directory is opened that is only passed through. `O_PATH` asks for no read permission.
#[cfg(target_os = "linux")]
pub(super) const PASSAGE: OFlags = OFlags::PATH;
/// How a directory is opened that is only passed through.
#[cfg(not(target_os = "linux"))]
pub(super) const PASSAGE: OFlags = OFlags::RDONLY;

/// How the last component is opened. `NONBLOCK`: a FIFO without a writer must not hold us up.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

struct Walk<'a> {
    root: BorrowedFd<'a>,
    /// The directories entered below the root, the current one last.
    entered: Vec<OwnedFd>,
    /// The names still to go, the next one last.
    ahead: Vec<Vec<u8>>,
    policy: Links,
    links: usize,
    tries: usize,
}

/// Opens `path` beneath `root`.
pub(super) fn open(root: BorrowedFd<'_>, path: &[u8], policy: Links) -> Result<OwnedFd, OpenError> {
    let mut walk = Walk { root, entered: Vec::new(), ahead: Vec::new(), policy, links: 0, tries: 0 };
    walk.put_ahead(path);
    // Bounded: each round goes one name on, but for at most LINKS_MAX links that put up to PATH_MAX bytes of names
    // ahead, and at most TRIES_MAX tries.
    while let Some(name) = walk.ahead.pop() {
        match name.as_slice() {
            b"." => {}
            b".." => walk.go_up()?,
            name if walk.ahead.is_empty() => {
                if let Some(descriptor) = walk.open_last(name)? {
                    return Ok(descriptor);
                }
            }
            name => walk.enter(name)?,
        }
    }
    open_at(walk.current(), b".", READ | OFlags::DIRECTORY).map_err(OpenError::of)
}

fn open_at(directory: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    retry_on_intr(|| openat(directory, name, flags, Mode::empty()))
}

impl Walk<'_> {
    fn current(&self) -> BorrowedFd<'_> {
        self.entered.last().map_or(self.root, AsFd::as_fd)
    }

    /// Puts the names of a path, or of a link's target, before those still to go.
    fn put_ahead(&mut self, path: &[u8]) {
        if path.ends_with(b"/") {
            // What stands before it must be a directory, which "." then names.
            self.ahead.push(b".".to_vec());
        }
        let names = path.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty());
        self.ahead.extend(names.map(<[u8]>::to_vec));
    }

    fn go_up(&mut self) -> Result<(), OpenError> {
        self.entered.pop().map(drop).ok_or(OpenError::Escapes)
    }

    /// Goes into a directory, or turns where a link leads.
    fn enter(&mut self, name: &[u8]) -> Result<(), OpenError> {
        let flags = PASSAGE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match open_at(self.current(), name, flags) {
            Ok(_) if self.entered.len() == DEPTH_MAX => Err(OpenError::NameTooLong),
            Ok(directory) => {
                self.entered.push(directory);
                Ok(())
            }
            Err(errno) => self.follow(name, errno),
        }
    }

    /// Opens the last name; `None` where it is a link, and the way goes on.
    fn open_last(&mut self, name: &[u8]) -> Result<Option<OwnedFd>, OpenError> {
        match open_at(self.current(), name, READ | OFlags::NOFOLLOW) {
            Ok(descriptor) => Ok(Some(descriptor)),
            Err(errno) => self.follow(name, errno).map(|()| None),
        }
    }

    /// Where `name` is a symbolic link, which is why opening it failed: puts its target ahead.
    fn follow(&mut self, name: &[u8], failure: Errno) -> Result<(), OpenError> {
        if !may_be_link(failure) {
            return Err(OpenError::of(failure));
        }
        match readlinkat(self.current(), name, Vec::new()) {
            Ok(target) => self.turn(target.to_bytes()),
            // Not a link, or not any more.
            Err(Errno::INVAL) if failure == Errno::NOTDIR || self.tries == TRIES_MAX => {
                Err(OpenError::NotFound)
            }
            Err(Errno::INVAL) => {
                self.tries += 1;
                self.ahead.push(name.to_vec());
                Ok(())
            }
            Err(errno) => Err(OpenError::of(errno)),
        }
    }

    fn turn(&mut self, target: &[u8]) -> Result<(), OpenError> {
        self.links += 1;
        match target {
            _ if self.policy == Links::Deny => Err(OpenError::Link),
            _ if self.links > LINKS_MAX => Err(OpenError::TooManyLinks),
            [] => Err(OpenError::NotFound),
            [b'/', ..] => Err(OpenError::Escapes),
            _ => {
                self.put_ahead(target);
                Ok(())
            }
        }
    }
}

/// Whether opening with `NOFOLLOW` may have failed because of a symbolic link: the systems differ.
fn may_be_link(errno: Errno) -> bool {
    // LOOP: Linux, macOS, OpenBSD. NOTDIR: Linux, for directories. MLINK: FreeBSD, DragonFly. FTYPE: NetBSD.
    #[cfg(target_os = "netbsd")]
    if errno == Errno::FTYPE {
        return true;
    }
    matches!(errno, Errno::LOOP | Errno::NOTDIR | Errno::MLINK)
}
