//! Frames (RFC 9113 4 and 6): headers, payloads as parts of the input, and encoding.

mod settings;
mod write;

pub(crate) use settings::{PeerSettings, append_settings};
pub(crate) use write::{
    append_data_header, append_go_away, append_header_block, append_ping, append_reset, append_settings_ack,
    append_window_update,
};

use crate::error::ConnectionError;

/// Length of a frame header in bytes (RFC 9113 4.1).
pub(crate) const HEADER_BYTES: usize = 9;

/// The bytes that a client sends first, before its SETTINGS (RFC 9113 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bit of a stream's number and of a window that is ignored.
const RESERVED: u32 = 1 << 31;
/// Length of the fields of PRIORITY, which may also precede a header block.
const PRIORITY_BYTES: usize = 5;

/// A frame's type; extensions have any other (RFC 9113 6, RFC 9218 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Data,
    Headers,
    Priority,
    Reset,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    PriorityUpdate,
    Unknown,
}

impl FrameKind {
    fn from_number(number: u8) -> Self {
        match number {
            0x0 => Self::Data,
            0x1 => Self::Headers,
            0x2 => Self::Priority,
            0x3 => Self::Reset,
            0x4 => Self::Settings,
            0x5 => Self::PushPromise,
            0x6 => Self::Ping,
            0x7 => Self::GoAway,
            0x8 => Self::WindowUpdate,
            0x9 => Self::Continuation,
            0x10 => Self::PriorityUpdate,
            _ => Self::Unknown,
        }
    }
}

/// Flags of frames (RFC 9113 6); a flag that a frame's type doesn't have is ignored.
pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// A frame header (RFC 9113 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Length of the payload in bytes.
    pub(crate) len: usize,
    pub(crate) kind: FrameKind,
    flags: u8,
    /// Number of the stream; 0 is the connection.
    pub(crate) stream: u32,
}

impl FrameHeader {
    #[inline]
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [len @ .., kind, flags, s0, s1, s2, s3] = *bytes;
        let [l0, l1, l2] = len;
        Self {
            len: u32::from_be_bytes([0, l0, l1, l2]) as usize,
            kind: FrameKind::from_number(kind),
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & !RESERVED,
        }
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Returns a payload without its padding (RFC 9113 6.1).
pub(crate) fn without_padding(header: FrameHeader, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(ConnectionError::FrameSize)?;
    let len = rest.len().checked_sub(padding.into()).ok_or(ConnectionError::Padding)?;
    Ok(&rest[..len])
}

/// A HEADERS payload (RFC 9113 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadersPayload<'a> {
    pub(crate) fragment: &'a [u8],
    /// Stream of the deprecated priority, if one is given.
    pub(crate) dependency: Option<u32>,
}

impl<'a> HeadersPayload<'a> {
    pub(crate) fn parse(header: FrameHeader, payload: &'a [u8]) -> Result<Self, ConnectionError> {
        let payload = without_padding(header, payload)?;
        if !header.has(flag::PRIORITY) {
            return Ok(Self { fragment: payload, dependency: None });
        }
        let (priority, fragment) =
            payload.split_at_checked(PRIORITY_BYTES).ok_or(ConnectionError::FrameSize)?;
        Ok(Self { fragment, dependency: Some(number(priority) & !RESERVED) })
    }
}

/// Returns the stream that a PRIORITY payload depends on; `None` for a wrong size (RFC 9113 6.3).
pub(crate) fn dependency(payload: &[u8]) -> Option<u32> {
    (payload.len() == PRIORITY_BYTES).then(|| number(payload) & !RESERVED)
}

/// Returns the one number of a RST_STREAM payload (RFC 9113 6.4).
pub(crate) fn reset_code(payload: &[u8]) -> Result<u32, ConnectionError> {
    match payload.len() {
        4 => Ok(number(payload)),
        _ => Err(ConnectionError::FrameSize),
    }
}

/// Returns the increment of a WINDOW_UPDATE payload (RFC 9113 6.9).
pub(crate) fn window_increment(payload: &[u8]) -> Result<u32, ConnectionError> {
    reset_code(payload).map(|increment| increment & !RESERVED)
}

/// Returns the stream and the priority field of a PRIORITY_UPDATE payload (RFC 9218 7.1).
pub(crate) fn priority_update(payload: &[u8]) -> Result<(u32, &[u8]), ConnectionError> {
    let (stream, value) = payload.split_at_checked(4).ok_or(ConnectionError::FrameSize)?;
    Ok((number(stream) & !RESERVED, value))
}

/// Reads the number in the first four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(flags: u8) -> FrameHeader {
        FrameHeader { len: 0, kind: FrameKind::Headers, flags, stream: 1 }
    }

    #[test]
    fn reads_a_header_and_ignores_the_reserved_bit() {
        let read = FrameHeader::parse(&[0x01, 0x02, 0x03, 0x9, 0x4, 0x80, 0, 1, 5]);
        let expected = FrameHeader { len: 0x01_02_03, kind: FrameKind::Continuation, flags: 4, stream: 261 };
        assert_eq!(read, expected);
        assert_eq!(FrameHeader::parse(&[0, 0, 0, 0xFF, 0, 0, 0, 0, 0]).kind, FrameKind::Unknown);
    }

    #[test]
    fn removes_padding() {
        for (payload, expected) in [
            (&b"\x00ab"[..], Ok(&b"ab"[..])),
            (b"\x02ab", Ok(b"")),
            (b"\x01ab", Ok(b"a")),
            (b"\x03ab", Err(ConnectionError::Padding)),
            (b"", Err(ConnectionError::FrameSize)),
        ] {
            assert_eq!(without_padding(header(flag::PADDED), payload), expected, "{payload:?}");
        }
        assert_eq!(without_padding(header(0), b"\x09"), Ok(&b"\x09"[..]));
    }

    #[test]
    fn reads_a_header_block_after_padding_and_priority() {
        let both = header(flag::PADDED | flag::PRIORITY);
        let payload = HeadersPayload::parse(both, b"\x01\x80\0\0\x03\x10block.");
        assert_eq!(payload, Ok(HeadersPayload { fragment: b"block", dependency: Some(3) }));
        assert_eq!(HeadersPayload::parse(both, b"\x01\0\0\0\x03."), Err(ConnectionError::FrameSize));
    }

    #[test]
    fn sizes_of_payloads_are_exact() {
        assert_eq!((dependency(b"\0\0\0\x01\x10"), dependency(b"\0\0\0\x01")), (Some(1), None));
        assert_eq!(window_increment(b"\x80\0\0\x07"), Ok(7));
        assert_eq!(reset_code(b"\0\0\0"), Err(ConnectionError::FrameSize));
        assert_eq!(priority_update(b"\0\0\0\x05u=1"), Ok((5, &b"u=1"[..])));
        assert_eq!(priority_update(b"\0\0\0"), Err(ConnectionError::FrameSize));
    }
}
