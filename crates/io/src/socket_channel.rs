//! A channel from one process to its child that carries sockets (`SCM_RIGHTS`).

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, send, sendmsg,
};

use crate::limits::{CHANNEL_MESSAGE_BYTES_MAX, CHANNEL_SOCKETS_MAX};

/// First byte of a message with a socket, and of one without.
const WITH_SOCKET: u8 = b'+';
const WITHOUT_SOCKET: u8 = b'-';

/// Last byte of a message. Neither an address nor a path contains it.
const END: u8 = 0;

const INVALID: ErrorKind = ErrorKind::InvalidData;

/// One end of a channel. Messages are texts without NUL; a socket belongs to the message that it was sent with.
///
/// The other end learns that a process has ended: it reads the end of the stream.
#[derive(Debug)]
pub struct SocketChannel {
    stream: UnixStream,
    /// Bytes that were received, and belong to the next messages.
    received: Vec<u8>,
    sockets: VecDeque<OwnedFd>,
}

/// A message with its socket.
#[derive(Debug)]
pub struct ChannelMessage {
    /// Its text.
    pub text: Vec<u8>,
    /// The socket that it was sent with.
    pub socket: Option<OwnedFd>,
}

impl SocketChannel {
    /// Returns a channel and its other end, for the standard input of a child.
    ///
    /// # Errors
    /// Fails if the process is out of descriptors.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = UnixStream::pair()?;
        Ok((Self::from(OwnedFd::from(here)), there.into()))
    }

    /// Sets the longest wait of a call; `None` waits forever.
    ///
    /// # Errors
    /// Fails for a wait of zero.
    pub fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(patience)?;
        self.stream.set_write_timeout(patience)
    }

    /// Sends a message, with a socket if one is given.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a text with a NUL; [`ErrorKind::WouldBlock`] if nobody reads; otherwise the
    /// kernel's.
    pub fn send(&mut self, text: &[u8], socket: Option<&impl AsFd>) -> io::Result<()> {
        if text.contains(&END) || text.len() >= CHANNEL_MESSAGE_BYTES_MAX {
            return Err(ErrorKind::InvalidInput.into());
        }
        let first = if socket.is_some() { WITH_SOCKET } else { WITHOUT_SOCKET };
        let message = [&[first], text, &[END]].concat();
        let Some(socket) = socket else { return self.send_rest(&message) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let sockets = [socket.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&sockets));
        let sent = retry_on_intr(|| sendmsg(&self.stream, &[IoSlice::new(&message)], &mut control, SEND))?;
        self.send_rest(&message[sent..])
    }

    fn send_rest(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[retry_on_intr(|| send(&self.stream, bytes, SEND))?..];
        }
        Ok(())
    }

    /// Receives the next message; `None` if the other process has ended.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] after the longest wait, and [`ErrorKind::InvalidData`] for what
    /// [`send`](Self::send) doesn't send, such as more than [`CHANNEL_SOCKETS_MAX`] sockets.
    pub fn receive(&mut self) -> io::Result<Option<ChannelMessage>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == END) {
                let message: Vec<u8> = self.received.drain(..=end).collect();
                let (socket, text) = match &message[..end] {
                    [WITH_SOCKET, text @ ..] => (Some(self.sockets.pop_front().ok_or(INVALID)?), text),
                    [WITHOUT_SOCKET, text @ ..] => (None, text),
                    _ => return Err(INVALID.into()),
                };
                let text = text.to_vec();
                return Ok(Some(ChannelMessage { text, socket }));
            }
            if self.received.len() > CHANNEL_MESSAGE_BYTES_MAX || self.sockets.len() > CHANNEL_SOCKETS_MAX {
                return Err(INVALID.into());
            }
            if self.read_more()? == 0 {
                return Ok(None);
            }
        }
    }

    fn read_more(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 512];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let parts = &mut [IoSliceMut::new(&mut bytes)];
        let count = match retry_on_intr(|| recvmsg(&self.stream, parts, &mut control, RECEIVE)) {
            // It has ended with unread messages.
            Err(Errno::CONNRESET) => 0,
            received => received?.bytes,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(sockets) = message {
                self.sockets.extend(sockets);
            }
        }
        close_on_exec(&self.sockets)?;
        self.received.extend_from_slice(&bytes[..count]);
        Ok(count)
    }
}

/// Flags of sending: a process that has ended is an error and no signal. On Apple's systems the standard library's
/// streams have an option for that.
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::empty();

/// Flags of receiving: children don't inherit what is received.
#[cfg(not(target_vendor = "apple"))]
const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(target_vendor = "apple")]
const RECEIVE: RecvFlags = RecvFlags::empty();

