//! Room for content that is copied before it is sealed.

use crate::limits::SEAL_ROUND_BYTES;

/// The distance that decides how fast some processors copy is one modulo this.
const PAGE_BYTES: usize = 4096;

/// Beginning of content, modulo [`PAGE_BYTES`].
///
/// AMD's processors copy long blocks (`rep movsb`) at a twentieth of their speed if the target lies 1 to 15 bytes behind
/// the source, modulo 4 KiB. Such blocks come from the page cache, where they begin near a page's beginning: this is
/// half a page away. And they go to where a library puts the content of a record: 5 bytes (its header) behind a multiple
/// of 16, as here. Measured in decision 0027.
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
