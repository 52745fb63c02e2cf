//! Content codings: names, levels, encoding and decoding.

use std::io::{self, BufRead, Read, Write};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// Content coding of precompressed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Brotli (RFC 7932): `NAME.br`.
    Br,
    /// Zstandard (RFC 8878): `NAME.zst`.
    Zstd,
    /// gzip (RFC 1952): `NAME.gz`.
    Gzip,
}

/// The largest window of Zstandard that clients must accept: 8 MiB (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;

/// Buffer size of the Brotli decoder in bytes.
const BUFFER_BYTES: usize = 4096;

/// Brotli's lowest level that writes the length of the content (`magic_number`).
const BR_LEVEL_MIN: u32 = 2;

/// Brotli's window for files up to its size, and for larger ones.
const BR_WINDOW_LOG: i32 = 22;
const BR_WINDOW_LOG_LARGE: i32 = 24;

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Br, Self::Zstd, Self::Gzip];

    /// Returns the name of the content coding.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the extension of a precompressed file.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Br => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// Returns the highest level, which is the default: a file is compressed once and sent often. Higher levels of Zstandard use windows
    /// that clients may reject.
    #[must_use]
    pub const fn level_max(self) -> u32 {
        match self {
            Self::Br => 11,
            Self::Zstd => 19,
            Self::Gzip => 9,
        }
    }

    /// Encodes the content of `source`, which has `len` bytes.
    pub(crate) fn encode(
        self,
        level: u32,
        source: &mut dyn Read,
        len: u64,
        sink: &mut dyn Write,
    ) -> io::Result<()> {
        match self {
            Self::Br => encode_br(level, source, len, sink),
            Self::Zstd => {
                let mut encoder = zstd::Encoder::new(sink, i32::try_from(level).unwrap_or(0))?;
                encoder.window_log(ZSTD_WINDOW_LOG)?;
                encoder.set_pledged_src_size(Some(len))?;
                io::copy(source, &mut encoder)?;
                encoder.finish().map(drop)
            }
            Self::Gzip => {
                let mut encoder = GzEncoder::new(sink, Compression::new(level));
                io::copy(source, &mut encoder)?;
                encoder.finish().map(drop)
            }
        }
    }
}

impl Format {
    /// Returns a reader that decodes `coded`. Bytes that are not in this coding are an error.
    pub(crate) fn decode<'a>(self, coded: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Br => Box::new(brotli::Decompressor::new(coded, BUFFER_BYTES)),
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(coded)?),
            Self::Gzip => Box::new(MultiGzDecoder::new(coded)),
        })
    }
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

    use super::Format;

    #[test]
    fn each_coding_states_the_length_of_its_content() {
        let path = std::env::temp_dir().join(format!("shearwater-format-{}", std::process::id()));
        for format in Format::ALL {
            for level in 0..=format.level_max() {
                for len in [1, 300, 5000, 70_000] {
                    let mut coded = Vec::new();
                    format
                        .encode(level, &mut &vec![7; len][..], len as u64, &mut coded)
                        .expect("it can be coded");
                    fs::write(&path, &coded).expect("a file");
                    let file = File::open(&path).expect("it was written");
                    let meta = Meta::of(&file).expect("its metadata");
                    let is_current = |len| is_current_sibling(&file, &meta, &Meta { len, ..meta });
                    let name = format.name();
                    assert!(is_current(len as u64), "{name} {level}: {len} bytes");
                    assert!(!is_current(len as u64 + 1), "{name} {level}: {len} bytes and one");
                }
            }
        }
        fs::remove_file(path).expect("it was made here");
    }

    #[test]
    fn decodes_what_it_encodes() {
        let text: Vec<u8> = (0..200_000u32).flat_map(|number| (number % 977).to_le_bytes()).collect();
        for format in Format::ALL {
            for level in [0, 1, format.level_max()] {
                for len in [0, 1, 5000, text.len()] {
                    let mut coded = Vec::new();
                    let plain = &text[..len];
                    format.encode(level, &mut &plain[..], len as u64, &mut coded).expect("it can be coded");
                    let mut decoded = Vec::new();
                    let read = format.decode(&coded[..]).and_then(|mut from| from.read_to_end(&mut decoded));
                    assert!(read.is_ok() && decoded == plain, "{format:?} {level} {len}");
                }
            }
        }
    }
}
