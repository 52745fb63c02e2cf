//! Unix-domain listeners: their address is a file, which outlives a killed server.

use std::fs::{self, Permissions};
use std::io::{self, Error, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, RawMode, fchmod};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::{Listener, ListenerId};

/// Listens at `path`, non-blocking, with the permissions `mode` (the bits of `chmod`): connecting needs write
/// permission.
///
/// Replaces the file of a server that no longer runs. The listener removes the file when it is closed, if it
/// is still its own.
///
/// # Errors
/// [`ErrorKind::AddrInUse`] if a server listens there, [`ErrorKind::AlreadyExists`] if the file is no socket;
/// otherwise the kernel's error: a path that is too long (about 100 bytes), a folder that is missing or not
/// writable.
pub fn bind(path: &Path, mode: u32, backlog: u32, id: ListenerId) -> io::Result<Listener> {
    let address = SockAddr::unix(path)?;
    make_way(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // Linux creates the file with at most these bits, so that no other user connects before the line after
    // the next.
    let _ = fchmod(socket.as_fd(), Mode::from_raw_mode(mode as RawMode));
    socket.bind(&address)?;
    let file = SocketFile::of(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(Listener::with_file(socket.into(), id, file))
}

/// Removes a dead server's socket file at `path`; fails for any other file.
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
        // Another process has removed it.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns whether a server listens there. It sees a connection that ends without a byte.
fn lives(address: &SockAddr) -> io::Result<bool> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(address) {
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(false),
        // A server listens: its queue is full, or it is another kind of socket.
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::PROTOTYPE) => Ok(true),
        connected => connected.map(|()| true),
    }
}

/// A socket's file. Removed on drop, unless another has replaced it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        // Independent of later changes of the working directory.
        let path = std::path::absolute(path)?;
        let found = fs::symlink_metadata(&path)?;
        Ok(Self { path, device: found.dev(), inode: found.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Ok(found) = fs::symlink_metadata(&self.path) else { return };
        if (found.dev(), found.ino()) == (self.device, self.inode) {
            // In a folder that is no longer writable it stays: the next server replaces it.
            drop(fs::remove_file(&self.path));
        }
    }
}
