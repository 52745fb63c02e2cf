//! Bounds of the drivers. Each has a line in `docs/limits.md`.

/// Connections accepted from one listener before other events get their turn: some 8 µs each.
pub const ACCEPTS_PER_TURN_MAX: usize = 16;

/// Connections that a driver still accepts after `accept_stop`, should the queue never be empty.
pub const ACCEPTS_AFTER_STOP_MAX: usize = 65_536;

/// Bytes that may still be delivered for a connection after `recv_pause`.
pub const RECV_AFTER_PAUSE_MAX: usize = 64 * 1024;

/// How long a client has to be silent before it is asked whether it is still there, in seconds: where `SO_KEEPALIVE` is on.
pub const KEEPALIVE_IDLE_S: u32 = 60;

/// How long it is then waited for an answer before it is asked again, in seconds.
pub const KEEPALIVE_INTERVAL_S: u32 = 10;

/// How often it is asked in vain before it is taken for gone.
pub const KEEPALIVE_PROBES: u32 = 6;

/// Default size of the worker's receive buffer: the most that one `Received` lends.
pub const RECV_BUFFER_BYTES: usize = 64 * 1024;

/// Times that a detach on io_uring enters the ring for the end of a cancelled receive, 5 ms each at most. Usually one is enough.
pub const DETACH_ENTERS_MAX: usize = 10;

/// How late the end of a send is told that nobody waits for, in milliseconds, where a driver saves a call by that.
pub const SENT_LATE_MS_MAX: u64 = 50;

/// Bytes of a send whose end may be told late: nearly all take them whole, and what is left over is sent late too.
pub const SENT_LATE_BYTES_MAX: u64 = 4 * 1024;

/// Sends of one turn whose ends may be told late. With one more completion to wait for that is what the kernel does in an enter at the most
/// without being asked (`IO_LOCAL_TW_DEFAULT_MAX`, 20); asked for more, it does more, and fills as many receive buffers.
pub const SENT_LATE_SENDS_MAX: usize = 19;

/// Bytes handed to the kernel for one connection before other events get their turn. A little more than 1 MiB, so that such a file
/// and its head go in one turn (docs/decisions/0006-files.md).
pub const SEND_BYTES_PER_TURN_MAX: u64 = 1088 * 1024;

/// Bytes handed to the kernel in one turn, all connections together: as much by short answers from shared blocks as they begin, and as much by
/// what is long. Answers of plain bytes find room beyond.
pub const SEND_BYTES_PER_TURN_ALL_MAX: u64 = SEND_BYTES_PER_TURN_MAX;

/// Bytes of an answer that is sent as soon as it is there. A longer one, and any with a part of a file, begins when everybody else was
/// served in this turn, or in the next: what is short doesn't wait for what is long.
pub const SEND_AT_ONCE_BYTES_MAX: u64 = 128 * 1024;

/// Bytes after which a turn takes nothing of a send that is too long for one turn anyway: many downloads of large files keep a small
/// request waiting for so much, and no more.
pub const SEND_LONG_BYTES_PER_TURN_MAX: u64 = 256 * 1024;

/// The part of a turn's bytes that no send begins with, unless it has less left: so small a rest costs a call more and hardly gets it further,
/// so it waits for the next turn.
pub const SEND_REST_PART: u64 = 4;

/// What a byte of a file that is copied counts for in a turn's share, by the time that it takes: some 60 µs for 64 KiB, where `sendfile`
/// takes 15.
pub const COPIED_BYTES_WEIGHT: u64 = 4;

/// Calls of the kernel for one send before other events get their turn: an answer may consist of many small pieces of a file.
pub const SEND_CALLS_PER_TURN_MAX: usize = 16;

/// Bytes of an output with a part of a file from which on it goes in full segments alone (Linux: `TCP_CORK`). Below it makes no difference, or a
/// bad one (docs/decisions/0006-files.md).
pub const CORKED_BYTES_MIN: u64 = 640 * 1024;

/// Bytes of a connection that the kernel holds before it can send them (Linux: `TCP_NOTSENT_LOWAT`, for connections accepted). Without the bound
/// a client that reads nothing makes it hold up to `tcp_wmem`, 4 MiB. What is on its way comes on top.
pub const SEND_UNSENT_BYTES_FIRST: u32 = 128 * 1024;

