//! A file's compressed siblings (`NAME.br`, `NAME.zst`, `NAME.gz`): codings, freshness.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::opened::Meta;

/// A content coding of precompressed files (RFC 9110 section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coding {
    /// Brotli (RFC 7932): `NAME.br`.
    Br,
    /// Zstandard (RFC 8878): `NAME.zst`.
    Zstd,
    /// gzip (RFC 1952): `NAME.gz`.
    Gzip,
}

impl Coding {
    /// All codings by default preference: Brotli compresses web pages best, then Zstandard.
    pub const ALL: [Self; 3] = [Self::Br, Self::Zstd, Self::Gzip];

    /// Returns the registered name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the extension of a sibling, with its dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Br => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

/// Bytes at the start of a sibling that state the content's length.
const START_BYTES: usize = 32;

/// Magic number of Zstandard.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns whether an open file can be a sibling of the present content of `source`. Server and `shearwater
/// precompress` decide by this alone.
///
/// Neither of its times may precede that of `source` ([`Meta::is_current_for`]), it must begin as its coding does, and it
/// must not state another length. The times don't reveal an outdated sibling after `chmod -R`, `chown -R` or a copy
/// touched it later than its file. The length reveals those, except for content of equal length and siblings that
/// state none.
///
/// gzip and Zstandard begin with a magic number. Brotli has none: the header of its first block must be valid and fit
/// the lengths of both files, which about one text in twenty does by accident.
///
/// gzip states the length (modulo 2³²) in its last bytes; Zstandard, if known, in the header of the first
/// frame; Brotli in a metadata block that `shearwater precompress` writes. Only one of several members or
/// frames is read, so a sibling of several isn't current.
#[must_use]
pub fn is_current_sibling(coding: Coding, sibling: &File, meta: &Meta, source: &Meta) -> bool {
    is_current_sibling_by(coding, meta, source, |bytes, offset| sibling.read_at(bytes, offset))
        .unwrap_or(false)
}

/// As [`is_current_sibling`], with a function that reads the sibling at an offset.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if `read_at` fails with it. A sibling that can't be read for another reason isn't one.
pub fn is_current_sibling_by(
    coding: Coding,
    meta: &Meta,
    source: &Meta,
    mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<bool> {
    if !meta.is_current_for(source) {
        return Ok(false);
    }
    match can_be_of(coding, &mut read_at, meta.len, source.len) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        can_be => Ok(can_be.unwrap_or(false)),
    }
}

/// Returns whether an open file of `coded_len` bytes begins as this coding does, for a content of `len` bytes.
///
/// # Errors
/// It can't be read.
pub fn is_coded(coding: Coding, sibling: &File, coded_len: u64, len: u64) -> io::Result<bool> {
    let mut start = [0; START_BYTES];
    let read = sibling.read_at(&mut start, 0)?;
    Ok(begins_as(coding, &start[..read], coded_len, len))
}

/// Reads bytes of a file at an offset.
type ReadAt<'a> = &'a mut dyn FnMut(&mut [u8], u64) -> io::Result<usize>;

/// Returns whether a file of `coded_len` bytes can be a content of `len` bytes in this coding.
fn can_be_of(coding: Coding, read_at: ReadAt<'_>, coded_len: u64, len: u64) -> io::Result<bool> {
    let mut start = [0; START_BYTES];
    let read = read_at(&mut start, 0)?;
    let start = &start[..read];
    if !begins_as(coding, start, coded_len, len) {
        return Ok(false);
    }
    Ok(match coding {
        Coding::Gzip => gzip_len(read_at, coded_len)?.is_none_or(|stated| stated == len as u32),
        Coding::Zstd => zstd_len(start).is_none_or(|stated| stated == len),
        Coding::Br => br_len(start).is_none_or(|stated| stated == len),
    })
}

fn begins_as(coding: Coding, start: &[u8], coded_len: u64, len: u64) -> bool {
    match coding {
        // RFC 1952 section 2.3.1: the only method is 8.
        Coding::Gzip => start.starts_with(&[0x1f, 0x8b, 8]),
        // RFC 8878 sections 3.1.1 and 3.1.2: a frame, or one to be skipped.
        Coding::Zstd => start.starts_with(&ZSTD) || matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]),
        Coding::Br => begins_as_br(start, coded_len, len).unwrap_or(false),
    }
}

