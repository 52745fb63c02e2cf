//! Recognises files that don't compress by a sample: the slow compressors take minutes to find that out.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::limits::{SAMPLE_PART_BYTES, SAMPLE_PARTS, SAMPLE_SAVED_PERCENT_MIN};

/// The level of Zstandard that samples are compressed at: some milliseconds for the largest.
const LEVEL: i32 = 3;

/// Returns false for a file of `len` bytes whose sample doesn't get smaller. Small files are not sampled: compressing them is quick.
///
/// # Errors
/// Where the file can't be read.
pub(crate) fn compresses(path: &Path, len: u64) -> io::Result<bool> {
    if len <= SAMPLE_PART_BYTES as u64 {
        return Ok(true);
    }
    let sample = match read(&File::open(path)?, len) {
        // It was cut meanwhile, so making a sibling of it fails.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
        sample => sample?,
    };
    let coded = zstd::bulk::compress(&sample, LEVEL)?;
    Ok(coded.len() * 100 <= sample.len() * (100 - SAMPLE_SAVED_PERCENT_MIN))
}

/// Reads the whole of a file of `len` bytes, or of a larger one parts that are spread evenly from its beginning to its end.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{SAMPLE_PART_BYTES, SAMPLE_PARTS, compresses};

    const WHOLE: usize = SAMPLE_PARTS * SAMPLE_PART_BYTES;

    /// Bytes that no coding makes smaller.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn parts_from_the_beginning_to_the_end_are_looked_at() {
        let path = std::env::temp_dir().join(format!("shearwater-sample-{}", std::process::id()));
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
        // Between two parts nobody looks.
        let len = 20 * WHOLE;
        let mut content = noise(len);
        content[SAMPLE_PART_BYTES..2 * SAMPLE_PART_BYTES].fill(b'x');
        fs::write(&path, content).expect("a file");
        assert!(!compresses(&path, len as u64).expect("it can be read"));
        fs::remove_file(&path).expect("it was made here");
    }

    #[test]
    fn what_can_not_be_told_is_left_to_the_compressors() {
        let path = std::env::temp_dir().join(format!("shearwater-sampled-{}", std::process::id()));
        fs::write(&path, noise(SAMPLE_PART_BYTES)).expect("a file");
        assert!(compresses(&path, SAMPLE_PART_BYTES as u64).expect("it can be read"), "it is small");
        assert!(compresses(&path, WHOLE as u64).expect("it can be read"), "it has become shorter");
        fs::remove_file(&path).expect("it was made here");
        assert!(compresses(&path, WHOLE as u64).is_err());
    }
}
