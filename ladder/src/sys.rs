//! System calls that the standard library lacks, each as a safe function. Rungs 5 and up need them.

// The only unsafe code besides that of the rung `io_uring`: each block is one call into the C library.
#![expect(unsafe_code, reason = "the standard library has no epoll, SO_REUSEPORT or affinity")]

use std::io;
use std::mem;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// Connections that wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 16_384;
/// Events per wait.
const EVENTS_MAX: usize = 512;

pub(crate) use libc::epoll_event as Event;
/// There are bytes to receive, a connection to accept, or the end of the connection.
pub(crate) const READABLE: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;
/// There is room for bytes to send.
pub(crate) const WRITABLE: u32 = libc::EPOLLOUT as u32;
/// Reports a socket once, then not until it is modified.
pub(crate) const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;

/// The kernel's list of sockets to watch.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the call has just opened it, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a socket; its events carry its descriptor's number.
    pub(crate) fn add(&self, socket: &impl AsRawFd, flags: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket.as_raw_fd(), flags)
    }

    /// Changes the events of a socket.
    pub(crate) fn modify(&self, socket: &impl AsRawFd, flags: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket.as_raw_fd(), flags)
    }

    fn control(&self, operation: i32, fd: RawFd, flags: u32) -> io::Result<()> {
        let mut event = Event { events: flags, u64: fd as u64 };
        // SAFETY: the event is valid during the call; the kernel checks both descriptors.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &raw mut event) })?;
        Ok(())
    }

    /// Waits for events and returns how many there are; 0 after the timeout.
    pub(crate) fn wait(&self, events: &mut [Event], timeout: Duration) -> io::Result<usize> {
        let (length, timeout_ms) = (events.len() as i32, timeout.as_millis() as i32);
        // SAFETY: the kernel writes at most `length` events, which is the slice's length.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), length, timeout_ms) };
        match check(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            count => Ok(count? as usize),
        }
    }
}

/// Returns room for the events of one wait.
pub(crate) fn events() -> Vec<Event> {
    vec![Event { events: 0, u64: 0 }; EVENTS_MAX]
}

/// Listens on an address that other listeners of this process may share (`SO_REUSEPORT`).
pub(crate) fn listen_shared(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the call has just opened it, and nothing else owns it.
    let listener = unsafe { TcpListener::from_raw_fd(fd) };
    let on = 1_i32;
    for option in [libc::SO_REUSEADDR, libc::SO_REUSEPORT] {
        let (value, length) = ((&raw const on).cast(), size_of_val(&on) as u32);
        // SAFETY: the value is valid during the call and of the length given.
        check(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, value, length) })?;
    }
    let bound = match address {
        SocketAddr::V4(address) => {
            let name = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: the name is valid during the call and of the length given.
            unsafe { libc::bind(fd, (&raw const name).cast(), size_of_val(&name) as u32) }
        }
        SocketAddr::V6(address) => {
            let name = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            // SAFETY: the name is valid during the call and of the length given.
            unsafe { libc::bind(fd, (&raw const name).cast(), size_of_val(&name) as u32) }
        }
    };
    check(bound)?;
    // SAFETY: no pointers are passed.
    check(unsafe { libc::listen(fd, BACKLOG) })?;
    Ok(listener)
}

/// Lets the calling thread run on one core only: the one with this index among those that the process may use.
pub(crate) fn pin_to_core(index: usize) -> io::Result<()> {
    // SAFETY: the set is plain bits, for which zero is valid.
    let mut allowed: libc::cpu_set_t = unsafe { mem::zeroed() };
    let set_bytes = size_of_val(&allowed);
    // SAFETY: the kernel writes at most the set's length.
    check(unsafe { libc::sched_getaffinity(0, set_bytes, &raw mut allowed) })?;
    // SAFETY: the numbers are below the set's size.
    let is_allowed = |core: &usize| unsafe { libc::CPU_ISSET(*core, &allowed) };
    let cores = (0..libc::CPU_SETSIZE as usize).filter(is_allowed);
    let Some(core) = cores.into_iter().nth(index) else { return Ok(()) };
    // SAFETY: as above.
    let mut only: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the number is below the set's size.
    unsafe { libc::CPU_SET(core, &mut only) };
    // SAFETY: the set is valid during the call and of the length given.
    check(unsafe { libc::sched_setaffinity(0, set_bytes, ptr::from_ref(&only)) })?;
    Ok(())
}

/// Raises the process's limit of descriptors as far as it may: each connection needs one.
pub(crate) fn raise_descriptor_limit() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the structure, which is valid during the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the structure is valid during the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(())
}

/// Returns a call's result, or the error of one that returned -1.
fn check(result: i32) -> io::Result<i32> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
