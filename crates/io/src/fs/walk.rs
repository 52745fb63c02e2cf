//! Resolves paths by a walk, on every Unix: one directory descriptor after another, following only links it
//! has read.
//!
//! `..` in a link's target returns to the directory that the walk came from, never by name. So during
//! concurrent renames, the walk only opens files that it found beneath the root.
//!
//! A link may lead outside and back: an absolute link begins at `/`, and `..` may leave the root. Outside,
//! the walk only passes through directories until it reaches the root, which it recognises by device and
//! inode. From there it continues in the root as it was opened: another mount of the root may lack what is
//! mounted over a folder of it. Outside it looks up names of link targets only, never those of the path.
//! Failures there are reported as [`OpenError::Escapes`], except too many links, no descriptor left, and
//! errors of the system: none reveals a file there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::{Errno, retry_on_intr};

use super::path::{DEPTH_MAX, LINKS_MAX, Links, OpenError, TRIES_MAX};

/// Flags for opening intermediate directories. `O_PATH` needs no read permission.
#[cfg(target_os = "linux")]
pub(super) const PASSAGE: OFlags = OFlags::PATH;
/// Flags for opening intermediate directories.
#[cfg(not(target_os = "linux"))]
pub(super) const PASSAGE: OFlags = OFlags::RDONLY;

/// Flags for opening the last component. `NONBLOCK` keeps a FIFO without a writer from blocking.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

struct Walk<'a> {
    root: BorrowedFd<'a>,
    position: Position,
    /// The remaining names, the next one last.
    remaining: Vec<Vec<u8>>,
    /// Number of names in `remaining` that belong to the path itself; they come first. The others belong to link
    /// targets.
    own: usize,
    policy: Links,
    links: usize,
    tries: usize,
}

/// Position of the walk.
enum Position {
    /// Beneath the root, in the last directory entered.
    Inside {
        /// The root as reached from outside, or `None` if the walk began in it. With bind mounts it has another parent than the root as it was
        /// opened, so `..` begins here.
        met: Option<OwnedFd>,
        entered: Vec<OwnedFd>,
    },
    /// In this directory outside the root.
    Outside(OwnedFd),
}

/// Opens `path` beneath `root`.
pub(super) fn open(root: BorrowedFd<'_>, path: &[u8], policy: Links) -> Result<OwnedFd, OpenError> {
    let position = Position::Inside { met: None, entered: Vec::new() };
    let mut walk = Walk { root, position, remaining: Vec::new(), own: 0, policy, links: 0, tries: 0 };
    walk.push_names(path);
    walk.own = walk.remaining.len();
    walk.run().map_err(|error| walk.conceal(error))
}

