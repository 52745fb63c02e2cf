//! Passes bytes to the kernel by hand, up to a share.

use std::io::IoSlice;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::{Errno, pread, retry_on_intr};
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use super::sends::Sending;
use super::{Flags, Pushed, Slot};
use crate::limits::{
    COPIED_BYTES_WEIGHT, CORKED_BYTES_MIN, SEND_ACCEPTED_BYTES_MIN, SEND_BYTES_PER_TURN_MAX, SEND_CALL_BYTES,
    SEND_QUANTUM_BYTES,
};
#[cfg(not(target_os = "linux"))]
use crate::not_linux::watches::Watches;
use crate::read_ahead::{Fetched, ReadAhead};
#[cfg(target_os = "linux")]
use crate::watches::Watches;
use crate::{FileSlice, Item, Output, Piece, SendError, Token, Waker, socket};

/// Slices of memory passed to the kernel by one call.
pub(crate) const GATHER_MAX: usize = 32;

/// System calls of one push: a quantum's worth.
const CALLS_MAX: u64 = SEND_QUANTUM_BYTES / SEND_CALL_BYTES;

/// Bytes of a file copied at once if the kernel can't send the file itself.
const FILE_COPY_BYTES: usize = 64 * 1024;

/// Reasons to stop before the output's end.
#[derive(Debug)]
pub(crate) enum PushStop {
    /// The socket is full: the kernel reports when it is writable.
    Full,
    /// The turn's share of bytes or calls is used up.
    Share,
    /// The next range is being fetched from disk while this handle is kept: [`ReadAhead`] reports its completion.
    Fetching(Arc<Fetched>),
    /// The send has failed.
    Failed(SendError),
}

/// A driver's shared state for pushing sends.
#[derive(Debug)]
pub(crate) struct PushContext {
    pub(crate) ahead: ReadAhead,
    watches: Watches,
    /// Buffer for copied files; empty until the first.
    copy_buffer: Vec<u8>,
    /// Bytes that the kernel has accepted since the start.
    pub(crate) taken_bytes: u64,
    /// Bytes that the present push has copied.
    copied_bytes: u64,
    /// System calls that the present push has made.
    calls: u64,
}

impl PushContext {
    /// `waker` wakes the driver.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            ahead: ReadAhead::new(waker),
            watches: Watches::default(),
            copy_buffer: Vec::new(),
            taken_bytes: 0,
            copied_bytes: 0,
            calls: 0,
        }
    }

    /// Returns the cost of the present push without its calls: `bytes`, with copied ones weighted by time.
    fn weigh(&self, bytes: u64) -> u64 {
        bytes + self.copied_bytes * (COPIED_BYTES_WEIGHT - 1)
    }
}

/// Result of a push.
pub(crate) struct Push {
    /// Used part of the turn's budget.
    pub(crate) cost: u64,
    /// `Ok` if all of the send was accepted.
    pub(crate) end: Result<(), PushStop>,
}

/// Passes as much of a connection's send as the kernel accepts, until it has cost `share`. Fetches uncached
/// ranges for `fetch_for`; without it, sends them regardless.
pub(crate) fn push(
    fetch_for: Option<Token>,
    socket: impl AsFd,
    sending: &mut Sending,
    share: u64,
    context: &mut PushContext,
) -> Push {
    let before = sending.done;
    (context.copied_bytes, context.calls) = (0, 0);
    if sending.done == 0 && is_corked(&sending.output) {
        sending.corked = socket::cork(socket.as_fd(), true);
    }
    // Before a long one's first byte: its client may act on the head while the push is in progress.
    if sending.done == 0 && (sending.output.len() > SEND_BYTES_PER_TURN_MAX || sending.output.is_continued())
    {
        guard_files(&sending.output, context);
    }
    let end = push_share(fetch_for, socket.as_fd(), sending, share, context);
    if matches!(end, Err(PushStop::Full | PushStop::Share | PushStop::Fetching(_))) {
        guard_files(&sending.output, context);
    }
    if sending.corked && matches!(end, Ok(()) | Err(PushStop::Failed(_))) {
        sending.corked = socket::cork(socket.as_fd(), false);
    }
    if matches!(end, Err(PushStop::Full)) && sending.done >= SEND_ACCEPTED_BYTES_MIN {
        socket::hold_more(socket.as_fd());
    }
    let taken = sending.done - before;
    context.taken_bytes += taken;
    Push { cost: context.weigh(taken).max(context.calls * SEND_CALL_BYTES), end }
}

