//! Every bound of a worker, by name, with its default. `docs/limits.md` says what happens at each.

use shearwater_http1::{BodyLimits, HeadLimits};
use shearwater_io::os;

/// Times one connection's pipelined requests may be answered before others get their turn.
pub const REQUESTS_PER_TURN_MAX: usize = 64;

/// Deadlines that a turn may act on in any case, before events get their turn again. Each may cost a last response and a close: some 25 µs.
pub const EXPIRIES_PER_TURN_MIN: usize = 2;

/// Events of a turn for each deadline that it may act on: deadlines take a small part of its time.
pub const EVENTS_PER_EXPIRY: usize = 16;

/// Deadlines that a turn may act on for its events.
pub const EXPIRIES_PER_TURN_MAX: usize = 64;

/// Deadlines that a turn may act on besides for each connection that it accepts, so that as many end as arrive. A client that sends half a
/// head needs two, for the `408` and the end of the linger; so does one that reads too slowly.
pub const EXPIRIES_PER_ARRIVAL: usize = 2;

/// Connections whose client is gone that are let go of in one turn, before events get their turn again: likewise.
pub const ENDS_PER_TURN_MAX: usize = 2;

/// Places for such connections that are kept when none is left; those of a busier moment are freed.
pub const ENDS_KEPT_MAX: usize = 64;

/// Shared blocks up to this size are copied behind the head; larger ones are sent from where they are.
pub const COPIED_BYTES_MAX: usize = 16 * 1024;

/// Pieces of files and shared blocks in one output: behind so many the connection's further pipelined requests wait.
pub const OUTPUT_ITEMS_MAX: usize = 16;

/// Different files in one output: with so many the connection's further pipelined requests wait. Each is a descriptor that a client
/// holds who doesn't take its answers.
pub const OUTPUT_FILES_MAX: usize = 2;

/// Answers with files that stay open for a moment, for other requests.
pub const LASTING_ANSWERS_MAX: usize = 16;

/// How long that is, from the end of the turn of the first of them on, in milliseconds. A file that was changed a moment ago stays open for its
/// turn alone.
pub const LASTING_MS_MAX: u64 = 50;

/// Spare blocks (state of an unfinished request) that a worker keeps for the next.
pub const SPARE_BLOCKS_MAX: usize = 64;

/// Spare outputs that a worker keeps for the next answers.
pub const SPARE_OUTPUTS_MAX: usize = 64;

/// Memory that a spare output may keep: a turn's answers to one connection, at the default `output_bytes_max`.
pub const SPARE_OUTPUT_BYTES_MAX: usize = 128 * 1024;

/// Memory that all spare outputs of a worker may keep.
pub const SPARE_OUTPUTS_BYTES_MAX: usize = 1024 * 1024;

/// Memory that a worker keeps for building responses; what a larger one took is freed at the end of its turn.
pub const SPARE_RESPONSE_BYTES_MAX: usize = 1024 * 1024;

/// Memory that a spare buffer may keep; what gets larger lies in pages of its own.
pub const SPARE_BUFFER_BYTES_MAX: usize = 16 * 1024;

/// Memory in such pages that a worker keeps for the next large buffers.
pub const SPARE_PAGES_BYTES_MAX: usize = 1024 * 1024;

/// Memory in such pages that a worker gives back to the system in one turn: the kernel takes about a microsecond for 16 KiB.
pub const RELEASED_BYTES_PER_TURN_MAX: usize = 128 * 1024;

/// Milliseconds without an event of its driver after which a worker gives back the memory of a busier moment: what it keeps for the next requests, its driver's
/// and its allocator's.
pub const REST_AFTER_MS: u64 = 1000;

/// Events since the last time below which it isn't worth to wake up for that.
pub const REST_EVENTS_MIN: usize = 64;

/// How long accepting waits after the descriptors ran out, unless a connection closes first.
pub const ACCEPT_RETRY_MS: u64 = 1000;

