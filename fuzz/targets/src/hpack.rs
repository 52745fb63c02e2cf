//! Header blocks: each of them is a request of one connection, so that later ones use what earlier ones inserted.

use crate::http2;

/// Bytes before the blocks of an input: the stage.
const STAGE_BYTES: usize = 8;
const HEADERS: u8 = 1;
/// `END_STREAM` and `END_HEADERS`.
const WHOLE: u8 = 5;

/// Receives the blocks in `input`, after the stage, each after its length in a byte.
pub fn run(input: &[u8]) {
    let Some((stage, mut rest)) = input.split_at_checked(STAGE_BYTES) else { return };
    let (mut frames, mut stream) = (stage.to_vec(), 1_u32);
    while let Some((&len, after)) = rest.split_first() {
        let (block, after) = after.split_at(after.len().min(len.into()));
        frames.extend([0, 0, block.len() as u8, HEADERS, WHOLE]);
        frames.extend(stream.to_be_bytes());
        frames.extend_from_slice(block);
        (rest, stream) = (after, stream + 2);
    }
    http2::run(&frames);
}
