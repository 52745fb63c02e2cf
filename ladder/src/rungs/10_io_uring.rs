//! Rung 10, io_uring: one system call per turn hands over all receives and sends, and takes all results.

use std::array;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use io_uring::squeue::Entry;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use crate::rules::{Reply, Rules};
use crate::sys;
use crate::wire::{self, ACCEPT_PAUSE, HEAD_BYTES_MAX, IDLE_TIMEOUT, LINGER_BYTES_MAX, SWEEP_INTERVAL};

/// Operations that a turn may hand over before an extra system call; the queue of results is twice as long.
const OPERATIONS: u32 = 16_384;
/// Bytes per receive. Each connection has such a buffer, for the kernel may fill it at any time.
const RECEIVE_BYTES: usize = 16 * 1024;
/// Name of the accept operation; all others bear their connection's descriptor.
const ACCEPT: u64 = u64::MAX;

/// Serves whichever client is ready, on all cores.
pub(crate) fn serve(address: SocketAddr) -> io::Result<Infallible> {
    let cores = thread::available_parallelism()?.get();
    // The kernel spreads new connections over listeners that share a port.
    let listeners = (0..cores).map(|_| sys::listen_shared(address)).collect::<io::Result<Vec<_>>>()?;
    let run = |(core, listener)| thread::spawn(move || run(core, listener));
    let threads: Vec<_> = listeners.into_iter().enumerate().map(run).collect();
    threads.into_iter().find_map(|thread| thread.join().ok()).unwrap_or_else(|| Err(ErrorKind::Other.into()))
}

fn run(core: usize, listener: TcpListener) -> io::Result<Infallible> {
    sys::pin_to_core(core)?;
    let ring = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(OPERATIONS)?;
    let event_loop = EventLoop { ring, listener, connections: Vec::new(), responses: Responses::default() };
    // Never freed: the kernel may write to a connection's buffer as long as the process lives.
    Box::leak(Box::new(event_loop)).run()
}

struct EventLoop {
    ring: IoUring,
    listener: TcpListener,
    /// By descriptor number.
    connections: Vec<Option<Connection>>,
    responses: Responses,
}