/// Does nothing: receiving has done it.
#[cfg(not(target_vendor = "apple"))]
fn close_on_exec(_: &VecDeque<OwnedFd>) -> io::Result<()> {
    Ok(())
}

/// Keeps received sockets from children.
#[cfg(target_vendor = "apple")]
fn close_on_exec(sockets: &VecDeque<OwnedFd>) -> io::Result<()> {
    let set = |socket: &OwnedFd| rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::CLOEXEC);
    Ok(sockets.iter().try_for_each(set)?)
}

/// Takes the standard input of this process, which is the null device from then on.
///
/// # Errors
/// Fails without standard input, or if the process is out of descriptors.
pub fn take_standard_input() -> io::Result<OwnedFd> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(input)
}

/// Returns true if the standard input of this process is the end of a channel of that process, its parent but for a
/// [relay](crate::relay).
#[must_use]
pub fn has_channel_of(process: &str) -> bool {
    let is_parent = std::os::unix::process::parent_id().to_string() == process;
    #[cfg(target_os = "linux")]
    let is_peer = rustix::net::sockopt::socket_peercred(io::stdin())
        .is_ok_and(|peer| peer.pid.as_raw_nonzero().to_string() == process);
    #[cfg(not(target_os = "linux"))]
    let is_peer = false;
    is_parent || is_peer
}

/// Takes the end of a channel that a process was started with.
impl From<OwnedFd> for SocketChannel {
    fn from(socket: OwnedFd) -> Self {
        Self { stream: socket.into(), received: Vec::new(), sockets: VecDeque::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::io::Write;
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use super::{CHANNEL_MESSAGE_BYTES_MAX, CHANNEL_SOCKETS_MAX, SocketChannel};

    const NO_SOCKET: Option<&OwnedFd> = None;

    #[test]
    fn carries_texts_and_sockets_in_order() {
        let (mut here, there) = SocketChannel::pair().expect("descriptors");
        let mut there = SocketChannel::from(there);
        let listeners = [0; 40].map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        here.send(b"first", NO_SOCKET).expect("sent");
        for (number, listener) in listeners.iter().enumerate() {
            here.send(format!("socket {number}").as_bytes(), Some(listener)).expect("sent");
        }
        here.send(b"", NO_SOCKET).expect("sent");
        drop(here);
        let mut next = || there.receive().expect("well-formed");
        let first = next().expect("a message");
        assert_eq!((first.text.as_slice(), first.socket.is_none()), (&b"first"[..], true));
        for (number, listener) in listeners.iter().enumerate() {
            let message = next().expect("a message");
            assert_eq!(message.text, format!("socket {number}").as_bytes());
            let same = TcpListener::from(message.socket.expect("a socket"));
            let addresses = [&same, listener].map(|socket| socket.local_addr().expect("bound"));
            assert_eq!(addresses[0], addresses[1]);
        }
        assert_eq!(next().map(|last| last.text), Some(Vec::new()));
        assert!(next().is_none(), "the other end is closed");
    }

    #[test]
    fn waits_and_messages_are_bounded() {
        let (mut here, there) = SocketChannel::pair().expect("descriptors");
        let mut there = SocketChannel::from(there);
        there.set_patience(Some(Duration::from_millis(1))).expect("a wait");
        let waited = there.receive().expect_err("nothing was sent");
        assert_eq!(waited.kind(), ErrorKind::WouldBlock);
        for text in [&b"with\0end"[..], &[b'x'; CHANNEL_MESSAGE_BYTES_MAX]] {
            let refused = here.send(text, NO_SOCKET).expect_err("it couldn't be received");
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        }
        let endless = [b'-'; 2 * CHANNEL_MESSAGE_BYTES_MAX];
        for bytes in [&b"+a socket that is missing\0"[..], b"neither\0", b"\0", &endless] {
            here.stream.write_all(bytes).expect("sent");
            assert_eq!(
                there.receive().expect_err("it isn't sent").kind(),
                ErrorKind::InvalidData,
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn sockets_without_messages_are_bounded() {
        let (mut here, there) = SocketChannel::pair().expect("descriptors");
        let mut there = SocketChannel::from(there);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        // Each is sent with a byte of one message, which has no end.
        for _ in 0..=CHANNEL_SOCKETS_MAX {
            here.send(b"", Some(&listener)).expect("sent");
            there.received.clear();
            let received = there.read_more().expect("bytes");
            assert_eq!(received, 2);
        }
        there.received.clear();
        here.stream.write_all(b"-").expect("sent");
        assert_eq!(there.receive().expect_err("too many").kind(), ErrorKind::InvalidData);
    }
}