/// Connections that the acceptor has handed to a worker and that the worker has not yet taken; beyond, the next worker gets them. A
/// dozen batches: a worker takes 16 in a turn.
pub const INBOX_MAX: usize = 256;

/// How long a send goes on before its pace is measured: so that a short one costs no look.
pub const WRITE_LOOK_MS: u64 = 5000;

/// Milliseconds for which a connection lingers while draining. If its client still sends, or hasn't acknowledged the last response,
/// [`Timeouts::linger_ms`] follows.
pub const DRAIN_LINGER_MS: u64 = 500;

/// Notices to the operator that may wait unread; further ones are counted and dropped.
pub const NOTICES_MAX: usize = 64;

/// Milliseconds between two reports of the same kind of fault that clients can provoke: panics of one place, files with one error,
/// responses built wrongly.
pub const REPORT_EVERY_MS: u64 = 1000;

/// Kinds of faults that a worker reports within that time; further ones are only counted.
pub const REPORT_KINDS_MAX: usize = 32;

/// Bytes of a request's name, and of a message, in a report; the rest is left out.
pub const REPORT_BYTES_MAX: usize = 512;

/// Bytes of a body that wait for the handler that takes it; no more are received until it has taken them. One receive may go beyond.
pub const CALL_INPUT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of an answer that wait to be sent while its handler makes them: then it has to wait. One piece may go beyond.
pub const CALL_OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Addresses of peers that a worker caches, 40 bytes each. Connections in the first so many slots never share an entry.
pub const PEERS_KEPT_MAX: usize = 4096;

/// State of requests that were answered later, kept by a worker for the next.
pub const SPARE_CALLS_MAX: usize = 64;

/// Memory of a connection below which it isn't evicted: a block and a few fields. Most have less.
pub const EVICTED_BYTES_MIN: usize = 4096;

/// The divisor of the memory there is: one part in so many is for unfinished requests by default, all workers together.
pub const BUFFERED_MEMORY_PART: u64 = 4;

/// Address space that is left for the rest of the program, and as much again for each worker, where it is limited: stacks, and what allocators
/// reserve for a thread.
pub const RESERVED_ADDRESSES_BYTES: u64 = 128 * 1024 * 1024;

/// The most that is for each worker by default, in bytes, however much memory there is.
pub const BUFFERED_BYTES_DEFAULT_MAX: usize = 256 * 1024 * 1024;

/// The least that is for each worker by default, in bytes: 16 of the largest heads.
pub const BUFFERED_BYTES_DEFAULT_MIN: usize = 1024 * 1024;

/// How long the watchdog sleeps at most while all workers sleep.
pub const WATCHDOG_SLEEP_MS: u64 = 5000;

/// How often the operator is told at most that a worker was kept by a handler.
pub const BLOCKED_TOLD_EVERY_MS: u64 = 60_000;

