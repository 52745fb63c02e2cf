//! Content codings: levels, encoding and decoding.

use std::io::{self, BufRead, Read, Write};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use shearwater_io::fs::Coding;

/// The largest window of Zstandard that clients must accept: 8 MiB (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;

/// Buffer size of the Brotli decoder in bytes.
const BUFFER_BYTES: usize = 4096;

/// Brotli's lowest level that writes the length of the content (`magic_number`).
const BR_LEVEL_MIN: u32 = 2;

/// Brotli's window for files up to its size, and for larger ones.
const BR_WINDOW_LOG: i32 = 22;
const BR_WINDOW_LOG_LARGE: i32 = 24;

/// Returns a coding's highest level, which is the default: a file is compressed once and sent often. Higher levels of
/// Zstandard use windows that clients may reject.
#[must_use]
pub const fn level_max(coding: Coding) -> u32 {
    match coding {
        Coding::Br => 11,
        Coding::Zstd => 19,
        Coding::Gzip => 9,
    }
}

/// Encodes the content of `source`, which has `len` bytes, and states that length.
///
/// # Errors
/// Those of `source` and `sink`.
pub fn encode(
    coding: Coding,
    level: u32,
    source: &mut dyn Read,
    len: u64,
    sink: &mut dyn Write,
) -> io::Result<()> {
    match coding {
        Coding::Br => encode_br(level, source, len, sink),
        Coding::Zstd => {
            let mut encoder = zstd::Encoder::new(sink, i32::try_from(level).unwrap_or(0))?;
            encoder.window_log(ZSTD_WINDOW_LOG)?;
            encoder.set_pledged_src_size(Some(len))?;
            io::copy(source, &mut encoder)?;
            encoder.finish().map(drop)
        }
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(sink, Compression::new(level));
            io::copy(source, &mut encoder)?;
            encoder.finish().map(drop)
        }
    }
}

/// Returns the level for content that is encoded while a client waits, or for few of them: above it, each level costs more
/// time than bytes that it saves.
#[must_use]
pub const fn level_on_the_fly(coding: Coding) -> u32 {
    match coding {
        Coding::Br => 5,
        Coding::Zstd => 6,
        Coding::Gzip => 6,
    }
}

/// Encodes content in memory. The same content, coding and level always result in the same bytes.
///
/// # Errors
/// If the memory for it can't be had.
pub fn encode_bytes(coding: Coding, level: u32, mut content: &[u8]) -> io::Result<Vec<u8>> {
    let mut coded = Vec::with_capacity(content.len() / 2);
    let len = content.len();
    match coding {
        Coding::Br => {
            let params = BrotliEncoderParams {
                quality: i32::try_from(level).unwrap_or(0),
                lgwin: BR_WINDOW_LOG,
                size_hint: len,
                ..BrotliEncoderParams::default()
            };
            brotli::BrotliCompress(&mut content, &mut coded, &params)?;
        }
        Coding::Zstd | Coding::Gzip => encode(coding, level, &mut content, len as u64, &mut coded)?,
    }
    Ok(coded)
}

/// Returns a reader that decodes `coded`.
///
/// # Errors
/// If the decoder can't be made. Bytes that are not in this coding are an error of reading.
pub fn decode<'a>(coding: Coding, coded: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match coding {
        Coding::Br => Box::new(brotli::Decompressor::new(coded, BUFFER_BYTES)),
        Coding::Zstd => Box::new(zstd::Decoder::with_buffer(coded)?),
        Coding::Gzip => Box::new(MultiGzDecoder::new(coded)),
    })
}

fn encode_br(level: u32, mut source: &mut dyn Read, len: u64, mut sink: &mut dyn Write) -> io::Result<()> {
    let is_large = len > 1 << BR_WINDOW_LOG;
    let params = BrotliEncoderParams {
        quality: i32::try_from(level.max(BR_LEVEL_MIN)).unwrap_or(0),
        lgwin: if is_large { BR_WINDOW_LOG_LARGE } else { BR_WINDOW_LOG },
        size_hint: usize::try_from(len).unwrap_or(usize::MAX),
        // Writes the length before the content, as the other codings do: servers compare it with that of the file.
        magic_number: true,
        ..BrotliEncoderParams::default()
    };
    brotli::BrotliCompress(&mut source, &mut sink, &params).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use shearwater_io::fs::{Meta, is_current_sibling};

    use super::{Coding, decode, encode, level_max};

    #[test]
    fn encodes_and_states_the_length_of_the_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("coded");
        let text: Vec<u8> = (0..50_000_u32).flat_map(|number| (number % 977).to_le_bytes()).collect();
        for coding in Coding::ALL {
            for level in 0..=level_max(coding) {
                for len in [0, 1, 300, 5000, 70_000] {
                    let case = format!("{} {level}: {len} bytes", coding.name());
                    let (plain, mut coded, mut decoded) = (&text[..len], Vec::new(), Vec::new());
                    encode(coding, level, &mut &plain[..], len as u64, &mut coded).expect(&case);
                    let read = decode(coding, &coded[..]).and_then(|mut from| from.read_to_end(&mut decoded));
                    assert!(read.is_ok() && decoded == plain, "{case}");
                    fs::write(&path, &coded).expect("a file");
                    let file = File::open(&path).expect("it was written");
                    let meta = Meta::of(&file).expect("its metadata");
                    let is_current = |len| is_current_sibling(coding, &file, &meta, &Meta { len, ..meta });
                    assert!(is_current(len as u64) && (len == 0 || !is_current(len as u64 + 1)), "{case}");
                }
            }
        }
    }
}
