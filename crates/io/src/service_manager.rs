//! systemd's protocols: sockets that it passes to a service, and the socket that takes notifications.

#![expect(unsafe_code, reason = "the protocol names descriptors by number")]

use std::ffi::OsString;
use std::io::{self, Error, ErrorKind};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, SocketAddrUnix, sendto};
use rustix::time::{ClockId, clock_gettime};

use crate::limits::{INHERITED_SOCKETS_MAX, NOTIFY_TIMEOUT_MS};

/// Number of the first descriptor that is passed.
const FIRST: RawFd = 3;

/// A socket that the service manager has opened for this process.
#[derive(Debug, Clone)]
pub struct InheritedSocket {
    /// The descriptor. It stays open as long as the process lives.
    pub socket: Arc<OwnedFd>,
    /// `FileDescriptorName=` of its unit; by default the unit's name.
    pub name: Option<String>,
}

/// Variables of the process's environment.
type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Returns the sockets that the service manager has passed (`LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES`).
///
/// The first call takes ownership of the descriptors, so that children don't inherit them. Make it before the process
/// opens files: one could get the number of a descriptor that was announced but not passed. Later calls return the same
/// sockets.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if the variables are malformed, name more than [`INHERITED_SOCKETS_MAX`] descriptors, or
/// one that is no open socket.
pub fn inherited_sockets() -> io::Result<&'static [InheritedSocket]> {
    static TAKEN: OnceLock<Result<Vec<InheritedSocket>, String>> = OnceLock::new();
    match TAKEN.get_or_init(|| passed(&environment)?.into_iter().map(take).collect()) {
        Ok(sockets) => Ok(sockets),
        Err(why) => Err(Error::new(ErrorKind::InvalidInput, why.as_str())),
    }
}

/// Returns the numbers and names of the descriptors that are passed to this process.
fn passed(environment: Environment<'_>) -> Result<Vec<(RawFd, Option<String>)>, String> {
    if !is_meant(environment, "LISTEN_PID") || environment("LISTEN_PID").is_none() {
        return Ok(Vec::new());
    }
    let Some(count) = environment("LISTEN_FDS") else { return Ok(Vec::new()) };
    let parsed = count.to_str().and_then(|count| count.parse::<usize>().ok());
    let count = parsed.ok_or_else(|| format!("LISTEN_FDS is no number: {count:?}"))?;
    if count > INHERITED_SOCKETS_MAX {
        return Err(format!(
            "LISTEN_FDS announces {count} sockets, and {INHERITED_SOCKETS_MAX} can be taken at most"
        ));
    }
    let names = environment("LISTEN_FDNAMES").map(|names| names.to_string_lossy().into_owned());
    let names: Vec<&str> = names.as_deref().map_or(Vec::new(), |names| names.split(':').collect());
    let name = |index: usize| names.get(index).filter(|name| !name.is_empty()).map(|name| (*name).to_owned());
    Ok((FIRST..).zip(0..count).map(|(number, index)| (number, name(index))).collect())
}

/// Returns whether a variable, which holds a process id, is absent or names this process.
fn is_meant(environment: Environment<'_>, variable: &str) -> bool {
    environment(variable).is_none_or(|given| given.to_str() == Some(&std::process::id().to_string()))
}

fn take((number, name): (RawFd, Option<String>)) -> Result<InheritedSocket, String> {
    let unusable = |error: Error| format!("LISTEN_FDS announces descriptor {number}, but: {error}");
    // SAFETY: the call reads the flags of a descriptor, and fails for a number that isn't open.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 {
        return Err(unusable(Error::last_os_error()));
    }
    // SAFETY: the descriptor is open, and the borrow ends with the statement.
    let kind = rustix::net::sockopt::socket_type(unsafe { BorrowedFd::borrow_raw(number) });
    kind.map_err(|errno| unusable(errno.into()))?;
    // SAFETY: the descriptor is open. It is closed on exec from now on.
    if unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) } < 0 {
        return Err(unusable(Error::last_os_error()));
    }
    // SAFETY: the descriptor is open, and the protocol gives it to this process: nothing else in it owns the number. The
    // caller takes each number once.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    Ok(InheritedSocket { socket: Arc::new(socket), name })
}

/// Sends a message such as `READY=1` to the service manager, at the address in `NOTIFY_SOCKET`.
///
/// Returns false if there is none. Waits for at most [`NOTIFY_TIMEOUT_MS`] if the manager reads nothing.
///
/// # Errors
/// If the address is neither a path nor an abstract name (`@…`), or if the manager can't be reached.
pub fn notify(message: &str) -> io::Result<bool> {
    match environment("NOTIFY_SOCKET") {
        Some(address) => notify_at(address.as_bytes(), message).map(|()| true),
        None => Ok(false),
    }
}

/// Returns whether a service manager takes notifications.
#[must_use]
pub fn takes_notifications() -> bool {
    environment("NOTIFY_SOCKET").is_some()
}

/// Returns the time that `MONOTONIC_USEC` states, in microseconds.
#[must_use]
pub fn monotonic_us() -> u64 {
    // It is never negative, and lasts for 500,000 years.
    Duration::try_from(clock_gettime(ClockId::Monotonic)).map_or(0, |time| time.as_micros() as u64)
}

