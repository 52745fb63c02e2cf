//! Recognizes files that don't compress, by extension and by a sample: compressing them at the highest level would take minutes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::limits::{SAMPLE_PART_BYTES, SAMPLE_PARTS, SAMPLE_SAVED_PERCENT_MIN};

/// Zstandard level for samples: some milliseconds for the largest.
const LEVEL: i32 = 3;

/// Returns `false` if a sample of a file of `len` bytes doesn't get smaller. Small files aren't sampled.
///
/// # Errors
/// The file can't be read.
pub(crate) fn compresses(path: &Path, len: u64) -> io::Result<bool> {
    if len <= SAMPLE_PART_BYTES as u64 {
        return Ok(true);
    }
    let sample = match read(&File::open(path)?, len) {
        // Truncated meanwhile: compressing it will report that.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
        sample => sample?,
    };
    let coded = zstd::bulk::compress(&sample, LEVEL)?;
    Ok(coded.len() * 100 <= sample.len() * (100 - SAMPLE_SAVED_PERCENT_MIN))
}

/// Reads a small file whole, or parts of a larger one at even distances.
fn read(file: &File, len: u64) -> io::Result<Vec<u8>> {
    let whole = usize::try_from(len).unwrap_or(usize::MAX);
    let mut sample = vec![0; whole.min(SAMPLE_PARTS * SAMPLE_PART_BYTES)];
    let step = len.saturating_sub(SAMPLE_PART_BYTES as u64) / (SAMPLE_PARTS as u64 - 1);
    if sample.len() == whole {
        file.read_exact_at(&mut sample, 0)?;
        return Ok(sample);
    }
    for (part, number) in sample.chunks_mut(SAMPLE_PART_BYTES).zip(0..) {
        file.read_exact_at(part, number * step)?;
    }
    Ok(sample)
}

/// Extensions of compressed formats, in lower case, sorted.
const PACKED: &[&str] = &[
    "7z", "aac", "apk", "apng", "avi", "avif", "br", "bz2", "cab", "crx", "deb", "docx", "epub", "flac",
    "gif", "gz", "heic", "heif", "jar", "jpeg", "jpg", "jxl", "lz", "lz4", "lzma", "m4a", "m4v", "mkv",
    "mov", "mp3", "mp4", "mpeg", "mpg", "odp", "ods", "odt", "oga", "ogg", "ogv", "opus", "png", "pptx",
    "rar", "rpm", "svgz", "tbz", "tgz", "txz", "weba", "webm", "webp", "whl", "woff", "woff2", "xlsx", "xpi",
    "xz", "zip", "zst",
];

/// Returns whether a file of this name has a compressed format.
pub(crate) fn is_packed(name: &[u8]) -> bool {
    let Some(dot) = name.iter().rposition(|&byte| byte == b'.') else { return false };
    let extension = name[dot + 1..].to_ascii_lowercase();
    PACKED.binary_search_by(|packed| packed.as_bytes().cmp(&extension)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use testkit::random;

    use super::{PACKED, SAMPLE_PART_BYTES, SAMPLE_PARTS, compresses, is_packed};

    const WHOLE: usize = SAMPLE_PARTS * SAMPLE_PART_BYTES;

    /// Returns incompressible bytes.
    fn noise(len: usize) -> Vec<u8> {
        random::bytes(&mut random::part(0x5eed, 0), len)
    }

    #[test]
    fn samples_parts_from_start_to_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sample");
        for len in [SAMPLE_PART_BYTES + 1, WHOLE, WHOLE + 1, 3 * WHOLE, 20 * WHOLE + 7] {
            let with_text_at = |at: usize| {
                let mut content = noise(len);
                content[at..at + SAMPLE_PART_BYTES].fill(b'x');
                fs::write(&path, content).expect("a file");
                compresses(&path, len as u64).expect("it can be read")
            };
            assert!(with_text_at(0) && with_text_at(len - SAMPLE_PART_BYTES), "{len} bytes");
            fs::write(&path, noise(len)).expect("a file");
            assert!(!compresses(&path, len as u64).expect("it can be read"), "{len} bytes");
        }
        // Between two parts nothing is sampled.
        let len = 20 * WHOLE;
        let mut content = noise(len);
        content[SAMPLE_PART_BYTES..2 * SAMPLE_PART_BYTES].fill(b'x');
        fs::write(&path, content).expect("a file");
        assert!(!compresses(&path, len as u64).expect("it can be read"));
    }

    #[test]
    fn accepts_small_and_truncated_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sample");
        fs::write(&path, noise(SAMPLE_PART_BYTES)).expect("a file");
        assert!(compresses(&path, SAMPLE_PART_BYTES as u64).expect("it can be read"), "it is small");
        assert!(compresses(&path, WHOLE as u64).expect("it can be read"), "it has become shorter");
        fs::remove_file(&path).expect("it was made here");
        assert!(compresses(&path, WHOLE as u64).is_err());
    }

    #[test]
    fn recognizes_compressed_formats_by_extension() {
        assert!(PACKED.is_sorted_by(|a, b| a < b));
        for name in ["a.png", "a.b.JPG", ".woff2", "x.tar.gz", "x.br", "x.zst"] {
            assert!(is_packed(name.as_bytes()), "{name}");
        }
        for name in ["png", "a.html", "a.", "", "a.svg", "a.pngx", "a.wasm"] {
            assert!(!is_packed(name.as_bytes()), "{name}");
        }
    }
}