/// What a worker holds back from its clients. Sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size of a request's head; `431` beyond. Default 64 KiB.
    pub head_bytes_max: usize,
    /// Length of the request target; `414` beyond. Default 8 KiB.
    pub target_bytes_max: usize,
    /// Number of fields in a head; `431` beyond. Default 100.
    pub fields_max: usize,
    /// Size of a body, whatever becomes of it; `413` beyond. Default 10 MiB.
    pub body_bytes_max: u64,
    /// Memory that a worker holds for unfinished and deferred requests, in bytes; beyond it the connection that holds most is refused with
    /// `503`. Default: a quarter of the memory there is, divided among the workers, at most 256 MiB
    /// ([`Limits::buffered_bytes`]). `usize::MAX` stands for that.
    pub buffered_bytes_max: usize,
    /// Requests of a worker that are being answered later ([`Response::later`](crate::Response::later)) at once, and what goes on behind
    /// answers; `503` beyond. Default 65,536.
    pub calls_max: usize,
    /// Connections that a worker holds; beyond, new ones wait in the kernel's queue. Default: as many as descriptors.
    pub connections_max: usize,
    /// Connections that one address may hold, all workers together; beyond, a new one is reset. Default 0: no bound,
    /// because many people share an address behind a proxy or a NAT.
    pub connections_per_address_max: u32,
    /// Requests answered on one connection; the last answer says `Connection: close`. Default 0: no bound, because nothing that a
    /// connection owns here grows with its requests.
    pub requests_per_connection_max: u32,
    /// Pace at which a body has to arrive, in bytes of its content per second: each adds to the time that it has, which begins with
    /// [`Timeouts::body_grace_ms`] and is never more than [`Timeouts::body_ms`]. Default 240; 0: no bound. `408` beyond.
    pub body_bytes_per_second_min: u32,
    /// Pace at which a client has to take what it is sent, in bytes per second, on an average of [`Timeouts::write_ms`]. What its
    /// system has acknowledged counts, where this one tells (Linux), else what this one has taken for it. Default 240; 0: some progress
    /// is enough. Reset beyond.
    pub send_bytes_per_second_min: u32,
    /// Bytes of answers gathered for one connection before they are sent. Default 64 KiB.
    pub output_bytes_max: u64,
    /// Bytes asked of the kernel by one receive. Default 64 KiB.
    pub receive_bytes: usize,
    /// Bytes read and thrown away after a last answer, so that it arrives; then the connection is reset. Default 64 MiB.
    pub linger_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 64 * 1024,
            target_bytes_max: 8 * 1024,
            fields_max: 100,
            body_bytes_max: 10 * 1024 * 1024,
            buffered_bytes_max: usize::MAX,
            calls_max: 65_536,
            connections_max: usize::MAX,
            connections_per_address_max: 0,
            requests_per_connection_max: 0,
            body_bytes_per_second_min: 240,
            send_bytes_per_second_min: 240,
            output_bytes_max: 64 * 1024,
            receive_bytes: shearwater_io::limits::RECV_BUFFER_BYTES,
            linger_bytes_max: 64 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// These limits, with what would stop all service moved to the least that doesn't.
    pub(crate) fn usable(self) -> Self {
        Self {
            output_bytes_max: self.output_bytes_max.max(1),
            buffered_bytes_max: match self.buffered_bytes_max {
                usize::MAX => BUFFERED_BYTES_DEFAULT_MAX,
                bytes => bytes,
            },
            ..self
        }
    }

    /// Returns the effective [`Limits::buffered_bytes_max`] for each of so many workers on this system; 0: one for each core. Memory is what the
    /// machine has, or less where control groups, `RLIMIT_AS` or `RLIMIT_DATA` allow less. Where the system tells nothing of that, it is 256 MiB.
    #[must_use]
    pub fn buffered_bytes(&self, workers: usize) -> usize {
        let workers = if workers == 0 { os::cores().len() } else { workers };
        match self.buffered_bytes_max {
            usize::MAX => default_buffered_bytes(os::memory_max(), os::mappable(), workers),
            bytes => bytes,
        }
    }

    pub(crate) fn head(&self) -> HeadLimits {
        HeadLimits {
            head_bytes_max: self.head_bytes_max,
            target_bytes_max: self.target_bytes_max,
            fields_max: self.fields_max,
        }
    }

    pub(crate) fn body(&self) -> BodyLimits {
        BodyLimits::default()
    }

    /// Bytes that a client has to take within `write_ms`.
    pub(crate) fn send_bytes_min(&self, write_ms: u64) -> u64 {
        u64::from(self.send_bytes_per_second_min).saturating_mul(write_ms) / 1000
    }
}

