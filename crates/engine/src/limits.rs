//! All limits of a worker with their defaults. `docs/limits.md` describes the behavior at each.

use shearwater_http1::{BodyLimits, HeadLimits};
use shearwater_io::limits::{RECV_BUFFER_BYTES, SECURE_RECV_AFTER_PAUSE_MAX};
use shearwater_io::os;
use shearwater_io::secure::RECORD_WIRE_BYTES_MAX;

/// Pipelined requests of one connection per turn, before others get their turn.
pub const REQUESTS_PER_TURN_MAX: usize = 64;

/// Header lists in bytes that one connection of HTTP/2 has decoded per turn, before others get their turn. A few bytes
/// may refer to large lists.
pub const DECODED_BYTES_PER_TURN_MAX: usize = 256 * 1024;

/// Ready tasks polled per turn, before new events and other event loops get their turn.
pub const TASKS_PER_TURN_MAX: usize = 128;

/// Turns of a [hosted](crate::Host) worker, before the other event loop gets its turn.
pub const TURNS_PER_POLL_MAX: usize = 16;

/// Events of a hosted worker's turn from which on it looks for more at once. After a single one, a look mostly finds
/// nothing, and costs as much as the other event loop's.
pub const LOOKS_AGAIN_EVENTS_MIN: usize = 2;

/// Minimum number of deadlines processed per turn. Each may cost a last response and a close: some 25 µs.
pub const EXPIRIES_PER_TURN_MIN: usize = 2;

/// Events of a turn per deadline processed: deadlines take a small part of its time.
pub const EVENTS_PER_EXPIRY: usize = 16;

/// Maximum number of deadlines processed per turn on account of its events.
pub const EXPIRIES_PER_TURN_MAX: usize = 64;

/// Additional deadlines per accepted connection, so that as many connections expire as arrive. A client that
/// sends half a head needs two, for the `408` and the end of the linger; so does one that reads too slowly.
pub const EXPIRIES_PER_ARRIVAL: usize = 2;

/// Disconnected clients released per turn, before events get their turn again.
pub const DISCONNECTS_PER_TURN_MAX: usize = 2;

/// Capacity that an empty queue of disconnects keeps; the memory of a burst is freed.
pub const SPARE_DISCONNECTS_MAX: usize = 64;

/// Shared blocks up to this size are copied into the output; larger ones are sent in place.
pub const COPIED_BYTES_MAX: usize = 16 * 1024;

/// File ranges and shared blocks in one output. At this number further pipelined requests wait.
pub const OUTPUT_ITEMS_MAX: usize = 16;

/// Different files in one output. At this number further pipelined requests wait: each is a descriptor held
/// for a client that may not read its responses.
pub const OUTPUT_FILES_MAX: usize = 2;

/// Bytes of an HTTP/2 connection's output that wait to be sent: content of a large response that precedes a small one.
pub const MULTIPLEXED_OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// File ranges in one output of an HTTP/2 connection.
pub const MULTIPLEXED_ITEMS_MAX: usize = 16;

/// File responses that are kept open for other requests.
pub const OPEN_FILES_MAX: usize = 16;

/// Lifetime of those, in milliseconds from the end of the first one's turn. A recently changed file stays
/// open for its turn only.
pub const OPEN_FILE_MS_MAX: u64 = 50;

/// Spare state of busy connections that a worker keeps.
pub const SPARE_BUSY_MAX: usize = 64;

/// Spare outputs that a worker keeps.
pub const SPARE_OUTPUTS_MAX: usize = 64;

/// Memory of a spare output, in bytes: a turn's responses to one connection at the default
/// `output_bytes_max`.
pub const SPARE_OUTPUT_BYTES_MAX: usize = 128 * 1024;

/// Memory of all spare outputs of a worker, in bytes.
pub const SPARE_OUTPUTS_BYTES_MAX: usize = 1024 * 1024;

/// Memory kept for building responses, in bytes; the excess of a larger one is freed at the end of its turn.
pub const SPARE_RESPONSE_BYTES_MAX: usize = 1024 * 1024;

