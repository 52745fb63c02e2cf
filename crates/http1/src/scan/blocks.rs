//! Thirty-two bytes at a time, written so that the compiler turns each step into a few vector instructions of the target's
//! baseline: what a long value costs is decided here.

const BLOCK: usize = 32;

/// The length of the leading blocks that have no control byte other than HTAB.
#[inline]
pub(super) fn clean_len(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    blocks.iter().take_while(|block| !has_control(block)).count() * BLOCK
}

#[inline]
fn has_control(block: &[u8; BLOCK]) -> bool {
    block.iter().fold(false, |found, &byte| found | is_control(byte))
}

#[inline]
fn is_control(byte: u8) -> bool {
    ((byte < b' ') & (byte != b'\t')) | (byte == 0x7F)
}
