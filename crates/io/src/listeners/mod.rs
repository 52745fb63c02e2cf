//! Listening sockets, and everything that accepts connections from them.
//!
//! Drivers and the acceptor accept by one path, [`accept`]; an acceptor hands connections to drivers by their
//! inboxes.

pub(crate) mod accept;
pub mod acceptor;
pub mod bind;
pub mod inbox;
mod limit;

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ListenerId;
use crate::limits::LISTENER_GRACE_MS;
use inbox::Inbox;

pub use limit::SharedLimit;

/// A listening socket and its number in [`Event::Accepted`](crate::Event::Accepted).
#[derive(Debug)]
pub struct Listener {
    /// The file of a Unix-domain socket. Dropped first, so that its check happens while the socket still
    /// holds its inode, which no other file can have then.
    file: Option<SocketFile>,
    socket: Arc<OwnedFd>,
    id: ListenerId,
    /// No other process accepts from this socket.
    is_exclusive: bool,
}

impl Listener {
    /// Wraps a listening socket that other processes may have, too.
    #[must_use]
    pub fn new(socket: OwnedFd, id: ListenerId) -> Self {
        Self { socket: Arc::new(socket), id, file: None, is_exclusive: false }
    }

    /// Wraps a listening socket of this process alone: removing it ends its handshakes (clause A8).
    #[must_use]
    pub fn exclusive(socket: OwnedFd, id: ListenerId) -> Self {
        Self { is_exclusive: true, ..Self::new(socket, id) }
    }

    /// Returns whether a connection is queued in the kernel.
    fn has_pending(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // On an error the next attempt to accept reports the reason.
        poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&at_once)) != Ok(0)
    }

    /// Wraps a Unix-domain socket whose file is removed with it.
    fn with_file(socket: OwnedFd, id: ListenerId, file: SocketFile) -> Self {
        Self { file: Some(file), ..Self::exclusive(socket, id) }
    }

    /// Wraps a socket that another process of this server has bound, and that has this file. The file belongs to the
    /// other process until [`ListenerHandle::own_file`] says otherwise. If another file is there by now, it is left
    /// alone.
    #[must_use]
    pub fn taken_over(socket: OwnedFd, id: ListenerId, file: Option<(&Path, FileIdentity)>) -> Self {
        let file = file.and_then(|(path, identity)| {
            let found = SocketFile::of(path).ok()?;
            // Before it may be dropped.
            found.is_owned.store(false, Ordering::Relaxed);
            (found.identity == identity).then_some(found)
        });
        Self { file, ..Self::exclusive(socket, id) }
    }

    /// Returns access to the socket for other threads. It doesn't keep the socket open.
    #[must_use]
    pub fn handle(&self) -> ListenerHandle {
        let file = self.file.as_ref().map(|file| (file.identity, Arc::clone(&file.is_owned)));
        ListenerHandle { socket: Arc::downgrade(&self.socket), file }
    }

    /// Returns another descriptor of the socket, for another worker. The file stays with this one.
    ///
    /// # Errors
    /// Fails if the process is out of descriptors.
    pub fn share(&self) -> io::Result<Self> {
        Ok(Self {
            socket: Arc::new(self.socket.try_clone()?),
            id: self.id,
            file: None,
            is_exclusive: self.is_exclusive,
        })
    }

    /// Returns its number.
    #[must_use]
    pub fn id(&self) -> ListenerId {
        self.id
    }

    /// Unlinks its file, if any; queued connections stay queued.
    pub(crate) fn hide(&mut self) {
        self.file = None;
    }

    /// Keeps new connections away, as far as the system can: unlinks its file, and drops connection requests.
    /// Returns the time in milliseconds for which connections may still arrive.
    pub(crate) fn retire(&mut self) -> u64 {
        self.hide();
        if !self.is_exclusive {
            return 0;
        }
        bind::drop_handshakes(&self.socket);
        LISTENER_GRACE_MS
    }

    /// Makes accepting return if no connection is queued.
    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.socket, true)?)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Access to a listener that its driver owns, for other threads.
#[derive(Debug, Clone)]
pub struct ListenerHandle {
    socket: Weak<OwnedFd>,
    /// Its file, and whether this process removes it.
    file: Option<(FileIdentity, Arc<AtomicBool>)>,
}

impl ListenerHandle {
    /// Returns another descriptor of the socket, or `None` if the listener is closed.
    ///
    /// # Errors
    /// Fails if the process is out of descriptors.
    pub fn duplicate(&self) -> io::Result<Option<OwnedFd>> {
        self.socket.upgrade().map(|socket| socket.try_clone()).transpose()
    }

    /// Returns the file of a Unix-domain socket.
    #[must_use]
    pub fn file(&self) -> Option<FileIdentity> {
        self.file.as_ref().map(|(identity, _)| *identity)
    }

    /// Sets whether the file of a Unix-domain socket is removed with the listener: it belongs to one process at a time.
    pub fn own_file(&self, is_owned: bool) {
        self.file.iter().for_each(|(_, flag)| flag.store(is_owned, Ordering::Relaxed));
    }
}

/// Sources of a driver's connections.
#[derive(Debug, Default)]
pub struct Entrances {
    /// Its own listeners.
    pub listeners: Vec<Listener>,
    /// Connections from an acceptor.
    pub inbox: Inbox,
    /// Limit that its connections count for.
    pub limit: SharedLimit,
}

/// Listeners alone, numbered in their order.
impl From<Vec<TcpListener>> for Entrances {
    /// # Panics
    /// Panics for more listeners than [`ListenerId`] counts.
    fn from(sockets: Vec<TcpListener>) -> Self {
        let id = |index| ListenerId::try_from(index).expect("a listener's number fits ListenerId");
        let numbered = sockets.into_iter().enumerate();
        let listeners = numbered.map(|(index, socket)| Listener::new(socket.into(), id(index))).collect();
        Self { listeners, ..Self::default() }
    }
}

/// A file, whatever its name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device number of its file system.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

impl FileIdentity {
    pub(crate) fn of(found: &fs::Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }

    /// Removes the file of a socket that is still open, so that no other file has its inode. Another file stays.
    pub fn remove_at(self, path: &Path) {
        if fs::symlink_metadata(path).is_ok_and(|found| Self::of(&found) == self) {
            // In a folder that is no longer writable it stays: the next server replaces it.
            drop(fs::remove_file(path));
        }
    }
}

/// A socket's file. Removed on drop, unless another has replaced it or another process owns it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: FileIdentity,
    is_owned: Arc<AtomicBool>,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        // Independent of later changes of the working directory.
        let path = std::path::absolute(path)?;
        let found = fs::symlink_metadata(&path)?;
        let is_owned = Arc::new(AtomicBool::new(true));
        Ok(Self { path, identity: FileIdentity::of(&found), is_owned })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_owned.load(Ordering::Relaxed) {
            return;
        }
        self.identity.remove_at(&self.path);
    }
}
