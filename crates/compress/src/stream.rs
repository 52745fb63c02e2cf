//! Streams: each piece is encoded so that the client can decode it at once.

use std::fmt;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use shearwater_io::fs::Coding;
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::limits::STREAM_WINDOW_LOG;

/// Level of streams: they are encoded once for each client.
const LEVEL: u32 = 1;

/// Encodes a stream piece by piece.
pub struct StreamEncoder(Box<Inner>);

enum Inner {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(ZstdEncoder<'static, Vec<u8>>),
}

impl fmt::Debug for StreamEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamEncoder").finish_non_exhaustive()
    }
}

impl StreamEncoder {
    /// Codings of streams, by preference. Brotli isn't among them: it takes several MiB for each stream.
    pub const CODINGS: [Coding; 2] = [Coding::Zstd, Coding::Gzip];

    /// Memory of an encoder, in bytes, roughly.
    pub const HELD_BYTES: usize = 512 * 1024;

    /// Returns an encoder for one of [`CODINGS`](Self::CODINGS).
    ///
    /// # Errors
    /// If the memory for it can't be had, or the coding isn't one of them.
    pub fn new(coding: Coding) -> io::Result<Self> {
        Ok(Self(Box::new(match coding {
            Coding::Gzip => Inner::Gzip(GzEncoder::new(Vec::new(), Compression::new(LEVEL))),
            Coding::Zstd => {
                let mut encoder = ZstdEncoder::new(Vec::new(), LEVEL as i32)?;
                encoder.window_log(STREAM_WINDOW_LOG)?;
                Inner::Zstd(encoder)
            }
            Coding::Br => return Err(io::ErrorKind::Unsupported.into()),
        })))
    }

    /// Encodes and flushes a piece. Returns the encoded bytes.
    ///
    /// # Errors
    /// If the memory for it can't be had.
    pub fn encode(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        match &mut *self.0 {
            Inner::Gzip(encoder) => {
                encoder.write_all(piece)?;
                encoder.flush()?;
                Ok(std::mem::take(encoder.get_mut()))
            }
            Inner::Zstd(encoder) => {
                encoder.write_all(piece)?;
                encoder.flush()?;
                Ok(std::mem::take(encoder.get_mut()))
            }
        }
    }

    /// Ends the stream. Returns the rest of the encoded bytes.
    ///
    /// # Errors
    /// If the memory for it can't be had.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match *self.0 {
            Inner::Gzip(encoder) => encoder.finish(),
            Inner::Zstd(encoder) => encoder.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::StreamEncoder;
    use crate::coding::decode;

    #[test]
    fn each_piece_can_be_decoded_at_once() {
        for coding in StreamEncoder::CODINGS {
            let mut encoder = StreamEncoder::new(coding).expect("it is supported");
            let (mut coded, mut content) = (Vec::new(), Vec::new());
            for (number, len) in [(1_u8, 5), (2, 0), (3, 70_000), (4, 1), (5, 300_000)] {
                let piece = vec![number; len];
                coded.extend(encoder.encode(&piece).expect("memory"));
                content.extend(piece);
                let mut decoded = vec![0; content.len()];
                let mut from = decode(coding, &coded[..]).expect("a decoder");
                from.read_exact(&mut decoded).expect("all of it so far");
                assert!(decoded == content, "{coding:?}: piece {number}");
            }
            coded.extend(encoder.finish().expect("memory"));
            let mut decoded = Vec::new();
            decode(coding, &coded[..]).expect("a decoder").read_to_end(&mut decoded).expect("a whole stream");
            assert!(decoded == content && coded.len() < content.len() / 100, "{coding:?}");
        }
    }
}