/// Watches the files of a send that outlasts its first push.
fn guard_files(output: &Output, context: &mut PushContext) {
    for (_, item) in output.items() {
        if let Item::File(slice) = item {
            slice.file.guard(&mut context.watches);
        }
    }
}

/// Returns whether a send is worth full segments. The kernel takes a file in pieces, and an acknowledgement
/// between two of them flushes a partial segment: three times the cost for a MiB
/// (docs/decisions/0006-files.md).
fn is_corked(output: &Output) -> bool {
    output.len() >= CORKED_BYTES_MIN && output.has_file()
}

fn push_share(
    fetch_for: Option<Token>,
    socket: BorrowedFd<'_>,
    sending: &mut Sending,
    share: u64,
    context: &mut PushContext,
) -> Result<(), PushStop> {
    let before = sending.done;
    while sending.done < sending.output.len() {
        if context.calls >= CALLS_MAX {
            return Err(PushStop::Share);
        }
        let left = share.saturating_sub(context.weigh(sending.done - before));
        sending.done += push_once(fetch_for, socket, sending, left, context)?;
    }
    Ok(())
}

/// Makes one system call for what follows of an output, at most `left` bytes. Returns the number accepted.
fn push_once(
    fetch_for: Option<Token>,
    socket: BorrowedFd<'_>,
    sending: &Sending,
    left: u64,
    context: &mut PushContext,
) -> Result<u64, PushStop> {
    let (output, offset) = (&sending.output, sending.done);
    if left == 0 {
        return Err(PushStop::Share);
    }
    context.calls += 1;
    if output.items().is_empty() {
        // Most responses are plain bytes. `offset` is within them, or the caller had ended the send.
        return send_bytes(socket, at_most(&output.bytes()[offset as usize..], left), SendFlags::empty());
    }
    match output.piece_at(offset) {
        Some(Piece::File(mut slice)) => {
            let more = slice.len < output.len() - offset;
            let len = slice.len.min(left);
            let ends = len == slice.len;
            let kept = sending.wants.as_ref().and_then(|wants| wants.start_of(&slice));
            if kept.is_none()
                && let Some(wants) = fetch_for.and_then(|token| context.ahead.fetch(token, &slice, len))
            {
                return Err(PushStop::Fetching(wants));
            }
            slice.len = len;
            let piece = FilePiece { slice: &slice, ends, more };
            match kept {
                Some(Ok(bytes)) => send_read(socket, piece, at_most(bytes, len), context),
                Some(Err(errno)) => Err(PushStop::Failed(SendError::FileUnreadable(errno.into()))),
                None => send_file_piece(socket, piece, context),
            }
        }
        _ => send_gathered(socket, output, offset, left),
    }
}

fn at_most(bytes: &[u8], left: u64) -> &[u8] {
    &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))]
}

/// Sends plain bytes by one call. Returns the number accepted.
pub(crate) fn send_bytes(socket: BorrowedFd<'_>, bytes: &[u8], flags: SendFlags) -> Result<u64, PushStop> {
    retry(|| send(socket, bytes, flags | socket::NO_SIGNAL))
}

/// Sends the memory from `offset` to the next file, with `MSG_MORE` before a file.
fn send_gathered(socket: BorrowedFd<'_>, output: &Output, offset: u64, left: u64) -> Result<u64, PushStop> {
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

/// A range of a file to be sent now.
#[derive(Clone, Copy)]
struct FilePiece<'a> {
    slice: &'a FileSlice,
    /// True if it ends the file's slice: then its last bytes are held back for a version check (S10).
    ends: bool,
    /// True if more output follows it.
    more: bool,
}

/// Sends a range of a file: by the kernel alone, or through a buffer if the kernel declines.
fn send_file_piece(
    socket: BorrowedFd<'_>,
    piece: FilePiece<'_>,
    context: &mut PushContext,
) -> Result<u64, PushStop> {
    let slice = piece.slice;
    if !slice.file.is_lent() {
        return send_copied(socket, piece, context);
    }
    if piece.ends {
        check_version(slice, context)?;
    }
    let len = usize::try_from(slice.len).unwrap_or(usize::MAX);
    match retry_on_intr(|| socket::send_file(socket, &*slice.file, slice.offset, len)) {
        Ok(0) => Err(PushStop::Failed(SendError::FileShort)),
        Ok(count) => Ok(count as u64),
        Err(Errno::AGAIN) => Err(PushStop::Full),
        Err(errno @ (Errno::PIPE | Errno::CONNRESET)) => Err(broken(errno)),
        // Unsupported for this file, or an error of either side: reading and sending finds out which.
        Err(_) => send_copied(socket, piece, context),
    }
}

