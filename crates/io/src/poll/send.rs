//! Sending: at once as far as the kernel takes it, the rest when it says that it takes more.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use super::slots::Flags;
use super::{Poll, socket};
use crate::{FileSlice, Output, Piece, SendError, Token};

/// Pieces of memory handed to the kernel by one call.
const GATHER_MAX: usize = 32;

/// Bytes of a file copied at once where the kernel won't send it itself.
const FILE_COPY_BYTES: usize = 64 * 1024;

/// Why pushing has come to an end.
enum Stop {
    /// The socket is full: an event says when to go on.
    Full,
    /// The turn's share of file bytes is used up.
    Share,
    Failed(SendError),
}

impl Poll {
    pub(super) fn start_send(&mut self, token: Token, output: Output) {
        let Some(slot) = self.slots.open_mut(token) else {
            debug_assert!(false, "send to {token:?}, which is not open");
            return;
        };
        assert!(self.sends.get(slot.send).is_none(), "a second send in flight on {token:?}");
        let send = self.sends.insert(output);
        slot.send = send;
        self.push(token);
        self.after_push(token, send);
    }

    /// Announces the end of a send that `push` has brought to one.
    fn after_push(&mut self, token: Token, send: u32) {
        let ended = self.sends.get(send).is_some_and(|sending| sending.result.is_some());
        let Some(slot) = self.slots.open_mut(token) else { return };
        if ended {
            self.queue.complete(token, send, &mut slot.flags);
        } else if slot.flags.has(Flags::WRITABLE) {
            self.queue.enqueue(token, &mut slot.flags);
        }
    }

    /// Goes on with the send of the connection that is being served; its index if that has ended it.
    pub(super) fn continue_send(&mut self, token: Token) -> Option<u32> {
        let slot = self.slots.open(token).filter(|slot| slot.flags.has(Flags::WRITABLE))?;
        let send = slot.send;
        if slot.turn_bytes_left(self.queue.turn) == 0 || self.queue.send_bytes_left == 0 {
            return None;
        }
        let sent = self.push(token);
        self.queue.send_bytes_left = self.queue.send_bytes_left.saturating_sub(sent);
        self.sends.get(send)?.result.is_some().then_some(send)
    }

    pub(super) fn progress(&self, token: Token) -> u64 {
        let sending = self.slots.open(token).and_then(|slot| self.sends.get(slot.send));
        sending.map_or(0, |sending| sending.done)
    }

    /// Hands the kernel as much as it takes within the turn's share, and keeps how it ended or why it goes on later.
    /// Gives the number of bytes.
    fn push(&mut self, token: Token) -> u64 {
        let turn = self.queue.turn;
        let Some(slot) = self.slots.open_mut(token) else { return 0 };
        let (Some(sending), Some(fd)) = (self.sends.get_mut(slot.send), slot.fd.as_ref()) else { return 0 };
        slot.flags.clear(Flags::WRITABLE);
        if sending.result.is_some() {
            return 0;
        }
        let before = sending.done;
        let until = before + slot.turn_bytes_left(turn);
        let end = loop {
            if sending.done >= sending.output.len() {
                break Ok(());
            }
            let left = until.saturating_sub(sending.done);
            match push_once(fd.as_fd(), &sending.output, sending.done, left, &mut self.copy_buffer) {
                Ok(count) => sending.done += count,
                Err(stop) => break Err(stop),
            }
        };
        let sent = sending.done - before;
        match end {
            Ok(()) => sending.result = Some(Ok(())),
            Err(Stop::Full) => {}
            Err(Stop::Share) => slot.flags.set(Flags::WRITABLE),
            Err(Stop::Failed(error)) => {
                if matches!(error, SendError::Broken(_)) {
                    slot.flags.set(Flags::BROKEN);
                }
                sending.result = Some(Err(error));
            }
        }
        slot.add_turn_bytes(turn, sent);
        sent
    }
}

/// One call to the kernel with what stands at `offset`, at most `left` bytes of it. Gives the number of bytes taken.
fn push_once(
    socket: BorrowedFd<'_>,
    output: &Output,
    offset: u64,
    left: u64,
    copy_buffer: &mut Vec<u8>,
) -> Result<u64, Stop> {
    if left == 0 {
        return Err(Stop::Share);
    }
    if output.items().is_empty() {
        // Most answers: plain bytes. `offset` lies within them, or the caller had ended the send.
        return send_bytes(socket, at_most(&output.bytes()[offset as usize..], left), SendFlags::empty());
    }
    match output.piece_at(offset) {
        Some(Piece::File(mut slice)) => {
            let more = slice.len < output.len() - offset;
            slice.len = slice.len.min(left);
            send_slice(socket, &slice, more, copy_buffer)
        }
        _ => send_gathered(socket, output, offset, left),
    }
}

fn at_most(bytes: &[u8], left: u64) -> &[u8] {
    &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))]
}

fn send_bytes(socket: BorrowedFd<'_>, bytes: &[u8], flags: SendFlags) -> Result<u64, Stop> {
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

/// Sends a piece of a file: by the kernel alone, or where it declines by way of a buffer.
fn send_slice(
    socket: BorrowedFd<'_>,
    slice: &FileSlice,
    more: bool,
    copy_buffer: &mut Vec<u8>,
) -> Result<u64, Stop> {
    let len = usize::try_from(slice.len).unwrap_or(usize::MAX);
    loop {
        return match socket::send_file(socket, &*slice.file, slice.offset, len) {
            Ok(0) => Err(Stop::Failed(SendError::FileShort)),
            Ok(count) => Ok(count as u64),
            Err(Errno::AGAIN) => Err(Stop::Full),
            Err(Errno::INTR) => continue,
            Err(errno @ (Errno::PIPE | Errno::CONNRESET)) => Err(broken(errno)),
            // Not for this file, or an error of either side: reading and sending tells which.
            Err(_) => send_copied(socket, slice, more, copy_buffer),
        };
    }
}

/// Reads a piece of a file and sends what was read.
fn send_copied(
    socket: BorrowedFd<'_>,
    slice: &FileSlice,
    more: bool,
    copy_buffer: &mut Vec<u8>,
) -> Result<u64, Stop> {
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
    let more = if more || (read as u64) < slice.len { socket::MORE } else { SendFlags::empty() };
    send_bytes(socket, &copy_buffer[..read], more)
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