/// Checks the window's size and the first block's header (RFC 7932 sections 9.1 and 9.2). `None` if it is truncated.
fn begins_as_br(start: &[u8], coded_len: u64, len: u64) -> Option<bool> {
    let mut at = 0;
    let mut take = |count: usize| {
        let bit = |place: usize| start.get(place / 8).map(|byte| u64::from(byte >> (place % 8) & 1));
        let value = (0..count).try_fold(0, |value, number| Some(value | bit(at + number)? << number));
        at += count;
        value
    };
    // Of the windows' sizes, only this one is reserved.
    if take(1)? == 1 && take(3)? == 0 && take(3)? == 1 {
        return Some(false);
    }
    let is_last = take(1)? == 1;
    if is_last && take(1)? == 1 {
        return Some(len == 0);
    }
    // Of a number, the highest digit isn't zero unless there is no shorter form.
    let is_shortest = |value: u64, digits: u64, bits: u64, least: u64| {
        digits <= least || value >> ((digits - 1) * bits) != 0
    };
    match take(2)? {
        // Metadata: a reserved bit, the number of its bytes.
        3 => {
            let (reserved, bytes) = (take(1)?, take(2)?);
            let skipped = take(8 * bytes as usize)?;
            Some(!is_last && reserved == 0 && is_shortest(skipped, bytes, 8, 1) && skipped < coded_len)
        }
        more => {
            let digits = 4 + more;
            let coded = take(4 * digits as usize)?;
            let is_plain = !is_last && take(1)? == 1;
            let fits = if is_last { coded + 1 == len } else { coded < len };
            Some(is_shortest(coded, digits, 4, 4) && fits && (!is_plain || coded + 1 < coded_len))
        }
    }
}

/// Reads `ISIZE` (RFC 1952 section 2.3.1).
fn gzip_len(read_at: ReadAt<'_>, coded_len: u64) -> io::Result<Option<u32>> {
    let Some(offset) = coded_len.checked_sub(4) else { return Ok(None) };
    let mut last = [0; 4];
    let read = read_at(&mut last, offset)?;
    Ok((read == last.len()).then(|| u32::from_le_bytes(last)))
}

/// Reads `Frame_Content_Size` (RFC 8878 section 3.1.1.1).
fn zstd_len(start: &[u8]) -> Option<u64> {
    let (&descriptor, rest) = start.strip_prefix(&ZSTD)?.split_first()?;
    let is_single_segment = descriptor & 0x20 != 0;
    let window_bytes = usize::from(!is_single_segment);
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let field = rest.get(window_bytes + dictionary_bytes..)?;
    match (descriptor >> 6, is_single_segment) {
        (0, false) => None,
        (0, true) => field.first().map(|&len| len.into()),
        (1, _) => field.first_chunk().map(|&len| u64::from(u16::from_le_bytes(len)) + 256),
        (2, _) => field.first_chunk().map(|&len| u32::from_le_bytes(len).into()),
        _ => field.first_chunk().map(|&len| u64::from_le_bytes(len)),
    }
}