/// Checks that a file is still in the promised version.
fn check_version(slice: &FileSlice, context: &mut PushContext) -> Result<(), PushStop> {
    context.calls += 1;
    if slice.file.is_as_promised() { Ok(()) } else { Err(PushStop::Failed(SendError::FileChanged)) }
}

/// Reads a range of a file and sends what was read.
fn send_copied(
    socket: BorrowedFd<'_>,
    piece: FilePiece<'_>,
    context: &mut PushContext,
) -> Result<u64, PushStop> {
    let slice = piece.slice;
    let mut buffer = mem::take(&mut context.copy_buffer);
    buffer.resize(FILE_COPY_BYTES, 0);
    let wanted = usize::try_from(slice.len).unwrap_or(usize::MAX).min(FILE_COPY_BYTES);
    context.calls += 1;
    let sent = match retry_on_intr(|| pread(&*slice.file, &mut buffer[..wanted], slice.offset)) {
        Ok(read) => send_read(socket, piece, &buffer[..read], context),
        Err(errno) => Err(PushStop::Failed(SendError::FileUnreadable(errno.into()))),
    };
    context.copy_buffer = buffer;
    sent
}

/// Sends what was read of a range of a file.
fn send_read(
    socket: BorrowedFd<'_>,
    piece: FilePiece<'_>,
    bytes: &[u8],
    context: &mut PushContext,
) -> Result<u64, PushStop> {
    if bytes.is_empty() {
        return Err(PushStop::Failed(SendError::FileShort));
    }
    let is_last = bytes.len() as u64 == piece.slice.len;
    if is_last && piece.ends {
        check_version(piece.slice, context)?;
    }
    let more = if piece.more || !is_last { socket::MORE } else { SendFlags::empty() };
    let sent = send_bytes(socket, bytes, more)?;
    context.copied_bytes += sent;
    Ok(sent)
}

/// Repeats a call until no signal interrupts it.
fn retry(call: impl FnMut() -> Result<usize, Errno>) -> Result<u64, PushStop> {
    match retry_on_intr(call) {
        Ok(count) => Ok(count as u64),
        Err(Errno::AGAIN) => Err(PushStop::Full),
        Err(errno) => Err(broken(errno)),
    }
}