fn notify_at(address: &[u8], message: &str) -> io::Result<()> {
    let address = match address {
        [b'/', ..] => SocketAddrUnix::new(address)?,
        [b'@', name @ ..] => abstract_name(name)?,
        _ => return Err(Error::new(ErrorKind::InvalidInput, "NOTIFY_SOCKET is neither a path nor @NAME")),
    };
    // With `CLOEXEC`, on Apple's systems as well.
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(Duration::from_millis(NOTIFY_TIMEOUT_MS)))?;
    // With a timeout, a signal interrupts the wait, whatever the handler's flags.
    retry_on_intr(|| sendto(&socket, message.as_bytes(), SendFlags::empty(), &address))?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn abstract_name(name: &[u8]) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(name)?)
}

/// Fails: only Linux has abstract names.
#[cfg(not(target_os = "linux"))]
fn abstract_name(_: &[u8]) -> io::Result<SocketAddrUnix> {
    Err(ErrorKind::Unsupported.into())
}

/// Returns the time within which the service manager expects `WATCHDOG=1` (`WATCHDOG_USEC`, `WATCHDOG_PID`).
#[must_use]
pub fn watchdog_timeout() -> Option<Duration> {
    watchdog_of(&environment)
}

fn watchdog_of(environment: Environment<'_>) -> Option<Duration> {
    let microseconds =
        environment("WATCHDOG_USEC")?.to_str()?.parse().ok().filter(|&given: &u64| given > 0)?;
    is_meant(environment, "WATCHDOG_PID").then(|| Duration::from_micros(microseconds))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    use super::{notify_at, passed, watchdog_of};
    use crate::limits::INHERITED_SOCKETS_MAX;

    /// Returns a look-up in `NAME=value`, where `PID` is this process's id.
    fn variables(given: &'static [&'static str]) -> impl Fn(&str) -> Option<OsString> {
        move |name| {
            let pairs = given.iter().filter_map(|pair| pair.split_once('='));
            let value = pairs.into_iter().find(|(known, _)| *known == name)?.1;
            Some(value.replace("PID", &std::process::id().to_string()).into())
        }
    }

    #[test]
    fn takes_descriptors_that_are_meant_for_this_process() {
        let named = |number: i32, name: &str| (number, Some(name.to_owned()));
        for (given, expected) in [
            (&[][..], vec![]),
            (&["LISTEN_FDS=1"], vec![]),
            (&["LISTEN_PID=1", "LISTEN_FDS=1"], vec![]),
            (&["LISTEN_PID=PID"], vec![]),
            (&["LISTEN_PID=PID", "LISTEN_FDS=0"], vec![]),
            (&["LISTEN_PID=PID", "LISTEN_FDS=2"], vec![(3, None), (4, None)]),
            (&["LISTEN_PID=PID", "LISTEN_FDS=1", "LISTEN_FDNAMES=http"], vec![named(3, "http")]),
            (
                &["LISTEN_PID=PID", "LISTEN_FDS=3", "LISTEN_FDNAMES=a::c:d"],
                vec![named(3, "a"), (4, None), named(5, "c")],
            ),
        ] {
            assert_eq!(passed(&variables(given)), Ok(expected), "{given:?}");
        }
        let some = &["LISTEN_PID=PID", "LISTEN_FDS=some"];
        assert_eq!(passed(&variables(some)), Err("LISTEN_FDS is no number: \"some\"".to_owned()));
        let too_many = passed(&|name| match name {
            "LISTEN_PID" => Some(std::process::id().to_string().into()),
            _ => Some((INHERITED_SOCKETS_MAX + 1).to_string().into()),
        });
        assert!(too_many.is_err_and(|why| why.contains("at most")));
    }

    #[test]
    fn reads_the_watchdog_timeout_of_this_process() {
        for (given, expected) in [
            (&[][..], None),
            (&["WATCHDOG_USEC=3000000"], Some(Duration::from_secs(3))),
            (&["WATCHDOG_USEC=1500", "WATCHDOG_PID=PID"], Some(Duration::from_micros(1500))),
            (&["WATCHDOG_USEC=3000000", "WATCHDOG_PID=1"], None),
            (&["WATCHDOG_USEC=0"], None),
            (&["WATCHDOG_USEC=soon"], None),
        ] {
            assert_eq!(watchdog_of(&variables(given)), expected, "{given:?}");
        }
    }

    #[test]
    fn notifies_a_path_and_rejects_other_addresses() {
        let folder = std::env::temp_dir().join(format!("shearwater-notify-{}", std::process::id()));
        let path = folder.as_path();
        let manager = UnixDatagram::bind(path).expect("a socket");
        notify_at(path.as_os_str().as_encoded_bytes(), "READY=1").expect("sent");
        let mut message = [0; 64];
        let received = manager.recv(&mut message).expect("a message");
        assert_eq!(&message[..received], b"READY=1");
        // Nobody reads: the wait is bounded.
        let mut sent = 0;
        while notify_at(path.as_os_str().as_encoded_bytes(), "STATUS=full").is_ok() {
            sent += 1;
            assert!(sent < 100_000, "the queue has no end");
        }
        std::fs::remove_file(path).expect("it exists");
        for address in [path.as_os_str().as_encoded_bytes(), b"vsock:2:1234", b""] {
            assert!(notify_at(address, "READY=1").is_err(), "{address:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn notifies_an_abstract_name() {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::SocketAddr;

        let name = format!("shearwater-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let manager = UnixDatagram::bind_addr(&address).expect("a socket");
        notify_at(format!("@{name}").as_bytes(), "STOPPING=1").expect("sent");
        let mut message = [0; 64];
        let received = manager.recv(&mut message).expect("a message");
        assert_eq!(&message[..received], b"STOPPING=1");
    }
}
