//! A Unix-domain socket for the operator's commands, with the credentials of the process at the other end.
//!
//! The file is made under another name, gets its permissions, and takes its place by a rename: a server that succeeds
//! another one replaces its socket without a moment in which a connection is refused.

#![cfg_attr(not(target_os = "linux"), expect(unsafe_code, reason = "credentials by a call with pointers"))]

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, thread, time::Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::FileIdentity;
use crate::fs::written::{folder_of, set_mode};
use crate::limits::CONTROL_QUEUED_MAX;

/// Permissions of the file: connecting needs write permission, which root has anyway.
const MODE: u32 = 0o600;

/// Bytes of a socket's path that the system takes.
const PATH_BYTES_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Interval of connecting to a server whose queue is full.
const CONNECT_RETRY: Duration = Duration::from_millis(20);

/// A listening control socket. Its file is removed with it, if it is still its own.
#[derive(Debug)]
pub struct ControlSocket {
    socket: Socket,
    path: PathBuf,
    file: FileIdentity,
}

/// A connection to or from another process.
#[derive(Debug)]
pub struct ControlStream {
    /// The connection; calls block.
    pub stream: UnixStream,
    /// The other process.
    pub peer: PeerCredentials,
}

/// Credentials of the process at the other end of a socket, as the kernel has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Its number, where the system says so.
    pub process: Option<u32>,
    /// Its effective user.
    pub user: u32,
}

impl PeerCredentials {
    /// Returns whether the process may control this one: its user is the same, or root.
    #[must_use]
    pub fn may_control(self) -> bool {
        self.may_control_user(rustix::process::geteuid().as_raw())
    }

    fn may_control_user(self, own: u32) -> bool {
        self.user == 0 || self.user == own
    }

    #[cfg(target_os = "linux")]
    fn of(socket: &impl AsFd) -> io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(socket)?;
        Ok(Self { process: Some(peer.pid.as_raw_nonzero().get().cast_unsigned()), user: peer.uid.as_raw() })
    }

    #[cfg(not(target_os = "linux"))]
    fn of(socket: &impl AsFd) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        let (mut user, mut group) = (0, 0);
        // SAFETY: both pointers are to integers of the types that the call writes.
        let result = unsafe { libc::getpeereid(socket.as_fd().as_raw_fd(), &raw mut user, &raw mut group) };
        if result == 0 { Ok(Self { process: None, user }) } else { Err(Error::last_os_error()) }
    }
}

/// Shows the process and its user.
impl fmt::Display for PeerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process} of user {}", self.user),
            None => write!(f, "a process of user {}", self.user),
        }
    }
}

impl ControlSocket {
    /// Listens at `path`, for processes of this user and root.
    ///
    /// Replaces the socket of a server that no longer runs, and that of the process `predecessor`. A link is replaced, too,
    /// and never followed.
    ///
    /// # Errors
    /// [`ErrorKind::AddrInUse`] if another server listens there, [`ErrorKind::AlreadyExists`] if there is something that is
    /// no socket, [`ErrorKind::InvalidInput`] for a path that is too long; otherwise the kernel's.
    pub fn bind(path: &Path, predecessor: Option<u32>) -> io::Result<Self> {
        // Independent of later changes of the working directory.
        let absolute = std::path::absolute(path)?;
        let new = folder_of(path).join(format!(".{:016x}.new", RandomState::new().hash_one(0_u8)));
        let addresses = [address(path)?, address(&new)?];
        make_way(path, &addresses[0], predecessor)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&addresses[1])?;
        let begun = || {
            let file = FileIdentity::of(&fs::symlink_metadata(&new)?);
            // Before it listens, so that nobody connects before.
            set_mode(&new, file, MODE)?;
            socket.listen(CONTROL_QUEUED_MAX)?;
            fs::rename(&new, &absolute).map(|()| file)
        };
        match begun() {
            Ok(file) => Ok(Self { socket, path: absolute, file }),
            Err(error) => {
                drop(fs::remove_file(&new));
                Err(error)
            }
        }
    }

    /// Accepts a connection; `None` if none is queued.
    ///
    /// # Errors
    /// The kernel's: out of descriptors, for example.
    pub fn accept(&self) -> io::Result<Option<ControlStream>> {
        match self.socket.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false)?;
                let peer = PeerCredentials::of(&socket)?;
                Ok(Some(ControlStream { stream: socket.into(), peer }))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether the file is still the socket's own: clients connect to this one.
    #[must_use]
    pub fn has_file(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| FileIdentity::of(&found) == self.file)
    }

    /// Removes the file, if it is still the socket's own.
    pub fn remove_file(&self) {
        if self.has_file() {
            // A file that can't be removed refuses connections, and the next server replaces it.
            drop(fs::remove_file(&self.path));
        }
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl ControlStream {
    /// Connects to the control socket at `path`. Waits until `deadline` for a server whose queue is full.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] or [`ErrorKind::ConnectionRefused`] if no server listens there, [`ErrorKind::WouldBlock`] at
    /// the deadline; otherwise the kernel's.
    pub fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        let address = address(path)?;
        loop {
            match connect(&address) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                    thread::sleep(CONNECT_RETRY);
                }
                connected => return connected,
            }
        }
    }
}

fn connect(address: &SockAddr) -> io::Result<ControlStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Otherwise a full queue would be a wait without end.
    socket.set_nonblocking(true)?;
    socket.connect(address)?;
    socket.set_nonblocking(false)?;
    let peer = PeerCredentials::of(&socket)?;
    Ok(ControlStream { stream: socket.into(), peer })
}