/// Opens `path` from `root` and follows all links. The path has been checked and has no `..`.
pub(super) fn follow(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, OpenError> {
    open_at(root, if path.is_empty() { b"." } else { path }, READ).map_err(OpenError::of)
}

fn open_at(directory: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    retry_on_intr(|| openat(directory, name, flags, Mode::empty()))
}

/// Opens a directory to pass through it.
fn pass(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    open_at(directory, name, PASSAGE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC)
}

impl Walk<'_> {
    /// Walks to the end.
    fn run(&mut self) -> Result<OwnedFd, OpenError> {
        // Bounded: each round consumes a name, except for at most LINKS_MAX links that add up to PATH_MAX
        // bytes of names, and at most TRIES_MAX retries.
        while let Some(name) = self.remaining.pop() {
            let is_own = self.remaining.len() < self.own;
            self.own = self.own.min(self.remaining.len());
            match name.as_slice() {
                _ if is_own && self.is_outside() => return Err(OpenError::Escapes),
                b"." => {}
                b".." => self.go_up()?,
                name if self.remaining.is_empty() && !self.is_outside() => {
                    if let Some(descriptor) = self.open_last(name)? {
                        return Ok(descriptor);
                    }
                }
                name => self.enter(name)?,
            }
        }
        match self.is_outside() {
            true => Err(OpenError::Escapes),
            false => open_at(self.current(), b".", READ | OFlags::DIRECTORY).map_err(OpenError::of),
        }
    }

    /// Hides the reason of a failure outside the root.
    fn conceal(&self, error: OpenError) -> OpenError {
        match error {
            OpenError::TooManyLinks | OpenError::Descriptors | OpenError::Other(_) => error,
            _ if self.is_outside() => OpenError::Escapes,
            _ => error,
        }
    }

    const fn is_outside(&self) -> bool {
        matches!(self.position, Position::Outside(_))
    }

    fn current(&self) -> BorrowedFd<'_> {
        match &self.position {
            Position::Inside { entered, .. } => {
                entered.last().map_or(self.root, |directory| directory.as_fd())
            }
            Position::Outside(directory) => directory.as_fd(),
        }
    }

    /// Adds the names of a path, or of a link's target, before the remaining ones.
    fn push_names(&mut self, path: &[u8]) {
        if path.ends_with(b"/") {
            // The name before it must be a directory, which "." then names.
            self.remaining.push(b".".to_vec());
        }
        let names = path.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty());
        self.remaining.extend(names.map(<[u8]>::to_vec));
    }

    fn go_up(&mut self) -> Result<(), OpenError> {
        if let Position::Inside { entered, .. } = &mut self.position
            && entered.pop().is_some()
        {
            return Ok(());
        }
        let from = match &self.position {
            Position::Inside { met, .. } => met.as_ref().map_or(self.root, |root| root.as_fd()),
            Position::Outside(directory) => directory.as_fd(),
        };
        let parent = pass(from, b"..");
        self.arrive(parent.map_err(|_| OpenError::Escapes)?)
    }

    /// Enters a directory, or follows a link.
    fn enter(&mut self, name: &[u8]) -> Result<(), OpenError> {
        match (pass(self.current(), name), &mut self.position) {
            (Ok(_), Position::Inside { entered, .. }) if entered.len() == DEPTH_MAX => {
                Err(OpenError::NameTooLong)
            }
            (Ok(directory), Position::Inside { entered, .. }) => {
                entered.push(directory);
                Ok(())
            }
            (Ok(directory), Position::Outside(_)) => self.arrive(directory),
            (Err(errno), _) => self.follow(name, errno),
        }
    }

    /// Moves to a directory reached from outside: the root, or another one outside.
    fn arrive(&mut self, directory: OwnedFd) -> Result<(), OpenError> {
        let identity = |directory: BorrowedFd<'_>| {
            fstat(directory).map(|stat| (stat.st_dev, stat.st_ino)).map_err(OpenError::of)
        };
        let is_root = identity(directory.as_fd())? == identity(self.root)?;
        self.position = match is_root {
            true => Position::Inside { met: Some(directory), entered: Vec::new() },
            false => Position::Outside(directory),
        };
        Ok(())
    }

    /// Opens the last name; `None` if it is a link and the walk continues.
    fn open_last(&mut self, name: &[u8]) -> Result<Option<OwnedFd>, OpenError> {
        match open_at(self.current(), name, READ | OFlags::NOFOLLOW) {
            Ok(descriptor) => Ok(Some(descriptor)),
            Err(errno) => self.follow(name, errno).map(|()| None),
        }
    }

    /// If `name` is a symbolic link, and opening it failed for that reason, adds the names of its target.
    fn follow(&mut self, name: &[u8], failure: Errno) -> Result<(), OpenError> {
        if !may_be_link(failure) {
            return Err(OpenError::of(failure));
        }
        match readlinkat(self.current(), name, Vec::new()) {
            Ok(target) => self.turn(target.to_bytes()),
            // Not a link, or no longer one.
            Err(Errno::INVAL) if failure == Errno::NOTDIR || self.tries == TRIES_MAX => {
                Err(OpenError::NotFound)
            }
            Err(Errno::INVAL) => {
                self.tries += 1;
                self.remaining.push(name.to_vec());
                Ok(())
            }
            Err(errno) => Err(OpenError::of(errno)),
        }
    }

    fn turn(&mut self, target: &[u8]) -> Result<(), OpenError> {
        self.links += 1;
        match target {
            _ if self.policy == Links::Never => return Err(OpenError::Link),
            _ if self.links > LINKS_MAX => return Err(OpenError::TooManyLinks),
            [] => return Err(OpenError::NotFound),
            [b'/', ..] => self.arrive(pass(CWD, b"/").map_err(OpenError::of)?)?,
            _ => {}
        }
        self.push_names(target);
        Ok(())
    }
}

/// Returns whether opening with `NOFOLLOW` may have failed because of a symbolic link: systems differ.
fn may_be_link(errno: Errno) -> bool {
    // LOOP: Linux, macOS, OpenBSD. NOTDIR: Linux, for directories. MLINK: FreeBSD, DragonFly. FTYPE: NetBSD.
    #[cfg(target_os = "netbsd")]
    if errno == Errno::FTYPE {
        return true;
    }
    matches!(errno, Errno::LOOP | Errno::NOTDIR | Errno::MLINK)
}