/// Memory of a spare buffer, in bytes; larger buffers have their own pages.
pub const SPARE_BUFFER_BYTES_MAX: usize = 16 * 1024;

/// Memory of spare pages that a worker keeps, in bytes.
pub const SPARE_PAGES_BYTES_MAX: usize = 1024 * 1024;

/// Memory of such pages freed per turn, in bytes: the kernel takes about a microsecond for 16 KiB.
pub const RELEASED_BYTES_PER_TURN_MAX: usize = 128 * 1024;

/// Idle time after which a worker, its driver and its allocator free spare memory, in milliseconds.
pub const IDLE_TRIM_AFTER_MS: u64 = 1000;

/// Minimum number of events before an idle trim.
pub const IDLE_TRIM_EVENTS_MIN: usize = 64;

/// Slots that a turn examines for idle connections to close while others wait to be accepted.
pub const IDLE_SCAN_MAX: usize = 1024;

/// Age in milliseconds from which a connection without a request makes room for others: the request may be on the way.
pub const SILENT_MS_MIN: u64 = 256;

/// The same once that hasn't made room enough: many wait.
pub const SILENT_CROWDED_MS_MIN: u64 = 32;

/// Delay in milliseconds before accepting is retried after descriptors ran out, unless a connection closes
/// first.
pub const ACCEPT_RETRY_MS: u64 = 1000;

/// Tunnels at a time on an HTTP/2 connection, each of which takes two descriptors.
pub const TUNNELS_PER_CONNECTION_MAX: usize = 32;

/// Bytes that wait in an upgraded connection with TLS, towards the client and towards the program each, and in a stream of
/// HTTP/2 towards the client: a receive that is being sent, another one, and what may still come after a pause.
pub const TUNNEL_BYTES_MAX: usize =
    2 * (RECV_BUFFER_BYTES + RECORD_WIRE_BYTES_MAX) + SECURE_RECV_AFTER_PAUSE_MAX;

/// Connections that the acceptor has queued for a worker; beyond, the next worker gets them. A worker takes
/// batches of 16.
pub const INBOX_MAX: usize = 256;

/// Removed listeners whose numbers a worker keeps, because connections of theirs may still wait in its inbox.
pub const LISTENERS_REMEMBERED_MAX: usize = 64;

/// Time in milliseconds that a change of addresses waits for the end of an earlier one.
pub const ADDRESSES_WAIT_MS: u64 = 5000;

/// Delay in milliseconds before a send's rate is measured, so that short sends need no check.
pub const WRITE_CHECK_MS: u64 = 5000;

/// Milliseconds for which a connection lingers while draining. If its client still sends, or hasn't
/// acknowledged the last response, [`Timeouts::linger_ms`] follows.
pub const DRAIN_LINGER_MS: u64 = 500;

/// Notices to the operator that may be queued; further ones are counted and dropped.
pub const NOTICES_MAX: usize = 64;

/// Milliseconds between two reports of the same kind of fault that clients can provoke: panics at one
/// location, files with one error, invalid responses.
pub const REPORT_EVERY_MS: u64 = 1000;

/// Kinds of faults that a worker reports within that time; further ones are only counted.
pub const REPORT_KINDS_MAX: usize = 32;

/// Bytes of a request's name, and of a message, in a report; the rest is cut.
pub const REPORT_BYTES_MAX: usize = 512;

/// Messages to the operator that are kept.
pub const MESSAGES_KEPT_MAX: usize = 20;

/// Bytes of each of them; the rest is cut.
pub const MESSAGE_BYTES_MAX: usize = 2048;

/// Bytes of a body queued for its handler; no more is received until the handler has read some. One receive
/// may exceed it.
pub const CALL_INPUT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a streamed response queued to be sent; beyond, its handler waits. One piece may exceed it.
pub const CALL_OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Client addresses that a worker caches, 40 bytes each. Connections in the first so many slots never share
/// an entry.
pub const PEERS_KEPT_MAX: usize = 4096;