/// Reads the metadata block (RFC 7932 section 9.2) that the `brotli` crate writes on request. It holds a
/// magic number, a version, and the length in groups of seven bits. Two or three bytes precede it: the
/// window's size and the block's header.
fn br_len(start: &[u8]) -> Option<u64> {
    let block = [2, 3].into_iter().find_map(|at| start.get(at..)?.strip_prefix(&[0xe1, 0x97, 0x80]))?;
    let (_version, groups) = block.split_first()?;
    let mut len = 0;
    for (number, group) in groups.iter().take(9).enumerate() {
        len |= u64::from(group & 0x7f) << (7 * number);
        if group & 0x80 == 0 {
            return Some(len);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;

    use super::{Coding, begins_as, can_be_of};

    #[test]
    fn reads_the_length_of_each_coding() {
        let path = std::env::temp_dir().join(format!("shearwater-stated-{}", std::process::id()));
        let gzip = |len: [u8; 4]| [&[0x1f, 0x8b, 8, 0, 0][..], &len].concat();
        let zstd = |header: &[u8]| [&[0x28, 0xb5, 0x2f, 0xfd], header].concat();
        let br = |start: &[u8], groups: &[u8]| [start, &[0xe1, 0x97, 0x80, 1], groups, b"rest"].concat();
        for (coded, stated) in [
            (gzip([1, 2, 3, 0]), Some(0x03_0201)),
            (gzip([0; 4]), Some(0)),
            (gzip([0; 4]), Some(1 << 32)),
            (vec![0x1f, 0x8b, 8], None),
            (zstd(&[0x20, 7, 0xff]), Some(7)),
            (zstd(&[0x60, 7, 1, 0xff]), Some(256 + 0x107)),
            (zstd(&[0xa0, 1, 2, 3, 4, 0xff]), Some(0x0403_0201)),
            (zstd(&[0xe0, 1, 2, 3, 4, 5, 6, 7, 8]), Some(0x0807_0605_0403_0201)),
            // With a window, and with dictionaries.
            (zstd(&[0x80, 0x58, 1, 0, 0, 0]), Some(1)),
            (zstd(&[0xa1, 9, 1, 0, 0, 0]), Some(1)),
            (zstd(&[0x83, 0x58, 9, 9, 9, 9, 1, 0, 0, 0]), Some(1)),
            // Not stated, truncated, or in a frame after a skippable one.
            (zstd(&[0, 0x58, 1, 2, 3]), None),
            (zstd(&[0xa0, 1, 2, 3]), None),
            (zstd(&[]), None),
            (vec![0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0], None),
            (br(&[0x2c, 3], &[0x7f]), Some(127)),
            (br(&[0x6b, 5, 0], &[0x80, 1]), Some(128)),
            (br(&[0x6b, 5, 0], &[0xff; 20]), None),
            (br(&[0x0c], &[1]), None),
        ] {
            fs::write(&path, &coded).expect("a file");
            let file = File::open(&path).expect("it was written");
            let coding = match coded[0] {
                0x1f => Coding::Gzip,
                0x28 | 0x50 => Coding::Zstd,
                _ => Coding::Br,
            };
            let can_be_of = |len| {
                let mut read_at = |bytes: &mut [u8], offset| file.read_at(bytes, offset);
                can_be_of(coding, &mut read_at, coded.len() as u64, len).expect("it can be read")
            };
            assert!(can_be_of(stated.unwrap_or(5)), "{coded:x?}");
            let other = stated.map_or(6, |len| len + 1);
            assert_eq!(can_be_of(other), stated.is_none(), "{coded:x?}");
        }
        fs::remove_file(path).expect("the file can be removed");
    }

    #[test]
    fn siblings_begin_as_their_coding_does() {
        let starts = [
            (Coding::Gzip, &[0x1f, 0x8b, 8, 0][..]),
            (Coding::Zstd, &[0x28, 0xb5, 0x2f, 0xfd, 0]),
            (Coding::Zstd, &[0x5f, 0x2a, 0x4d, 0x18, 4]),
            // An empty one; ten bytes as they are; compressed ones in the last block, and in another; metadata.
            (Coding::Br, &[0x0b, 4, 0x80, b'0']),
            (Coding::Br, &[0x8b, 4, 0x80, b'0']),
            (Coding::Br, &[0x1b, 9, 0, 0xf8]),
            (Coding::Br, &[0x0c]),
        ];
        for (of, start) in starts {
            for coding in Coding::ALL {
                let is_of = [10, 5].iter().any(|&len| begins_as(coding, start, 40, len));
                assert_eq!(is_of, coding == of, "{coding:?} {start:x?}");
            }
        }
        for text in
            ["", "<!DOCTYPE html>", "<html>", "{\"a\": 1}", "packed", "not found\n", "version 1", "hello"]
        {
            for coding in Coding::ALL {
                assert!(!begins_as(coding, text.as_bytes(), 40, 1_000), "{coding:?} {text}");
            }
        }
        // Cut off, another length, more plain bytes than the file has, the reserved window and bit.
        for (start, len) in [
            (&[0x1b][..], 10),
            (&[0x1b, 9, 0, 0xf8], 11),
            (&[0x8b, 0x7f, 0x80, b'0'], 256),
            (&[0x11, 0, 0, 0], 10),
            (&[0x1c], 10),
            (&[0x06], 10),
        ] {
            assert!(!begins_as(Coding::Br, start, 40, len), "{start:x?}");
        }
        assert!(begins_as(Coding::Br, &[0x06], 40, 0), "an empty content");
    }
}
