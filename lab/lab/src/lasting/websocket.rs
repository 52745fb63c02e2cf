//! A client's end of a WebSocket (RFC 6455), as far as short messages need one.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The key of RFC 6455 section 1.3, and what has to be answered to it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
/// Longer messages have another form of length.
const MESSAGE_BYTES_MAX: usize = 125;
/// A head that is longer is none.
const HEAD_BYTES_MAX: usize = 4096;
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const MASKED: u8 = 0x80;

/// An open WebSocket.
pub(super) struct WebSocket(TcpStream);

impl WebSocket {
    /// Opens one.
    ///
    /// # Errors
    /// No connection, or an answer that doesn't upgrade it.
    pub(super) fn open(address: SocketAddr, target: &str, patience: Duration) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: lab\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: {KEY}\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let head = read_head(&mut stream)?;
        let accepts = head.lines().filter_map(|line| line.split_once(": "));
        let accepts = accepts
            .filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-accept"))
            .any(|(_, value)| value == ACCEPT);
        let upgraded = head.starts_with("HTTP/1.1 101 ") && accepts;
        if upgraded { Ok(Self(stream)) } else { Err(Error::other(format!("not upgraded: {head:?}"))) }
    }

    /// Sends a text.
    ///
    /// # Errors
    /// The connection's, and a text that is too long.
    pub(super) fn send(&mut self, text: &str) -> io::Result<()> {
        if text.len() > MESSAGE_BYTES_MAX {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.0.write_all(&frame(TEXT, text.as_bytes()))
    }

    /// Receives a text.
    ///
    /// # Errors
    /// The connection's, and what is no short text.
    pub(super) fn receive(&mut self) -> io::Result<String> {
        let (kind, message) = self.read_frame()?;
        let text = String::from_utf8(message).ok().filter(|_| kind == TEXT);
        text.ok_or_else(|| Error::other(format!("a frame of kind {kind:#04x}, not a text")))
    }

    /// Ends it, and waits for the other end.
    ///
    /// # Errors
    /// The connection's, and an end that isn't answered by one.
    pub(super) fn close(mut self) -> io::Result<()> {
        self.0.write_all(&frame(CLOSE, &1000_u16.to_be_bytes()))?;
        match self.read_frame()? {
            (CLOSE, _) => Ok(()),
            (kind, _) => Err(Error::other(format!("a frame of kind {kind:#04x}, not the end"))),
        }
    }

    fn read_frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut start = [0; 2];
        self.0.read_exact(&mut start)?;
        let length = usize::from(start[1]);
        if length > MESSAGE_BYTES_MAX {
            return Err(Error::other("a frame that is masked or long"));
        }
        let mut message = vec![0; length];
        self.0.read_exact(&mut message)?;
        Ok((start[0], message))
    }
}

/// A frame as clients send it, masked.
fn frame(kind: u8, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind, MASKED | message.len() as u8];
    frame.extend_from_slice(&MASK);
    frame.extend(message.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Reads an answer's head, byte by byte: what follows it is no part of it.
fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return Err(Error::other("a head without an end"));
        }
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{TEXT, frame};

    #[test]
    fn a_frame_is_that_of_the_rfc() {
        // RFC 6455 section 5.7: a single-frame masked text message.
        let wanted = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(frame(TEXT, b"Hello"), wanted);
    }
}