/// Checks a path's length, which the system reports without a number.
fn address(path: &Path) -> io::Result<SockAddr> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        let why = format!(
            "the path {} has {bytes} bytes, and the path of a socket at most {PATH_BYTES_MAX}",
            path.display()
        );
        return Err(Error::new(ErrorKind::InvalidInput, why));
    }
    SockAddr::unix(path)
}

/// Fails if something is there that must not be replaced.
fn make_way(path: &Path, address: &SockAddr, predecessor: Option<u32>) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if found.is_symlink() => return Ok(()),
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => return Err(Error::new(ErrorKind::AlreadyExists, "there is something that is no socket")),
    }
    match connect(address) {
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
        // Some systems don't say which process listens.
        Ok(server)
            if predecessor.is_some()
                && server.peer.process.is_none_or(|found| Some(found) == predecessor) =>
        {
            Ok(())
        }
        Ok(server) => {
            let why = format!("{} listens there", server.peer);
            Err(Error::new(ErrorKind::AddrInUse, why))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::AddrInUse.into()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    use super::{CONTROL_QUEUED_MAX, ControlSocket, ControlStream, PATH_BYTES_MAX, PeerCredentials};
    use testkit::TestFolder;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn both_ends_know_each_other() {
        let folder = TestFolder::new();
        let path = folder.at("socket");
        let socket = ControlSocket::bind(&path, None).expect("bound");
        assert_eq!(fs::symlink_metadata(&path).expect("a file").mode() & 0o7777, 0o600);
        assert!(socket.accept().expect("it listens").is_none());
        let client = ControlStream::connect(&path, soon()).expect("connects");
        let server = socket.accept().expect("it listens").expect("a connection");
        for peer in [client.peer, server.peer] {
            assert!(peer.may_control(), "{peer}");
            assert!(peer.process.is_none_or(|process| process == std::process::id()), "{peer}");
        }
        socket.remove_file();
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn only_the_same_user_and_root_may_control() {
        let may = |user, own| PeerCredentials { process: Some(7), user }.may_control_user(own);
        assert!(may(0, 33) && may(33, 33) && !may(34, 33) && !may(1, 0));
        assert_eq!(PeerCredentials { process: Some(7), user: 34 }.to_string(), "process 7 of user 34");
    }

    #[test]
    fn replaces_what_no_server_uses() {
        let folder = TestFolder::new();
        let path = folder.at("socket");
        drop(UnixListener::bind(&path).expect("bound"));
        let socket = ControlSocket::bind(&path, None).expect("a dead server's file is replaced");
        ControlStream::connect(&path, soon()).expect("connects");
        drop(socket);
        folder.file("elsewhere", "content");
        fs::remove_file(&path).and_then(|()| symlink(folder.at("elsewhere"), &path)).expect("a link");
        let _socket = ControlSocket::bind(&path, None).expect("a link is replaced");
        assert_eq!(fs::read_to_string(folder.at("elsewhere")).expect("a file"), "content");
        ControlStream::connect(&path, soon()).expect("connects");
    }

    #[test]
    fn leaves_other_servers_and_files_alone() {
        let folder = TestFolder::new();
        let path = folder.at("socket");
        let first = ControlSocket::bind(&path, None).expect("bound");
        for predecessor in [None, Some(std::process::id() + 1)] {
            let error = ControlSocket::bind(&path, predecessor).expect_err("a server listens");
            assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        }
        folder.file("file", "content");
        let error = ControlSocket::bind(&folder.at("file"), None).expect_err("no socket");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        fs::create_dir(folder.at("folder")).expect("a folder");
        ControlSocket::bind(&folder.at("folder"), None).expect_err("no socket");
        ControlSocket::bind(&folder.at("missing/socket"), None).expect_err("no folder");
        // Its own file alone is removed.
        fs::rename(folder.at("file"), &path).expect("renamed");
        first.remove_file();
        assert_eq!(fs::read_to_string(&path).expect("a file"), "content");
        let count = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(count, 2, "no file of a failed attempt stays");
    }

    #[test]
    fn a_successor_takes_the_place_while_the_predecessor_listens() {
        let folder = TestFolder::new();
        let path = folder.at("socket");
        let old = ControlSocket::bind(&path, None).expect("bound");
        let early = ControlStream::connect(&path, soon()).expect("connects");
        let Some(predecessor) = early.peer.process else { return };
        assert!(old.has_file());
        let new = ControlSocket::bind(&path, Some(predecessor)).expect("it replaces its predecessor");
        assert!(new.has_file() && !old.has_file());
        let _late = ControlStream::connect(&path, soon()).expect("connects");
        // The first one, and the look of the second server.
        assert!((0..2).all(|_| old.accept().expect("it listens").is_some()));
        assert!(old.accept().expect("it listens").is_none());
        assert!(new.accept().expect("it listens").is_some());
        old.remove_file();
        assert!(path.exists(), "the file is the new one's");
    }

    #[test]
    fn a_full_queue_is_a_bounded_wait() {
        let folder = TestFolder::new();
        let path = folder.at("socket");
        let _socket = ControlSocket::bind(&path, None).expect("bound");
        let mut clients = Vec::new();
        let error = loop {
            match ControlStream::connect(&path, Instant::now()) {
                Ok(client) => clients.push(client),
                Err(error) => break error,
            }
            assert!(clients.len() <= 2 * CONTROL_QUEUED_MAX as usize, "the queue has no end");
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn a_long_path_is_named() {
        let folder = TestFolder::new();
        let path = folder.at("x".repeat(PATH_BYTES_MAX));
        let errors = [
            ControlSocket::bind(&path, None).expect_err("too long"),
            ControlStream::connect(&path, soon()).expect_err("too long"),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.contains("xxx") && text.contains(&format!("at most {PATH_BYTES_MAX}")), "{text}");
        }
    }
}
