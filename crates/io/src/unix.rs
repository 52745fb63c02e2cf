//! Unix-domain listeners: a file stands for the address, and outlives a server that was killed.

use std::fs::{self, Permissions};
use std::io::{self, Error, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, RawMode, fchmod};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::{Listener, ListenerId};

/// Listens at `path`, non-blocking, and lets those connect whom `mode` gives the right to write (the bits of `chmod`).
/// The file that a server has left behind which is no more is replaced. The listener removes the file when it is closed, if
/// it is still its own.
///
/// # Errors
/// [`ErrorKind::AddrInUse`] where somebody listens there, [`ErrorKind::AlreadyExists`] where something else than a socket has that
/// name; else what the kernel says: a path that is too long (about 100 bytes), a folder that isn't there or may not be written.
pub fn bind(path: &Path, mode: u32, backlog: u32, id: ListenerId) -> io::Result<Listener> {
    let address = SockAddr::unix(path)?;
    make_way(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // Linux makes the file with these bits at most, so that nobody slips in before the next line but one.
    let _ = fchmod(socket.as_fd(), Mode::from_raw_mode(mode as RawMode));
    socket.bind(&address)?;
    let file = SocketFile::of(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(Listener::with_file(socket.into(), id, file))
}

/// Removes what a dead server has left at `path`; refuses to touch anything else.
fn make_way(path: &Path, address: &SockAddr) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(Error::new(ErrorKind::AlreadyExists, "there is something that is no socket"));
    }
    if lives(address)? {
        return Err(ErrorKind::AddrInUse.into());
    }
    match fs::remove_file(path) {
        // Somebody else was quicker.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Whether somebody listens there. Who does sees a connection that ends without a byte.
fn lives(address: &SockAddr) -> io::Result<bool> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(address) {
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(false),
        // It listens, its queue is full or it wants another kind of socket.
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::PROTOTYPE) => Ok(true),
        connected => connected.map(|()| true),
    }
}

/// The file of a socket. It goes with this, unless another has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        // However the working directory changes.
        let path = std::path::absolute(path)?;
        let found = fs::symlink_metadata(&path)?;
        Ok(Self { path, device: found.dev(), inode: found.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Ok(found) = fs::symlink_metadata(&self.path) else { return };
        if (found.dev(), found.ino()) == (self.device, self.inode) {
            // A folder that may not be written any more keeps it: the next server replaces it.
            drop(fs::remove_file(&self.path));
        }
    }
}
