//! The floor with io_uring: one enter per turn takes all that has come and submits all responses.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;

use crate::buffers::{BufferRing, GROUP};
use crate::response::{CARRIED_BYTES, ConstantResponse};

/// Submissions per enter; when they are full, one more enter makes room.
const SUBMISSIONS: u32 = 4096;
/// Pending completions: a burst of ten thousand accepts and their first requests.
const COMPLETIONS: u32 = 32_768;
/// Completions per turn, copied out so that their handling may submit.
const TURN_MAX: usize = 1024;

/// `MSG_NOSIGNAL | MSG_WAITALL`: no signal for a dead peer; the kernel itself continues after a short send.
const SEND_FLAGS: i32 = 0x4000 | 0x100;
/// `SOCK_CLOEXEC`; the accepted sockets may block, for the ring never does.
const ACCEPT_FLAGS: i32 = 0o2_000_000;

const ACCEPT: u64 = 1 << 32;
const RECEIVE: u64 = 2 << 32;
const SEND: u64 = 3 << 32;
const CLOSE: u64 = 4 << 32;
const KIND: u64 = 0xffff_ffff << 32;

#[derive(Clone, Default)]
struct UringConnection {
    owed_bytes: usize,
    /// One send at a time, where a send may be short: two would mix their bytes.
    sending: bool,
    /// Last bytes of the previous receive: a blank line may begin there.
    carried: [u8; CARRIED_BYTES],
}

struct UringWorker<'a> {
    ring: IoUring,
    buffers: BufferRing,
    response: &'a ConstantResponse,
    /// By descriptor number. Bounded by the process's limit of descriptors.
    connections: Vec<UringConnection>,
    window: Vec<u8>,
}

/// Serves until the kernel fails.
pub(crate) fn serve(listener: &OwnedFd, response: &ConstantResponse) -> io::Result<Infallible> {
    let mut builder = IoUring::builder();
    builder.setup_cqsize(COMPLETIONS).setup_single_issuer().setup_submit_all();
    // Completions run when we enter to wait, never in between: fewest interruptions, best batches.
    let ring = builder.setup_defer_taskrun().build(SUBMISSIONS)?;
    let buffers = BufferRing::register(&ring.submitter())?;
    let mut worker = UringWorker { ring, buffers, response, connections: Vec::new(), window: Vec::new() };
    worker.arm_accept(listener.as_raw_fd())?;
    let mut turn: Vec<(u64, i32, u32)> = Vec::with_capacity(TURN_MAX);
    loop {
        worker.enter()?;
        turn.clear();
        let completions = worker.ring.completion().take(TURN_MAX);
        turn.extend(completions.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
        for &(data, result, flags) in &turn {
            worker.completed(listener.as_raw_fd(), data, result, flags)?;
        }
        worker.buffers.publish();
    }
}

impl UringWorker<'_> {
    /// Submits and waits, in one system call.
    fn enter(&mut self) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // A signal; more completions than fit, of which we take some now.
                Some(Errno::INTR | Errno::BUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    fn completed(&mut self, listener: RawFd, data: u64, result: i32, flags: u32) -> io::Result<()> {
        let socket = (data & !KIND) as RawFd;
        match data & KIND {
            ACCEPT => {
                if !cqueue::more(flags) {
                    self.arm_accept(listener)?;
                }
                if result >= 0 { self.accepted(result) } else { Ok(()) }
            }
            RECEIVE => self.received(socket, result, flags),
            SEND => self.sent(socket, result),
            // Closes are silent unless they fail, and then there is nothing left to close.
            _ => Ok(()),
        }
    }

    fn accepted(&mut self, socket: RawFd) -> io::Result<()> {
        let number = socket as usize;
        if self.connections.len() <= number {
            self.connections.resize(number + 1, UringConnection::default());
        }
        self.connections[number] = UringConnection::default();
        self.arm_receive(socket)
    }

    fn received(&mut self, socket: RawFd, result: i32, flags: u32) -> io::Result<()> {
        let Some(buffer) = cqueue::buffer_select(flags) else {
            // Without a buffer: the end, an error, or no buffer left, which only asks for another try.
            let starved = result == -Errno::NOBUFS.raw_os_error();
            return if starved { self.arm_receive(socket) } else { self.close(socket) };
        };
        let length = usize::try_from(result).unwrap_or(0);
        let connection = &mut self.connections[socket as usize];
        if self.response.counts_blank_lines() {
            self.window.clear();
            self.window.extend_from_slice(&connection.carried);
            self.window.extend_from_slice(self.buffers.received(buffer, length));
            connection.carried.copy_from_slice(&self.window[length..]);
        }
        connection.owed_bytes += self.response.due_bytes(&self.window);
        self.buffers.offer(buffer);
        if length == 0 {
            return self.close(socket);
        }
        if !cqueue::more(flags) {
            self.arm_receive(socket)?;
        }
        self.send(socket)
    }

    fn send(&mut self, socket: RawFd) -> io::Result<()> {
        let connection = &mut self.connections[socket as usize];
        while connection.owed_bytes > 0 && !connection.sending {
            let piece = self.response.piece(connection.owed_bytes);
            let send =
                opcode::Send::new(Fd(socket), piece.as_ptr(), piece.len() as u32).flags(SEND_FLAGS).build();
            // A send that completes at once would end the enter's wait early: it posts no completion.
            let silent = self.response.is_small();
            let flags = if silent { Flags::SKIP_SUCCESS } else { Flags::empty() };
            connection.sending = !silent;
            connection.owed_bytes -= piece.len();
            push(&mut self.ring, &send.flags(flags).user_data(SEND | socket as u64))?;
        }
        Ok(())
    }

    fn sent(&mut self, socket: RawFd, result: i32) -> io::Result<()> {
        self.connections[socket as usize].sending = false;
        // After an error the receive that is armed ends too, and closes.
        if result > 0 { self.send(socket) } else { Ok(()) }
    }

    /// Closes through the ring, since sends of this turn still name the descriptor.
    fn close(&mut self, socket: RawFd) -> io::Result<()> {
        self.connections[socket as usize].owed_bytes = 0;
        let close = opcode::Close::new(Fd(socket)).build().flags(Flags::SKIP_SUCCESS);
        push(&mut self.ring, &close.user_data(CLOSE | socket as u64))
    }

    fn arm_accept(&mut self, listener: RawFd) -> io::Result<()> {
        let accept = opcode::AcceptMulti::new(Fd(listener)).flags(ACCEPT_FLAGS).build();
        push(&mut self.ring, &accept.user_data(ACCEPT))
    }

    /// Arms a multishot receive, once per connection.
    fn arm_receive(&mut self, socket: RawFd) -> io::Result<()> {
        let receive = opcode::RecvMulti::new(Fd(socket), GROUP).build();
        push(&mut self.ring, &receive.user_data(RECEIVE | socket as u64))
    }
}

#[expect(unsafe_code, reason = "a submission names memory and descriptors that must outlive it")]
fn push(ring: &mut IoUring, entry: &Entry) -> io::Result<()> {
    loop {
        // SAFETY: sends name the response's block, which is never freed; receives take registered buffers, never freed
        // either; a descriptor is closed by a later submission only.
        if unsafe { ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        ring.submit()?;
    }
}