impl EventLoop {
    fn run(&mut self) -> io::Result<Infallible> {
        let (mut results, mut swept) = (Vec::new(), Instant::now());
        let timeout = Timespec::from(SWEEP_INTERVAL);
        let wait = SubmitArgs::new().timespec(&timeout);
        self.push_accept()?;
        loop {
            match self.ring.submitter().submit_with_args(1, &wait).map_err(|error| error.raw_os_error()) {
                // The timeout, a signal, or more results than fit.
                Ok(_) | Err(Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {}
                Err(code) => return Err(io::Error::from_raw_os_error(code.unwrap_or_default())),
            }
            let now = Instant::now();
            self.responses.update();
            let completions = self.ring.completion();
            results.extend(completions.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
            for (name, result, flags) in results.drain(..) {
                match name {
                    ACCEPT => self.accepted(result, flags, now)?,
                    number => self.completed(number as usize, result, now)?,
                }
            }
            if now - swept >= SWEEP_INTERVAL {
                swept = now;
                let is_idle = |connection: &&Connection| now - connection.active > IDLE_TIMEOUT;
                for connection in self.connections.iter().flatten().filter(is_idle) {
                    // The operation in flight fails, and then the connection is closed.
                    drop(connection.stream.shutdown(Shutdown::Both));
                }
            }
        }
    }

    fn accepted(&mut self, result: i32, flags: u32, now: Instant) -> io::Result<()> {
        if result >= 0 {
            let connection = Connection::new(result, now);
            let number = result as usize;
            if self.connections.len() <= number {
                self.connections.resize_with(number + 1, || None);
            }
            let operation = self.connections[number].insert(connection).next_operation();
            self.push(operation, result as u64)?;
        } else {
            thread::sleep(ACCEPT_PAUSE);
        }
        // One operation accepts many connections, until an error.
        if cqueue::more(flags) { Ok(()) } else { self.push_accept() }
    }

    fn completed(&mut self, number: usize, result: i32, now: Instant) -> io::Result<()> {
        let Some(connection) = &mut self.connections[number] else { return Ok(()) };
        if connection.completed(result, &self.responses, now).is_ok() {
            let operation = connection.next_operation();
            return self.push(operation, number as u64);
        }
        self.connections[number] = None;
        Ok(())
    }

    fn push_accept(&mut self) -> io::Result<()> {
        let fd = Fd(self.listener.as_raw_fd());
        self.push(opcode::AcceptMulti::new(fd).flags(libc::SOCK_CLOEXEC).build(), ACCEPT)
    }

    /// Queues an operation for the next system call.
    #[expect(unsafe_code, reason = "the kernel uses a buffer that the compiler knows nothing of")]
    fn push(&mut self, operation: Entry, name: u64) -> io::Result<()> {
        let operation = operation.user_data(name);
        // SAFETY: a connection has one operation at a time; until it is complete nobody touches the connection's buffers,
        // and the connection isn't dropped.
        while unsafe { self.ring.submission().push(&operation) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}

struct Connection {
    stream: TcpStream,
    /// The kernel's while an operation receives.
    chunk: Vec<u8>,
    /// Received bytes, of which the first `used` are done with.
    input: Vec<u8>,
    used: usize,
    /// No head ends before this byte of the input.
    scanned: usize,
    /// Responses that are not sent yet. The kernel's while an operation sends.
    output: Vec<u8>,
    state: State,
    active: Instant,
}

enum State {
    /// Receiving a head.
    Head,
    /// Discarding a body; the response follows.
    Body(Reply),
    /// The last response is in the output.
    Last,
    /// Our side has ended; so many bytes are discarded at most.
    Linger(u64),
}

impl Connection {
    #[expect(unsafe_code, reason = "the ring returns plain numbers")]
    fn new(fd: RawFd, active: Instant) -> Self {
        // SAFETY: the ring has just accepted it, and nothing else owns it.
        let stream = unsafe { TcpStream::from_raw_fd(fd) };
        // A client that has already left is found by the first receive.
        drop(stream.set_nodelay(true));
        let (input, output, state) = (Vec::new(), Vec::new(), State::Head);
        Self { stream, chunk: vec![0; RECEIVE_BYTES], input, used: 0, scanned: 0, output, state, active }
    }

    /// Sends if there is something to send, else receives: never both at a time.
    fn next_operation(&mut self) -> Entry {
        let fd = Fd(self.stream.as_raw_fd());
        if self.output.is_empty() {
            opcode::Recv::new(fd, self.chunk.as_mut_ptr(), self.chunk.len() as u32).build()
        } else {
            let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
            opcode::Send::new(fd, self.output.as_ptr(), self.output.len() as u32).flags(flags).build()
        }
    }

    /// Takes the result of the operation in flight.
    fn completed(&mut self, result: i32, responses: &Responses, now: Instant) -> io::Result<()> {
        self.active = now;
        let length = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))?;
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if self.output.is_empty() {
            self.input.extend_from_slice(&self.chunk[..length]);
            self.process(responses)?;
        } else {
            self.output.drain(..length);
        }
        if self.output.is_empty() && matches!(self.state, State::Last) {
            // Unread input at a close would reset the connection and lose the response: end our side only.
            self.stream.shutdown(Shutdown::Write)?;
            self.state = State::Linger(LINGER_BYTES_MAX);
            self.process(responses)?;
        }
        Ok(())
    }

    /// Uses up the input; all responses go into the output.
    fn process(&mut self, responses: &Responses) -> io::Result<()> {
        self.take_requests(responses)?;
        self.input.drain(..self.used);
        self.scanned -= self.used;
        self.used = 0;
        Ok(())
    }

    fn take_requests(&mut self, responses: &Responses) -> io::Result<()> {
        loop {
            match &mut self.state {
                State::Head => {
                    let Some(length) = self.read_head() else { return Ok(()) };
                    let head = length.map(|length| &self.input[self.used..self.used + length]);
                    match head.and_then(parse) {
                        Ok(reply) => {
                            self.consume(length.unwrap_or_default());
                            if reply.expects_continue {
                                self.output.extend_from_slice(wire::CONTINUE);
                            }
                            self.state = State::Body(reply);
                        }
                        Err(status) => self.respond(responses, status, false, false),
                    }
                }
                State::Body(reply) => {
                    let present = reply.body_bytes.min((self.input.len() - self.used) as u64);
                    reply.body_bytes -= present;
                    let Reply { status, head_only, keep_alive, body_bytes, .. } = *reply;
                    self.consume(present as usize);
                    if body_bytes > 0 {
                        return Ok(());
                    }
                    self.respond(responses, status, head_only, keep_alive);
                }
                State::Last => return Ok(()),
                State::Linger(left) => {
                    let present = self.input.len() - self.used;
                    *left = left.checked_sub(present as u64).ok_or(ErrorKind::FileTooLarge)?;
                    self.consume(present);
                    return Ok(());
                }
            }
        }
    }

    /// Counts bytes of the input as used.
    fn consume(&mut self, length: usize) {
        self.used += length;
        self.scanned = self.used;
    }

    /// Returns the length of a complete head, or the status to refuse it with.
    fn read_head(&mut self) -> Option<Result<usize, u16>> {
        let end = self.input.len().min(self.used + HEAD_BYTES_MAX);
        let window = &self.input[self.scanned..end];
        if let Some(at) = window.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            return Some(Ok(self.scanned + at + 4 - self.used));
        }
        // The next bytes may complete an end that has begun.
        self.scanned = end.saturating_sub(3).max(self.used);
        (end - self.used == HEAD_BYTES_MAX).then_some(Err(431))
    }

    /// Appends a response to the output.
    fn respond(&mut self, responses: &Responses, status: u16, head_only: bool, keep_alive: bool) {
        self.state = if keep_alive { State::Head } else { State::Last };
        match status {
            200 | 404 => self.output.extend_from_slice(responses.get(status, head_only, keep_alive)),
            _ => self.output.extend(wire::encode(status, head_only, keep_alive).bytes()),
        }
    }
}

/// Responses to valid requests, encoded once a second.
#[derive(Default)]
struct Responses {
    unix_seconds: u64,
    encoded: [String; 8],
}

impl Responses {
    /// Encodes the responses again if the date has changed.
    fn update(&mut self) {
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if unix_seconds != self.unix_seconds {
            self.unix_seconds = unix_seconds;
            let encode = |bits: usize| wire::encode([200, 404][bits >> 2], bits & 2 != 0, bits & 1 != 0);
            self.encoded = array::from_fn(encode);
        }
    }

    fn get(&self, status: u16, head_only: bool, keep_alive: bool) -> &[u8] {
        let index = usize::from(status == 404) << 2 | usize::from(head_only) << 1 | usize::from(keep_alive);
        self.encoded[index].as_bytes()
    }
}

/// Reads a head once, without a list of its parts, and decides the response.
fn parse(head: &[u8]) -> Result<Reply, u16> {
    let text = str::from_utf8(head).map_err(|_| 400_u16)?;
    // An empty line before a request is skipped (RFC 9112, section 2.2).
    let text = text.strip_prefix("\r\n").unwrap_or(text);
    let mut lines = text.strip_suffix("\r\n\r\n").unwrap_or(text).split("\r\n");
    let mut words = lines.next().unwrap_or_default().splitn(3, ' ');
    let [Some(method), Some(target), Some(version)] = [(); 3].map(|()| words.next()) else { return Err(400) };
    let mut rules = Rules::new(method, target, version)?;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(400_u16)?;
        rules.header(name, value)?;
    }
    rules.reply()
}
