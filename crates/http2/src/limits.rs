//! Limits of what one connection may make this crate store or do.

use shearwater_http1::HeadLimits;

/// Content of a full DATA frame in bytes: with its header it fills one TLS record of 16 KiB.
pub const DATA_BYTES_MAX: usize = 16 * 1024 - 9;

/// Payload of a received frame in bytes, as a client may send without our permission (RFC 9113 4.2). Beyond:
/// FRAME_SIZE_ERROR.
pub const FRAME_BYTES_MAX: usize = 16 * 1024;

/// Size of an HPACK table in bytes, each way (RFC 7541 4.1); allocated as it fills. Beyond: eviction.
pub const HEADER_TABLE_BYTES_MAX: usize = 4096;

/// Size of a decoded header list in bytes, whether stored or not. Beyond: ENHANCE_YOUR_CALM.
///
/// A list beyond [`HeadLimits`] is still decoded, because later ones depend on it; this bounds that work.
pub const DECODED_BYTES_MAX: usize = 1024 * 1024;

/// Size of a header block in frames after the first, in bytes. Beyond: ENHANCE_YOUR_CALM.
pub const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// Number of CONTINUATION frames of a header block. Beyond: ENHANCE_YOUR_CALM.
pub const CONTINUATIONS_MAX: u8 = 8;

/// Size of a request's trailers in bytes, as lines. Beyond: rejected with 431.
pub const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// Number of a request's trailer fields. Beyond: rejected with 431.
pub const TRAILERS_MAX: usize = 32;

/// Number of acknowledgements of SETTINGS and PING that wait to be sent. Beyond: ENHANCE_YOUR_CALM.
pub const ACKNOWLEDGEMENTS_MAX: u32 = 64;

/// Resets, by either side, that a connection may begin with, and that it may save up. Beyond:
/// ENHANCE_YOUR_CALM (CVE-2023-44487, CVE-2025-8671). Each response that is sent whole earns another one.
pub const RESETS_MAX: u32 = 200;

/// Resets that a connection earns per second.
pub const RESETS_PER_SECOND: u32 = 20;

/// Frames without content that a connection may begin with, and that it may save up. Beyond:
/// ENHANCE_YOUR_CALM. Each DATA frame with content, in either direction, earns another one.
pub const CONTROL_FRAMES_MAX: u32 = 1000;

/// Frames without content that a connection earns per second.
pub const CONTROL_FRAMES_PER_SECOND: u32 = 100;

/// WINDOW_UPDATE frames that each DATA frame we send allows, beyond the frames without content: one for the
/// stream, one for the connection.
pub const WINDOW_UPDATES_PER_DATA: u32 = 2;

/// Number of closed streams that a connection stores, to tell late frames from wrong ones: as many as may be
/// open, and at least this. Frames of earlier ones are errors.
pub const CLOSED_STREAMS_KEPT_MIN: usize = 64;

/// Largest number of closed streams that a connection stores.
pub const CLOSED_STREAMS_KEPT_MAX: usize = 1024;

/// Content in bytes that a stream which isn't incremental sends before others of its urgency (RFC 9218 4.2).
pub const TURN_BYTES: u32 = 64 * 1024;

/// Smallest and largest flow-control window in bytes (RFC 9113 6.9.2 and 6.9.1); settings are clamped.
const WINDOW_BYTES_FLOOR: u32 = 65_535;
pub(crate) const WINDOW_BYTES_CEILING: u32 = (1 << 31) - 1;
/// Largest number of open streams; higher settings are lowered. Slots of streams have 16 bits.
const STREAMS_CEILING: u32 = 10_000;

/// Limits of a connection that a program may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limits of a request head; `head_bytes_max` is that of the header list, at 32 bytes a field. Beyond: 431.
    pub head: HeadLimits,
    /// Number of open streams. Beyond: REFUSED_STREAM. Default 100; usable 1 to 10,000.
    pub streams_max: u32,
    /// Number of streams begun in a turn. Beyond: REFUSED_STREAM. Default 200.
    pub streams_per_turn_max: u32,
    /// Content of a request that wasn't consumed, in bytes. Beyond: FLOW_CONTROL_ERROR. Default 65,536; usable
    /// 65,535 to 2^31 - 1.
    pub stream_window_bytes: u32,
    /// Content of all requests of a connection that wasn't consumed, in bytes. Beyond: FLOW_CONTROL_ERROR.
    /// Default 1 MiB; usable 65,535 to 2^31 - 1.
    pub connection_window_bytes: u32,
    /// Allows clients to send an extended CONNECT, for WebSockets (RFC 8441). Default true.
    pub extended_connect: bool,
    /// The connection has TLS. Requests of another scheme than its own have a target in absolute form. Default true.
    pub is_secured: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: HeadLimits::default(),
            streams_max: 100,
            streams_per_turn_max: 200,
            stream_window_bytes: 64 * 1024,
            connection_window_bytes: 1024 * 1024,
            extended_connect: true,
            is_secured: true,
        }
    }
}

impl Limits {
    /// Returns these limits, clamped to the usable ranges.
    pub(crate) fn usable(self) -> Self {
        let window = |bytes: u32| bytes.clamp(WINDOW_BYTES_FLOOR, WINDOW_BYTES_CEILING);
        Self {
            streams_max: self.streams_max.clamp(1, STREAMS_CEILING),
            streams_per_turn_max: self.streams_per_turn_max.max(1),
            stream_window_bytes: window(self.stream_window_bytes),
            connection_window_bytes: window(self.connection_window_bytes),
            ..self
        }
    }
}
