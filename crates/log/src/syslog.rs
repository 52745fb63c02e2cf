//! Messages to a syslog daemon on this machine (RFC 5424): a datagram for each line.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::destination::await_writable;
use crate::limits::SYSLOG_BYTES_MAX;
use crate::time::TimeCache;

/// Priority (RFC 5424 section 6.2.1): facility `local7`, severity informational.
const PRIORITY: u8 = 23 * 8 + 6;
const APP_NAME: &str = "shearwater";
const MESSAGE_ID: &str = "access";
/// Bytes of `HOSTNAME`.
const HOST_BYTES_MAX: usize = 255;

/// Address of a syslog daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyslogAddress {
    /// A Unix-domain datagram socket, such as `/dev/log`.
    Unix(PathBuf),
    /// UDP on a loopback address.
    Udp(SocketAddr),
}

impl SyslogAddress {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        let message = "expected a path or a loopback address with a port after `syslog:`";
        let address: SocketAddr = text.parse().map_err(|_| message.to_owned())?;
        match address.ip().is_loopback() && address.port() > 0 {
            true => Ok(Self::Udp(address)),
            false => Err(message.to_owned()),
        }
    }
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Udp(address) => address.fmt(f),
        }
    }
}

/// A connection to a daemon.
#[derive(Debug)]
pub(crate) struct Syslog {
    /// Possibly a Unix-domain socket: the calls are the same.
    socket: UdpSocket,
    host: String,
    time: TimeCache,
    message: Vec<u8>,
}

impl Syslog {
    pub(crate) fn connect(address: &SyslogAddress) -> io::Result<Self> {
        let socket = match address {
            SyslogAddress::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                OwnedFd::from(socket).into()
            }
            SyslogAddress::Udp(address) => {
                let socket = UdpSocket::bind(SocketAddr::new(address.ip(), 0))?;
                socket.connect(address)?;
                socket
            }
        };
        socket.set_nonblocking(true)?;
        let has_valid_bytes = |name: &str| name.bytes().all(|byte| byte.is_ascii_graphic());
        let is_valid = |name: &String| (1..=HOST_BYTES_MAX).contains(&name.len()) && has_valid_bytes(name);
        let host = shearwater_io::os::host_name().filter(is_valid).unwrap_or_else(|| "-".to_owned());
        Ok(Self { socket, host, time: TimeCache::default(), message: Vec::new() })
    }

    /// Sends whole lines; returns the bytes of those that were sent.
    pub(crate) fn send_lines(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            match self.send(line.strip_suffix(b"\n").unwrap_or(line)) {
                Ok(()) => sent += line.len(),
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.message.clear();
        // Writing to a vector can't fail.
        let _ = write!(self.message, "<{PRIORITY}>1 ");
        self.message.extend_from_slice(self.time.iso(now));
        let pid = std::process::id();
        let _ = write!(self.message, " {} {APP_NAME} {pid} {MESSAGE_ID} - ", self.host);
        let room = SYSLOG_BYTES_MAX.saturating_sub(self.message.len());
        self.message.extend_from_slice(&line[..line.len().min(room)]);
        match self.send_message() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                await_writable(&self.socket)?;
                self.send_message()
            }
            result => result,
        }
    }

    fn send_message(&self) -> io::Result<()> {
        self.socket.send(&self.message)?;
        // On this machine the rejection by a closed port is there already. The next call would fail for it, and this line
        // would be lost.
        self.socket.take_error()?.map_or(Ok(()), Err)
    }
}
