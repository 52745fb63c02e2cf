//! Frames (RFC 9113 section 4).

use std::fmt;

use super::hpack;

/// Type of DATA frames.
pub const DATA: u8 = 0;
/// Type of HEADERS frames.
pub const HEADERS: u8 = 1;
/// Type of RST_STREAM frames.
pub const RST_STREAM: u8 = 3;
/// Type of SETTINGS frames.
pub const SETTINGS: u8 = 4;
/// Type of PUSH_PROMISE frames.
pub const PUSH_PROMISE: u8 = 5;
/// Type of PING frames.
pub const PING: u8 = 6;
/// Type of GOAWAY frames.
pub const GOAWAY: u8 = 7;
/// Type of WINDOW_UPDATE frames.
pub const WINDOW_UPDATE: u8 = 8;
/// Type of CONTINUATION frames.
pub const CONTINUATION: u8 = 9;
/// Flag of DATA and HEADERS: the last frame of a stream.
pub const END_STREAM: u8 = 1;
/// Flag of SETTINGS and PING: acknowledges one.
pub const ACK: u8 = 1;
/// Flag of HEADERS and CONTINUATION: the last frame of a header block.
pub const END_HEADERS: u8 = 4;
/// Flag of DATA and HEADERS: the payload has padding.
pub const PADDED: u8 = 8;
/// Setting of the dynamic table's size, bytes.
pub const HEADER_TABLE_SIZE: u16 = 1;
/// Setting of the window with which streams begin, bytes.
pub const INITIAL_WINDOW_SIZE: u16 = 4;
/// Setting of the largest payload, bytes.
pub const MAX_FRAME_SIZE: u16 = 5;
/// Setting: extended CONNECT is served (RFC 8441).
pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
/// Code of resets: the stream is no longer needed.
pub const CANCEL: u32 = 8;

const HEADER_BYTES: usize = 9;

/// A frame. Nothing in it need be valid.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type, a constant of this module.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// All after its header.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, flags, stream, payload } = self;
        write!(f, "({kind}, {flags:#x}, {stream}, \"{}\")", payload.escape_ascii())
    }
}

impl Frame {
    /// Returns a frame.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    /// Returns a HEADERS frame with a whole header block.
    pub fn headers(stream: u32, fields: &[(&str, &str)], is_end: bool) -> Self {
        Self::new(HEADERS, END_HEADERS | u8::from(is_end), stream, hpack::encode(fields))
    }

    /// Returns a DATA frame.
    pub fn data(stream: u32, data: &[u8], is_end: bool) -> Self {
        Self::new(DATA, u8::from(is_end), stream, data)
    }

    /// Returns a SETTINGS frame.
    pub fn settings(settings: &[(u16, u32)]) -> Self {
        let bytes = settings
            .iter()
            .flat_map(|&(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()));
        Self::new(SETTINGS, 0, 0, bytes.collect::<Vec<u8>>())
    }

    /// Returns a WINDOW_UPDATE frame.
    pub fn window_update(stream: u32, increment: u32) -> Self {
        Self::new(WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
    }

    /// Returns a RST_STREAM frame.
    pub fn reset(stream: u32, code: u32) -> Self {
        Self::new(RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// Returns the bytes on the wire.
    pub fn encode(&self) -> Vec<u8> {
        let len = (self.payload.len() as u32).to_be_bytes();
        [&len[1..], &[self.kind, self.flags], &self.stream.to_be_bytes(), &self.payload].concat()
    }

    /// Takes a frame from the front of `bytes`, if it is whole.
    pub fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes.first_chunk::<HEADER_BYTES>()?;
        let end = HEADER_BYTES + u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let payload = bytes.get(HEADER_BYTES..end)?.to_vec();
        bytes.drain(..end);
        Some(Self { kind, flags, stream: u32::from_be_bytes([s0 & 0x7F, s1, s2, s3]), payload })
    }

    /// Returns true if a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the number in four bytes of the payload.
    pub fn number(&self, at: usize) -> Option<u32> {
        self.payload.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Returns the settings of a SETTINGS frame.
    pub fn to_settings(&self) -> Vec<(u16, u32)> {
        let of = |[n0, n1, v0, v1, v2, v3]: &[u8; 6]| {
            (u16::from_be_bytes([*n0, *n1]), u32::from_be_bytes([*v0, *v1, *v2, *v3]))
        };
        self.payload.as_chunks().0.iter().map(of).collect()
    }
}