fn broken(errno: Errno) -> PushStop {
    PushStop::Failed(SendError::Broken(errno.into()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::unix::fs::FileExt;
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::net::sockopt::tcp_cork;

    use super::{CORKED_BYTES_MIN, Push, PushContext, PushStop, SEND_CALL_BYTES, Sending, push};
    use crate::limits::FETCH_KEPT_BYTES;
    use crate::{FileSlice, Item, Output, SharedFile, Token, Waker};

    /// Corked bytes would stay in the kernel for 200 ms after the file's end if it weren't uncorked.
    #[test]
    fn a_long_file_is_corked_until_its_end_and_a_shorter_one_never() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let mut peer = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        let (socket, _) = listener.accept().expect("it is there");
        socket.set_nonblocking(true).expect("it can");
        let file = crate::test_file(CORKED_BYTES_MIN);
        let shrinking = file.try_clone().expect("another descriptor");
        let file = Rc::new(SharedFile::new(file));
        let mut context = PushContext::new(Waker::new(|| {}));
        for (len, is_corked) in [(CORKED_BYTES_MIN, true), (CORKED_BYTES_MIN - 1, false)] {
            let mut output = Output::new();
            output.push(Item::File(FileSlice { file: Rc::clone(&file), offset: 0, len }));
            let mut sending = Sending::new(output, 0);
            let mut left = len;
            let mut scratch = vec![0; 64 * 1024];
            loop {
                let Push { end, .. } = push(None, &socket, &mut sending, 50_000, &mut context);
                assert!(matches!(end, Ok(()) | Err(PushStop::Share | PushStop::Full)), "{end:?}");
                let is_over = end.is_ok();
                assert_eq!(
                    tcp_cork(&socket).expect("the system reports it"),
                    is_corked && !is_over,
                    "{len}, {end:?}"
                );
                // The kernel may hold back less than a segment of what it has accepted: as much is left
                // unread.
                while left + sending.done > len + if is_over { 0 } else { 70_000 } {
                    let read = peer.read(&mut scratch).expect("it comes");
                    left -= read as u64;
                }
                if is_over {
                    break;
                }
            }
            assert_eq!(left, 0);
        }
        let mut output = Output::new();
        output.push(Item::File(FileSlice { file, offset: 0, len: CORKED_BYTES_MIN }));
        let mut sending = Sending::new(output, 0);
        shrinking.set_len(1000).expect("the file can be truncated");
        let Push { end, .. } = push(None, &socket, &mut sending, 50_000, &mut context);
        assert!(matches!(end, Err(PushStop::Failed(_))), "{end:?}");
        assert!(!tcp_cork(&socket).expect("the system reports it"), "the first part is sent");
    }

    /// The head's call costs more than its bytes, which must not split the file.
    #[test]
    fn sends_a_response_as_long_as_its_share_whole() {
        let (socket, _peer) = UnixStream::pair().expect("a pair");
        socket.set_nonblocking(true).expect("it can");
        let file = Rc::new(SharedFile::new(crate::test_file(20_000)));
        let mut output = Output::new();
        output.bytes_mut().extend_from_slice(b"head");
        output.push(Item::File(FileSlice { file, offset: 0, len: 20_000 }));
        let share = output.len();
        let mut context = PushContext::new(Waker::new(|| {}));
        let Push { cost, end } = push(None, &socket, &mut Sending::new(output, 0), share, &mut context);
        assert!(end.is_ok(), "{end:?}");
        assert_eq!(cost, 3 * SEND_CALL_BYTES, "of the head, of the version check and of the file");
    }

    /// Otherwise a server whose files aren't cached would be read twice, the second time while the worker waits.
    #[test]
    fn sends_what_was_read_of_a_file_on_a_server() {
        let (socket, mut peer) = UnixStream::pair().expect("a pair");
        let file = crate::test_file(FETCH_KEPT_BYTES + 1);
        let written = file.try_clone().expect("another descriptor");
        let file = Rc::new(SharedFile::new(file).remote());
        let mut output = Output::new();
        output.push(Item::File(FileSlice { file, offset: 0, len: FETCH_KEPT_BYTES + 1 }));
        let mut sending = Sending::new(output, 0);
        let (woken, wakes) = mpsc::sync_channel(2);
        let mut context = PushContext::new(Waker::new(move || woken.send(()).expect("the test waits")));
        let mut received = vec![0; FETCH_KEPT_BYTES as usize + 1];
        let mut left = &mut received[..];
        for (from, len) in [(0, FETCH_KEPT_BYTES), (FETCH_KEPT_BYTES, 1)] {
            let token = Some(Token::new(0, 0));
            written.write_all_at(b"a", from).expect("it can be written");
            let Push { end, .. } = push(token, &socket, &mut sending, u64::MAX, &mut context);
            let Err(PushStop::Fetching(wants)) = end else { panic!("{end:?} at {from}") };
            sending.wants = Some(wants);
            wakes.recv_timeout(Duration::from_secs(20)).expect("it was fetched");
            assert_eq!(sending.done, from);
            written.write_all_at(b"b", from).expect("it can be written");
            let Push { .. } = push(None, &socket, &mut sending, len, &mut context);
            assert_eq!(sending.done, from + len);
            let (part, rest) = left.split_at_mut(len as usize);
            peer.read_exact(part).expect("it comes");
            assert_eq!(part[0], b'a', "at {from}");
            left = rest;
        }
    }
}

/// Records the outcome of a push by hand in slot and send.
pub(super) fn pushed<X>(end: Result<(), PushStop>, slot: &mut Slot<X>, sending: &mut Sending) -> Pushed {
    match end {
        Ok(()) => sending.result = Some(Ok(())),
        Err(PushStop::Full) => return Pushed::Full,
        Err(PushStop::Fetching(wants)) => {
            sending.wants = Some(wants);
            slot.flags.set(Flags::FETCHING);
            return Pushed::Fetching;
        }
        Err(PushStop::Share) => {
            slot.flags.set(Flags::WRITABLE);
            return Pushed::Share;
        }
        Err(PushStop::Failed(error)) => {
            if matches!(error, SendError::Broken(_)) {
                slot.flags.set(Flags::BROKEN);
            }
            sending.result = Some(Err(error));
        }
    }
    Pushed::Ended(slot.send)
}
