//! Network namespaces: loopback of its own, with its own congestion control and connection table, and nothing else changes
//! on the machine. They end with their last process.

use std::fs;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

/// Bytes of netlink's header, and of a message that changes an interface.
const HEADER_BYTES: usize = 16;
const CHANGE_BYTES: usize = 32;
/// Type and flags of that message (`RTM_NEWLINK`; `NLM_F_REQUEST`, `NLM_F_ACK`), and the type of the reply.
const NEW_LINK: u16 = 16;
const REQUEST_AND_REPLY: u16 = 0x1 | 0x4;
const REPLY: u16 = 2;
/// Index of loopback in every namespace, and the flag of an interface that is up.
const LOOPBACK: u32 = 1;
const UP: u32 = 1;

/// Moves the calling thread into a new network namespace whose loopback is up, and with it all threads and processes that it starts
/// later. It has this congestion control, such as `reno`, and a table of connections with so many buckets of its own, rounded up
/// to a power of two (Linux 6.1), or shares the machine's.
///
/// Without privileges the process must have one thread, or must have called [`gain_rights`] while it had.
///
/// # Errors
///
/// The reason, if the system permits no namespace or not these settings. The thread may have moved then, and is good for nothing
/// but to report it.
pub(crate) fn enter(congestion_control: &str, buckets: Option<u32>) -> Result<(), String> {
    gain_rights()?;
    create()?;
    if let Some(buckets) = buckets {
        // A namespace's table is made with it, as the one that it is made from says: this one, not the machine's.
        set("tcp_child_ehash_entries", &buckets.to_string())?;
        create()?;
        let granted = get("tcp_ehash_entries")?;
        // A negative count is of the shared table.
        if !granted.parse().is_ok_and(|granted: i64| granted >= i64::from(buckets)) {
            return Err(format!("network namespace: {buckets} buckets requested, granted {granted}"));
        }
    }
    set("tcp_congestion_control", congestion_control)?;
    bring_loopback_up().map_err(|error| format!("network namespace: loopback stays down: {error}"))
}

/// Lets a process without privileges create network namespaces: it gets a user namespace, in which its user stays the same.
///
/// # Errors
///
/// The reason, if the system permits no user namespace, or the process has several threads.
pub(crate) fn gain_rights() -> Result<(), String> {
    let held = capabilities(None).map_err(|error| format!("own capabilities: {error}"))?;
    if held.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN) {
        return Ok(());
    }
    let [user, group] = [rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()];
    unshare(UnshareFlags::NEWUSER).map_err(|error| format!("user namespace: {error}"))?;
    // A group can only be mapped where the list of groups can't be changed.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))
}

fn create() -> Result<(), String> {
    unshare(UnshareFlags::NEWNET).map_err(|error| format!("network namespace: {error}"))
}

#[expect(
    deprecated,
    reason = "deprecated for the flag FILES alone, which can harm other threads; it is never given here"
)]
fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    rustix::thread::unshare(flags)
}

/// Sets one of TCP's settings in the calling thread's namespace.
fn set(name: &str, value: &str) -> Result<(), String> {
    write(&format!("/proc/sys/net/ipv4/{name}"), value)
}

fn get(name: &str) -> Result<String, String> {
    let path = format!("/proc/sys/net/ipv4/{name}");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(text.trim().to_owned())
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {text}: {error}"))
}

fn bring_loopback_up() -> Result<(), Errno> {
    // Without a name it is the protocol of routes and links.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &link_up(LOOPBACK), SendFlags::empty())?;
    let mut reply = [0; 64];
    let (length, _) = recv(&socket, &mut reply, RecvFlags::empty())?;
    parse_reply(&reply[..length])
}

/// Returns the message that brings an interface up.
fn link_up(interface: u32) -> [u8; CHANGE_BYTES] {
    let mut message = [0; CHANGE_BYTES];
    message[..4].copy_from_slice(&(CHANGE_BYTES as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&NEW_LINK.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_AND_REPLY.to_ne_bytes());
    message[20..24].copy_from_slice(&interface.to_ne_bytes());
    // The flags, and which of them are meant.
    message[24..28].copy_from_slice(&UP.to_ne_bytes());
    message[28..].copy_from_slice(&UP.to_ne_bytes());
    message
}

/// Parses the reply to a message: an error's number, negated, or zero.
fn parse_reply(reply: &[u8]) -> Result<(), Errno> {
    let kind = reply.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    match (kind, reply.get(HEADER_BYTES..HEADER_BYTES + 4)) {
        (Some(REPLY), Some(&[a, b, c, d])) => match i32::from_ne_bytes([a, b, c, d]) {
            0 => Ok(()),
            error => Err(Errno::from_raw_os_error(-error)),
        },
        _ => Err(Errno::BADMSG),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_in_a_namespace_has_its_own_loopback_and_settings() {
        let outside = get("tcp_congestion_control").expect("every system has one");
        let inside =
            thread::spawn(|| enter("reno", None).map(|()| (get("tcp_congestion_control"), exchange())));
        match inside.join().expect("the thread ends") {
            Ok((congestion_control, received)) => {
                assert_eq!((congestion_control.as_deref(), received.ok()), (Ok("reno"), Some(*b"ping")));
            }
            // Where none is permitted the reason is what a report prints.
            Err(reason) => assert!(reason.contains("namespace") || reason.contains("/proc/"), "{reason}"),
        }
        assert_eq!(get("tcp_congestion_control"), Ok(outside), "the machine keeps its own");
    }

    /// Sends four bytes over loopback.
    fn exchange() -> std::io::Result<[u8; 4]> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        TcpStream::connect(listener.local_addr()?)?.write_all(b"ping")?;
        let mut received = [0; 4];
        listener.accept()?.0.read_exact(&mut received)?;
        Ok(received)
    }

    #[test]
    fn an_unknown_congestion_control_is_refused() {
        assert!(thread::spawn(|| enter("planted", None)).join().expect("the thread ends").is_err());
        let mut reply = [0; 36];
        reply[4..6].copy_from_slice(&REPLY.to_ne_bytes());
        assert_eq!(parse_reply(&reply), Ok(()));
        reply[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(parse_reply(&reply), Err(Errno::PERM));
        assert_eq!(parse_reply(&reply[..10]), Err(Errno::BADMSG));
    }
}