/// Memory of a worker's exchanges whose response is being sent, in bytes; only with a listener. Further ones are reported
/// with [`ExchangeEnd::Unknown`](crate::ExchangeEnd::Unknown) before they end.
pub const EXCHANGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a method, a target or a field that listeners for exchanges see. One more than 8 KiB: a listener that takes
/// that much, as the access log does, sees which texts are longer.
pub const EXCHANGE_TEXT_BYTES_MAX: usize = 8 * 1024 + 1;

/// Request fields that all listeners of a server together can see.
pub const EXCHANGE_FIELDS_MAX: usize = 16;

/// Bytes of a PROXY header of version 1 with its line end, as specified.
pub const PROXY_LINE_BYTES_MAX: usize = 107;

/// Bytes of a PROXY header of version 2: 16 fixed ones, addresses and further values, which are skipped.
pub const PROXY_HEADER_BYTES_MAX: usize = 4096;

/// Entries of [`TrustedProxies`](crate::TrustedProxies). Each is compared with each address to be checked.
pub const TRUSTED_PROXIES_MAX: usize = 512;

/// Entries of a request's `X-Forwarded-For` or `Forwarded` that are read, from its end.
pub const FORWARDED_ENTRIES_MAX: usize = 32;

/// Spare groups of exchanges that a worker keeps.
pub const SPARE_EXCHANGES_MAX: usize = 64;

/// Memory of a spare group in each of its two lists, in bytes; one group that is always in use may keep as much.
pub const SPARE_EXCHANGE_BYTES_MAX: usize = 4 * 1024;

/// Spare state of deferred requests that a worker keeps.
pub const SPARE_CALLS_MAX: usize = 64;

/// Minimum memory of a connection that can be evicted, in bytes: a part of a head and a few fields. Most have less.
pub const EVICTED_BYTES_MIN: usize = 4096;

/// Divisor of the system's memory for the default budget of unfinished requests, over all workers.
pub const BUFFERED_MEMORY_PART: u64 = 4;

/// Address space reserved for the program, and again for each worker, if it is limited: stacks and allocator
/// arenas.
pub const RESERVED_ADDRESSES_BYTES: u64 = 128 * 1024 * 1024;

/// Largest default budget per worker, in bytes.
pub const BUFFERED_BYTES_DEFAULT_MAX: usize = 256 * 1024 * 1024;

/// Smallest default budget per worker, in bytes: 16 of the largest heads.
pub const BUFFERED_BYTES_DEFAULT_MIN: usize = 1024 * 1024;

/// Longest sleep of the watchdog while all workers sleep, in milliseconds.
pub const WATCHDOG_SLEEP_MS: u64 = 5000;

/// Minimum interval between reports of a blocked worker, in milliseconds.
pub const BLOCKED_REPORT_INTERVAL_MS: u64 = 60_000;