/// The same for a connection whose client has taken `SEND_TAKEN_BYTES_MIN` of a send: a file of 1 MiB then goes to the kernel at once, whatever
/// the client's window is.
pub const SEND_UNSENT_BYTES_MAX: u32 = 1152 * 1024;

/// What the kernel has to have got rid of before it is trusted with so much.
pub const SEND_TAKEN_BYTES_MIN: u64 = 640 * 1024;

/// A piece of a file that is shorter is sent without a look whether it is in memory.
pub const FETCH_LOOK_BYTES_MIN: u64 = 128 * 1024;

/// How long a stretch of a file that was found in memory counts as being there: many clients that load one file need no look each.
/// What is thrown out meanwhile keeps the worker waiting for its disk, once.
pub const LOOK_LASTS_MS: u64 = 50;

/// Files of which such a stretch is remembered; the one that has been longest makes room.
pub const LOOKS_MAX: usize = 16;

/// Files that one driver watches for writes while it sends them (Linux: inotify). Of others a time of modification that was set counts as a write.
pub const WATCHES_MAX: usize = 256;

/// Events of watched files that are read at once; if there are more, all watched files count as written to. Linux queues as many by default.
pub const WATCH_EVENTS_MAX: usize = 16_384;

/// Bytes at the promised end of a file that are kept while it is sent for long. If they are others, a longer file was rewritten and hasn't grown.
pub const PROMISED_END_BYTES: usize = 1024;

/// Bytes of a file that are fetched at once from the disk, away from the worker, before they are sent.
pub const FETCH_BYTES: u64 = 2 * 1024 * 1024;

/// Fetches that may wait for a disk, of one driver; sends beyond wait for it themselves.
pub const FETCHES_MAX: usize = 1024;

/// How long after the thread that fetches could not be started it is tried again.
pub const FETCHER_RETRY_MS: u64 = 1000;

/// A shorter timeout is the wait's own: setting the alarm costs a call, and it would go off as often.
#[cfg(target_os = "linux")]
pub(crate) const ALARM_TIMEOUT_MS_MIN: u64 = 200;

/// Events taken from the kernel by one `wait`.
pub const EVENTS_PER_WAIT_MAX: usize = 1024;

/// Receive buffers of one completion driver, all connections together; what finds none waits in its socket.
pub const RECV_BUFFERS_MAX: u16 = 256;

/// Receive buffers that the kernel is offered at first: it uses all that it is offered in turn, so each gets touched. They double
/// whenever they have run out. One enter of the ring fills 40 at most with small requests.
pub const RECV_BUFFERS_FIRST: u16 = 64;

/// Bytes of one receive buffer of a completion driver at most.
pub const RECV_BUFFER_BYTES_MAX: usize = 16 * 1024;

/// Places for sends in flight that a driver keeps when nothing is in flight; those of a busier moment are freed.
pub const SENDS_KEPT_MAX: usize = 256;

/// Times one connection may be read in one turn before the others get theirs.
pub const RECVS_PER_TURN_MAX: usize = 4;

/// Bytes of receives that fill their buffer by half or more (the body of an upload) in one turn, all connections together; those that have more to
/// say wait for a later turn. So who has little to say finds a buffer, and doesn't wait for megabytes.
pub const BULK_RECV_BYTES_PER_TURN_MAX: usize = 128 * 1024;

/// Receives that have filled their buffers since a connection was last sent something, by which a completion driver tells such a body from a
/// head: 64 KiB, as one buffer of the others.
pub const FULL_RECVS_OF_BULK: u8 = 4;

/// How many receives that is with buffers of a size; one in any case.
pub(crate) fn bulk_recvs_per_turn_max(buffer_bytes: usize) -> usize {
    (BULK_RECV_BYTES_PER_TURN_MAX / buffer_bytes).max(1)
}

/// Whether a receive of `len` bytes is one of these: it is likely that more is to come.
pub(crate) fn is_bulk(len: usize, buffer_bytes: usize) -> bool {
    len >= buffer_bytes / 2
}

/// Signals that wait for a listener to say what it does about them; further ones are dropped.
pub const SIGNALS_QUEUED_MAX: usize = 16;
