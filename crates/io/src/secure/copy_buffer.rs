//! Room for content that is copied before it is sealed.

use crate::limits::SEAL_ROUND_BYTES;

/// The distance that decides how fast some processors copy is one modulo this.
const PAGE_BYTES: usize = 4096;

/// Beginning of content, modulo [`PAGE_BYTES`].
///
/// AMD's processors copy long blocks (`rep movsb`) at a twentieth of their speed in one case. The target is then 1 to 15
/// bytes after the source, modulo 4 KiB. Neither copy of this content is such a case (decision 0027 has the figures):
///
/// - From the page cache, where content begins near the beginning of a page: this is half a page away.
/// - To a record, whose content the library puts 5 bytes (its header) after a multiple of 16: so is this.
const CONTENT_AT: usize = PAGE_BYTES / 2 + 5;

/// A buffer for one round, allocated at the first.
#[derive(Debug, Default)]
pub(super) struct CopyBuffer(Vec<u8>);

impl CopyBuffer {
    /// Returns the first `len` bytes of its content, `SEAL_ROUND_BYTES` at most.
    pub(super) fn content(&mut self, len: usize) -> &mut [u8] {
        if self.0.is_empty() {
            self.0 = vec![0; SEAL_ROUND_BYTES as usize + PAGE_BYTES];
        }
        let start = CONTENT_AT.wrapping_sub(self.0.as_ptr().addr()) % PAGE_BYTES;
        &mut self.0[start..start + len]
    }
}

#[cfg(test)]
mod tests {
    use super::{CONTENT_AT, CopyBuffer, PAGE_BYTES};
    use crate::limits::SEAL_ROUND_BYTES;

    #[test]
    fn content_is_where_copies_are_fast() {
        let mut buffers: [CopyBuffer; 8] = Default::default();
        for buffer in &mut buffers {
            let content = buffer.content(SEAL_ROUND_BYTES as usize);
            assert_eq!(content.as_ptr().addr() % PAGE_BYTES, CONTENT_AT);
            assert_eq!(content.len() as u64, SEAL_ROUND_BYTES);
        }
    }
}
