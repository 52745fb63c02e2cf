//! Handing bytes to the kernel by hand: as much as it takes, at most a share.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use super::sends::Sending;
use crate::ahead::Ahead;
use crate::limits::{COPIED_BYTES_WEIGHT, SEND_CALLS_PER_TURN_MAX, SEND_TAKEN_BYTES_MIN};
use crate::{FileSlice, Output, Piece, SendError, Token, Waker, socket};

/// Pieces of memory handed to the kernel by one call.
pub(crate) const GATHER_MAX: usize = 32;

/// Bytes of a file copied at once where the kernel won't send it itself.
const FILE_COPY_BYTES: usize = 64 * 1024;

/// Why pushing has come to an end before the output has.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The socket is full: the kernel says when to go on.
    Full,
    /// The turn's share of bytes or calls is used up.
    Share,
    /// What comes next is being fetched from a disk, while this is kept: [`Ahead`] says when to go on.
    Fetching(Arc<()>),
    /// It can't go on.
    Failed(SendError),
}

/// What a driver keeps for files that are sent.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) ahead: Ahead,
    /// For files that are copied; empty until the first.
    copy_buffer: Vec<u8>,
    /// Bytes that the push at hand has copied.
    copied_bytes: u64,
    /// Calls of the kernel that it has made.
    calls: usize,
}

impl Means {
    /// `waker` wakes the driver.
    pub(crate) fn new(waker: Waker) -> Self {
        Self { ahead: Ahead::new(waker), copy_buffer: Vec::new(), copied_bytes: 0, calls: 0 }
    }

    /// What copying has cost the turn beyond the bytes themselves.
    fn copying_cost(&self) -> u64 {
        self.copied_bytes * (COPIED_BYTES_WEIGHT - 1)
    }
}

/// What a push has come to.
pub(crate) struct Push {
    /// What of the turn's share it has used: bytes, copied ones by their weight.
    pub(crate) cost: u64,
    /// `Ok` where all of the send was handed over.
    pub(crate) end: Result<(), Stop>,
}

/// Hands the kernel as much of a connection's send as it takes, at most `share` bytes. What isn't in memory is fetched for `looks_for`; without
/// one it is sent all the same.
pub(crate) fn push(
    looks_for: Option<Token>,
    socket: impl AsFd,
    sending: &mut Sending,
    share: u64,
    means: &mut Means,
) -> Push {
    let before = sending.done;
    (means.copied_bytes, means.calls) = (0, 0);
    let end = push_share(looks_for, socket.as_fd(), sending, share, means);
    if matches!(end, Err(Stop::Full)) && sending.done >= SEND_TAKEN_BYTES_MIN {
        socket::hold_more(socket.as_fd());
    }
    Push { cost: sending.done - before + means.copying_cost(), end }
}

fn push_share(
    looks_for: Option<Token>,
    socket: BorrowedFd<'_>,
    sending: &mut Sending,
    share: u64,
    means: &mut Means,
) -> Result<(), Stop> {
    let until = sending.done + share;
    while means.calls < SEND_CALLS_PER_TURN_MAX {
        if sending.done == sending.output.len() {
            return Ok(());
        }
        let left = until.saturating_sub(sending.done + means.copying_cost());
        sending.done += push_once(looks_for, socket, &sending.output, sending.done, left, means)?;
    }
    if sending.done == sending.output.len() { Ok(()) } else { Err(Stop::Share) }
}

/// One call to the kernel with what stands at `offset`, at most `left` bytes of it. Gives the number of bytes taken.
fn push_once(
    looks_for: Option<Token>,
    socket: BorrowedFd<'_>,
    output: &Output,
    offset: u64,
    left: u64,
    means: &mut Means,
) -> Result<u64, Stop> {
    if left == 0 {
        return Err(Stop::Share);
    }
    means.calls += 1;
    if output.items().is_empty() {
        // Most answers: plain bytes. `offset` lies within them, or the caller had ended the send.
        return send_bytes(socket, at_most(&output.bytes()[offset as usize..], left), SendFlags::empty());
    }
    match output.piece_at(offset) {
        Some(Piece::File(mut slice)) => {
            let more = slice.len < output.len() - offset;
            let len = slice.len.min(left);
            let ends = len == slice.len;
            if let Some(wants) = looks_for.and_then(|token| means.ahead.fetch(token, &slice, len)) {
                return Err(Stop::Fetching(wants));
            }
            slice.len = len;
            let piece = FilePiece { slice: &slice, ends, more };
            send_file_piece(socket, piece, means)
        }
        _ => send_gathered(socket, output, offset, left),
    }
}