/// Limits of a worker. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size of a request's head; `431` beyond. Default 64 KiB.
    pub head_bytes_max: usize,
    /// Length of the request target; `414` beyond. Default 8 KiB.
    pub target_bytes_max: usize,
    /// Number of fields in a head; `431` beyond. Default 100.
    pub fields_max: usize,
    /// Size of a body, however it is received; `413` beyond. Default 10 MiB.
    pub body_bytes_max: u64,
    /// Memory that a worker holds for unfinished and deferred requests; beyond it the largest connection is
    /// rejected with `503`. The default, `usize::MAX`, is a quarter of the system's memory divided among the
    /// workers, at most 256 MiB ([`Limits::buffered_bytes`]).
    pub buffered_bytes_max: usize,
    /// Deferred requests of a worker ([`Response::defer`](crate::Response::defer)), including tasks that
    /// outlive their response; `503` beyond. Default 65,536.
    pub calls_max: usize,
    /// Connections of all workers together; beyond, the longest idle ones are closed for new ones, which wait if none
    /// is idle. Default: bounded by descriptors only. A configured number is bounded by them too, except on io_uring from Linux 6.8 on, where idle
    /// connections need none.
    pub connections_max: usize,
    /// Connections per client address, over all workers; beyond, a new one is reset. Default 0: unlimited,
    /// because many clients share an address behind a proxy or a NAT.
    pub connections_per_address_max: u32,
    /// Requests per connection; the last response says `Connection: close`. Default 0: unlimited, because no
    /// state of a connection grows with its requests.
    pub requests_per_connection_max: u32,
    /// Minimum rate of a body in bytes of content per second. Received bytes extend its time, which begins
    /// with [`Timeouts::body_grace_ms`] and never exceeds [`Timeouts::body_ms`]. Default 240; 0: unlimited.
    /// `408` below.
    pub body_bytes_per_second_min: u32,
    /// Minimum rate at which a client must read, in bytes per second, averaged over [`Timeouts::write_ms`].
    /// Counts bytes that the client's system has acknowledged if this system reports them (Linux), else bytes
    /// accepted by this system. Default 240; 0: any progress suffices. Reset below.
    pub send_bytes_per_second_min: u32,
    /// Bytes of responses gathered for one connection before they are sent. Default 64 KiB.
    pub output_bytes_max: u64,
    /// Bytes requested from the kernel per receive. Default 64 KiB.
    pub receive_bytes: usize,
    /// Bytes discarded after a last response before the connection is reset. Default 64 MiB.
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
    /// Returns these limits with unusable values replaced by the nearest usable ones.
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

    /// Returns the effective [`Limits::buffered_bytes_max`] for each of so many workers on this system; 0:
    /// one for each core. Memory is the machine's, or less if control groups, `RLIMIT_AS` or `RLIMIT_DATA`
    /// allow less. The result is 256 MiB if the system reports none of them.
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

    /// Returns the bytes that a client must read within `write_ms`.
    pub(crate) fn send_bytes_min(&self, write_ms: u64) -> u64 {
        u64::from(self.send_bytes_per_second_min).saturating_mul(write_ms) / 1000
    }
}

/// Timeouts of a worker, in milliseconds. Timers fire up to 256 ms late, those of idle, writing and lingering
/// connections up to 1.3 s; more if a turn takes longer than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From accept to the end of the first head. Nothing received: a silent close; a partial head: `408`.
    /// Default 10 s.
    pub first_head_ms: u64,
    /// From the first byte of a later head to its end; `408`. Default 10 s.
    pub head_ms: u64,
    /// Between two pieces of a body; `408`. Default 30 s.
    pub body_ms: u64,
    /// From the end of a head until its body's rate counts ([`Limits::body_bytes_per_second_min`]); `408`.
    /// Default 10 s.
    pub body_grace_ms: u64,
    /// Between two requests of a connection; a silent close. Default 75 s: balancers in front usually close after
    /// 60 s, and a request of theirs must not meet our close.
    pub idle_ms: u64,
    /// Interval over which the rate of a reading client is measured ([`Limits::send_bytes_per_second_min`]),
    /// first after [`WRITE_CHECK_MS`]; reset. Default 60 s: a client with a large receive buffer acknowledges
    /// rarely.
    pub write_ms: u64,
    /// From the last response to the client's FIN. Default 10 s.
    pub linger_ms: u64,
    /// From a client's FIN during a request, or from the last send after it, until the handler is dropped. The
    /// connection is closed then: the client may be half-closed and waiting, or gone. Default 30 s.
    pub half_closed_ms: u64,
    /// While draining: for an idle connection to send one more request. Default 500 ms.
    pub drain_idle_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_head_ms: 10_000,
            head_ms: 10_000,
            body_ms: 30_000,
            body_grace_ms: 10_000,
            idle_ms: 75_000,
            write_ms: 60_000,
            linger_ms: 10_000,
            half_closed_ms: 30_000,
            drain_idle_ms: 500,
        }
    }
}

/// Returns the default budget of one worker for unfinished requests, in bytes.
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
    fn unfinished_requests_may_use_a_share_of_available_memory() {
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
