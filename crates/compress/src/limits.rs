//! Limits of compression on the fly, each with a line in `docs/limits.md`.

/// Least length of content that is compressed, in bytes: shorter content fits a packet or two anyway.
pub const CONTENT_BYTES_MIN: usize = 1024;

/// Window of streams in Zstandard, as a power of two: 128 KiB, because each open stream has one.
pub const STREAM_WINDOW_LOG: u32 = 17;