/// How long a worker waits, in milliseconds. Timers fire up to 256 ms late, those of idle, writing
/// and lingering connections up to 1.3 s; more where a turn takes longer than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From accept to the end of the first head. Nothing received: closed in silence; a part of a head: `408`. Default 10 s.
    pub first_head_ms: u64,
    /// From the first byte of a later head to its end; `408`. Default 10 s.
    pub head_ms: u64,
    /// Between two pieces of a body; `408`. Default 30 s.
    pub body_ms: u64,
    /// What a body has from the end of its head on before its pace counts ([`Limits::body_bytes_per_second_min`]); `408`. Default
    /// 10 s.
    pub body_grace_ms: u64,
    /// Between two requests of a connection; closed in silence. Default 60 s.
    pub idle_ms: u64,
    /// In which a client that is being sent to has to take so much ([`Limits::send_bytes_per_second_min`]), measured from
    /// [`WRITE_LOOK_MS`] on and then each time anew; reset. Default 60 s: a client with a large receive buffer tells of what it has read seldom.
    pub write_ms: u64,
    /// For the client to end its side after a last answer. Default 10 s.
    pub linger_ms: u64,
    /// From a client's FIN while a handler is at work on its request, and anew from each send, until the handler is dropped and the
    /// connection closed: the client may be half-closed and wait, or be gone. Default 30 s.
    pub half_closed_ms: u64,
    /// While draining: for a connection that is between requests to send one more. Default 500 ms.
    pub drain_idle_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_head_ms: 10_000,
            head_ms: 10_000,
            body_ms: 30_000,
            body_grace_ms: 10_000,
            idle_ms: 60_000,
            write_ms: 60_000,
            linger_ms: 10_000,
            half_closed_ms: 30_000,
            drain_idle_ms: 500,
        }
    }
}

/// Returns a worker's part of the memory that unfinished requests may take by default.
fn default_buffered_bytes(memory: Option<u64>, mappable: Option<u64>, workers: usize) -> usize {
    let workers = workers as u64;
    let reserved = RESERVED_ADDRESSES_BYTES.saturating_mul(workers + 1);
    let mappable = mappable.map(|bytes| bytes.saturating_sub(reserved));
    let Some(memory) = memory.into_iter().chain(mappable).min() else { return BUFFERED_BYTES_DEFAULT_MAX };
    let share = usize::try_from(memory / BUFFERED_MEMORY_PART / workers).unwrap_or(usize::MAX);
    share.clamp(BUFFERED_BYTES_DEFAULT_MIN, BUFFERED_BYTES_DEFAULT_MAX)
}

#[cfg(test)]
mod tests {
    use super::{BUFFERED_BYTES_DEFAULT_MAX, BUFFERED_BYTES_DEFAULT_MIN, Limits, default_buffered_bytes};

    #[test]
    fn unfinished_requests_may_take_a_share_of_the_memory_there_is() {
        const GIB: u64 = 1 << 30;
        for (memory, mappable, workers, wanted) in [
            (None, None, 8, BUFFERED_BYTES_DEFAULT_MAX),
            (Some(64 * GIB), None, 2, BUFFERED_BYTES_DEFAULT_MAX),
            (Some(8 * GIB), None, 8, BUFFERED_BYTES_DEFAULT_MAX),
            (Some(GIB), Some(64 * GIB), 4, 64 << 20),
            (Some(GIB / 8), None, 1, 32 << 20),
            (Some(GIB / 8), None, 64, BUFFERED_BYTES_DEFAULT_MIN),
            (Some(0), None, 1, BUFFERED_BYTES_DEFAULT_MIN),
            (Some(64 * GIB), Some(GIB), 3, (128 << 20) / 3),
            (Some(64 * GIB), Some(GIB / 4), 3, BUFFERED_BYTES_DEFAULT_MIN),
            (None, Some(GIB), 1, 192 << 20),
        ] {
            let bytes = default_buffered_bytes(memory, mappable, workers);
            assert_eq!(bytes, wanted, "{memory:?}, {mappable:?} among {workers}");
        }
        let asked = Limits { buffered_bytes_max: 5, ..Limits::default() };
        assert_eq!((asked.buffered_bytes(3), asked.usable().buffered_bytes_max), (5, 5));
        assert_eq!(Limits::default().usable().buffered_bytes_max, BUFFERED_BYTES_DEFAULT_MAX);
    }
}
