//! Seals content with as few copies as rustls allows: it wants contiguous content, and room that is initialised.

use std::io::IoSlice;

use rustls::unbuffered::{EncodeError, EncryptError, WriteTraffic};
use shearwater_io::secure::{Failure, RECORD_BYTES_MAX};

/// Bytes that a record adds to its content, at most: header, explicit nonce, content type and tag.
const RECORD_OVERHEAD: usize = 5 + 8 + 1 + 16;

/// Seals all of `plain`: long slices from where they are, short ones gathered into records.
pub(crate) fn seal<Data>(
    writer: &mut WriteTraffic<'_, Data>,
    plain: &[IoSlice<'_>],
    wire: &mut Vec<u8>,
) -> Result<(), Failure> {
    let mut left: usize = plain.iter().map(|slice| slice.len()).sum();
    wire.reserve(sealed_length(left));
    let mut slices = plain.iter().map(|slice| &**slice).filter(|slice| !slice.is_empty()).peekable();
    let mut current: &[u8] = &[];
    loop {
        if current.is_empty() {
            current = match slices.next() {
                Some(slice) => slice,
                None => return Ok(()),
            };
        }
        if slices.peek().is_none() {
            return seal_slice(writer, current, wire);
        }
        let (whole, rest) = current.split_at(current.len() - current.len() % RECORD_BYTES_MAX);
        if !whole.is_empty() {
            seal_slice(writer, whole, wire)?;
            left -= whole.len();
            current = rest;
            continue;
        }
        // A record of several slices. It is gathered after the room for the sealed one.
        let start = wire.len();
        let length = left.min(RECORD_BYTES_MAX);
        left -= length;
        wire.resize(start + sealed_length(length), 0);
        let room_end = wire.len();
        while wire.len() - room_end < length {
            if current.is_empty() {
                current = slices.next().unwrap_or_default();
            }
            let (part, rest) = current.split_at(current.len().min(length - (wire.len() - room_end)));
            wire.extend_from_slice(part);
            current = rest;
        }
        let (room, content) = wire.split_at_mut(room_end);
        match writer.encrypt(content, &mut room[start..]) {
            Ok(written) => wire.truncate(start + written),
            Err(EncryptError::InsufficientSize(_)) => {
                let content = wire.split_off(room_end);
                wire.truncate(start);
                seal_slice(writer, &content, wire)?;
            }
            Err(EncryptError::EncryptExhausted) => return Err(Failure::Other),
        }
    }
}

fn seal_slice<Data>(
    writer: &mut WriteTraffic<'_, Data>,
    plain: &[u8],
    wire: &mut Vec<u8>,
) -> Result<(), Failure> {
    append(wire, sealed_length(plain.len()), |out| writer.encrypt(plain, out))
}

const fn sealed_length(plain: usize) -> usize {
    plain + plain.div_ceil(RECORD_BYTES_MAX) * RECORD_OVERHEAD
}

/// Appends what `write` puts into a slice of at least `room` bytes; of more, if it asks for more.
pub(crate) fn append<E: Into<Shortage>>(
    wire: &mut Vec<u8>,
    mut room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<(), Failure> {
    let start = wire.len();
    loop {
        wire.resize(start + room, 0);
        let written = write(&mut wire[start..]).map_err(Into::into);
        wire.truncate(start + written.as_ref().copied().unwrap_or(0));
        match written {
            Ok(_) => return Ok(()),
            Err(Shortage(Some(needed))) if needed > room => room = needed,
            Err(_) => return Err(Failure::Other),
        }
    }
}

/// Size that was needed, if a lack of room is why nothing was written.
pub(crate) struct Shortage(Option<usize>);

impl From<EncodeError> for Shortage {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::InsufficientSize(size) => Self(Some(size.required_size)),
            EncodeError::AlreadyEncoded => Self(None),
        }
    }
}

impl From<EncryptError> for Shortage {
    fn from(error: EncryptError) -> Self {
        match error {
            EncryptError::InsufficientSize(size) => Self(Some(size.required_size)),
            EncryptError::EncryptExhausted => Self(None),
        }
    }
}
