//! What a large sparse file holds: nothing but zeros, and some known blocks. Written once, compared as it comes back.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use super::random::Random;
use super::trouble::{During, Outcome};

/// The length of one known block, bytes.
const BLOCK: u64 = 4096;
/// A run of zeros to compare against.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// A sparse file: its length, and where the known blocks begin with their bytes, in order and apart from each other.
#[derive(Debug)]
pub(crate) struct SparseFile {
    length: u64,
    blocks: Vec<(u64, Vec<u8>)>,
}

impl SparseFile {
    /// A file of `length` bytes with known blocks at its start, its end, across 2^31 and at `more` places between.
    pub(crate) fn new(length: u64, more: u64, random: &mut Random) -> Self {
        let two_gib = 1 << 31;
        let mut starts: Vec<u64> = vec![0, two_gib - BLOCK / 2, length.saturating_sub(BLOCK)];
        starts.extend((0..more).map(|_| random.below(length.saturating_sub(BLOCK))));
        starts.retain(|start| start + BLOCK <= length);
        starts.sort_unstable();
        let mut free = 0;
        let mut blocks = Vec::new();
        for start in starts {
            if start >= free {
                blocks.push((start, random.bytes(BLOCK as usize)));
                free = start + BLOCK;
            }
        }
        Self { length, blocks }
    }

    /// Its length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// How many known blocks it has.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Writes it to `path`.
    pub(crate) fn write(&self, path: &Path) -> Outcome<()> {
        let write = || -> std::io::Result<()> {
            let mut file = File::create(path)?;
            file.set_len(self.length)?;
            for (start, bytes) in &self.blocks {
                file.seek(SeekFrom::Start(*start))?;
                file.write_all(bytes)?;
            }
            Ok(())
        };
        write().during("writing a sparse file")
    }

    /// True if `bytes` are what the file holds from `offset` on.
    pub(crate) fn matches(&self, offset: u64, bytes: &[u8]) -> bool {
        let mut offset = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (expected, length) = self.run_at(offset, rest.len());
            if length == 0 || expected[..length] != rest[..length] {
                return false;
            }
            offset += length as u64;
            rest = &rest[length..];
        }
        true
    }

    /// The bytes that are known from `offset` on, and how many of them count: at most `most`, 0 past the end.
    fn run_at(&self, offset: u64, most: usize) -> (&[u8], usize) {
        let next = self.blocks.partition_point(|(start, _)| start + BLOCK <= offset);
        let (expected, until): (&[u8], u64) = match self.blocks.get(next) {
            Some((start, bytes)) if *start <= offset => (&bytes[(offset - start) as usize..], start + BLOCK),
            Some((start, _)) => (&ZEROS, *start),
            None => (&ZEROS, self.length),
        };
        let known = usize::try_from(until.saturating_sub(offset)).unwrap_or(usize::MAX);
        (expected, known.min(most).min(expected.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::SparseFile;
    use crate::harness::random::Random;

    #[test]
    fn it_knows_its_bytes_and_its_end() {
        let file = SparseFile::new(100_000, 3, &mut Random::new(5));
        let mut bytes = vec![0; 100_000];
        for (start, block) in &file.blocks {
            bytes[*start as usize..*start as usize + block.len()].copy_from_slice(block);
        }
        for piece in [1, 999, 4096, 65_537] {
            let mut offset = 0;
            for part in bytes.chunks(piece) {
                assert!(file.matches(offset, part), "{piece} at {offset}");
                offset += part.len() as u64;
            }
        }
        assert!(!file.matches(99_999, &[bytes[99_999], 0]));
        bytes[50] ^= 1;
        assert!(!file.matches(0, &bytes));
    }
}