fn at_most(bytes: &[u8], left: u64) -> &[u8] {
    &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))]
}

/// Sends plain bytes by one call. Gives the number taken.
pub(crate) fn send_bytes(socket: BorrowedFd<'_>, bytes: &[u8], flags: SendFlags) -> Result<u64, Stop> {
    retry(|| send(socket, bytes, flags | socket::NO_SIGNAL))
}

/// Sends the pieces in memory from `offset` to the next file, held back for what follows them.
fn send_gathered(socket: BorrowedFd<'_>, output: &Output, offset: u64, left: u64) -> Result<u64, Stop> {
    let mut slices = [IoSlice::new(&[]); GATHER_MAX];
    let mut count = 0;
    let mut len = 0;
    for piece in output.pieces(offset).take(GATHER_MAX) {
        let Piece::Bytes(bytes) = piece else { break };
        let bytes = at_most(bytes, left - len);
        slices[count] = IoSlice::new(bytes);
        count += 1;
        len += bytes.len() as u64;
        if len == left {
            break;
        }
    }
    let more = if offset + len < output.len() { socket::MORE } else { SendFlags::empty() };
    let mut nothing = SendAncillaryBuffer::default();
    retry(|| sendmsg(socket, &slices[..count], &mut nothing, more | socket::NO_SIGNAL))
}

/// A piece of a file that is to be sent now.
#[derive(Clone, Copy)]
struct FilePiece<'a> {
    slice: &'a FileSlice,
    /// Whether nothing of the file follows it: then its last bytes are held back for a look (S10).
    ends: bool,
    /// Whether something else follows it.
    more: bool,
}

/// Sends a piece of a file: by the kernel alone, or where that isn't wanted or it declines by way of a buffer.
fn send_file_piece(socket: BorrowedFd<'_>, piece: FilePiece<'_>, means: &mut Means) -> Result<u64, Stop> {
    let slice = piece.slice;
    if !slice.file.is_lent() {
        return send_copied(socket, piece, means);
    }
    if piece.ends {
        look(slice, means)?;
    }
    let len = usize::try_from(slice.len).unwrap_or(usize::MAX);
    loop {
        return match socket::send_file(socket, &*slice.file, slice.offset, len) {
            Ok(0) => Err(Stop::Failed(SendError::FileShort)),
            Ok(count) => Ok(count as u64),
            Err(Errno::AGAIN) => Err(Stop::Full),
            Err(Errno::INTR) => continue,
            Err(errno @ (Errno::PIPE | Errno::CONNRESET)) => Err(broken(errno)),
            // Not for this file, or an error of either side: reading and sending tells which.
            Err(_) => send_copied(socket, piece, means),
        };
    }
}

/// Looks whether a file is the one that was promised still.
fn look(slice: &FileSlice, means: &mut Means) -> Result<(), Stop> {
    means.calls += 1;
    if slice.file.is_as_promised() { Ok(()) } else { Err(Stop::Failed(SendError::FileChanged)) }
}

/// Reads a piece of a file and sends what was read.
fn send_copied(socket: BorrowedFd<'_>, piece: FilePiece<'_>, means: &mut Means) -> Result<u64, Stop> {
    let FilePiece { slice, ends, more } = piece;
    let copy_buffer = &mut means.copy_buffer;
    copy_buffer.resize(FILE_COPY_BYTES, 0);
    let wanted = usize::try_from(slice.len).unwrap_or(usize::MAX).min(FILE_COPY_BYTES);
    let read = loop {
        match slice.file.read_at(&mut copy_buffer[..wanted], slice.offset) {
            Ok(0) => return Err(Stop::Failed(SendError::FileShort)),
            Ok(read) => break read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Stop::Failed(SendError::FileUnreadable(error))),
        }
    };
    means.calls += 1;
    let is_last = read as u64 == slice.len;
    if is_last && ends {
        look(slice, means)?;
    }
    let more = if more || !is_last { socket::MORE } else { SendFlags::empty() };
    let sent = send_bytes(socket, &means.copy_buffer[..read], more)?;
    means.copied_bytes += sent;
    Ok(sent)
}

/// Calls until no signal comes in between.
fn retry(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<u64, Stop> {
    loop {
        return match call() {
            Ok(count) => Ok(count as u64),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Err(Stop::Full),
            Err(errno) => Err(broken(errno)),
        };
    }
}

fn broken(errno: Errno) -> Stop {
    Stop::Failed(SendError::Broken(errno.into()))
}
