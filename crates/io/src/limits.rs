//! Bounds of the drivers. Each has a line in `docs/limits.md`.

/// Connections accepted from one listener before other events are handled: some 8 µs each.
pub const ACCEPTS_PER_TURN_MAX: usize = 16;

/// Connections that a driver still accepts from a listener that it closes, or after `accept_stop` from all of them, if the
/// queue never runs empty.
pub const ACCEPTS_AFTER_STOP_MAX: usize = 65_536;

/// Time for which a removed listener waits for connections whose handshake has begun, in milliseconds.
pub const LISTENER_GRACE_MS: u64 = 500;

/// Connections whose files share a table of a ring without a descriptor each; fewer if the descriptor limit is
/// lower.
pub const STORED_FILES_PER_RING: usize = 16_384;

/// Descriptors that a driver with a store frees at once in the middle of a turn, and the least bound of them for a
/// new connection.
pub const DESCRIPTORS_MIN: usize = 64;

/// Slots that a turn examines for idle connections whose descriptor can be closed.
pub const DESCRIPTOR_SCAN_MAX: usize = 4096;

/// Slots that a turn examines in addition when there is no descriptor for a connection that needs one.
pub const DESCRIPTOR_SHORTAGE_SCAN_MAX: usize = 65_536;

/// Maximum wait of a turn after one in which a connection got no descriptor, in milliseconds.
pub const DESCRIPTOR_RETRY_MS: u64 = 10;

/// Connections of one ring up to which a close cancels the receive. The kernel searches 1 in 128 of their entries for
/// it: 128 of so many. With more, a close ends the receiving side of the socket.
pub const CANCEL_CONNECTIONS_MAX: usize = 16_384;

/// Bytes that may still be delivered for a connection after `recv_pause`.
pub const RECV_AFTER_PAUSE_MAX: usize = 64 * 1024;

/// Bytes that may still be delivered for a secured connection after `recv_pause`: what was received before, and what
/// the driver below still delivers.
pub const SECURE_RECV_AFTER_PAUSE_MAX: usize = RECV_AFTER_PAUSE_MAX + RECV_BUFFER_BYTES;

/// Bytes of its own that a program hands to the process that takes its place.
pub const HANDED_STATE_BYTES_MAX: usize = 16 * 1024;

/// Records of one secured connection that a turn opens. Those after them wait for the next turn.
pub const SECURE_RECORDS_PER_TURN_MAX: usize = 64;

/// Costly steps of handshakes in one turn, over all connections: some 150 µs each. Others wait for the next turn.
pub const SECURE_COSTLY_PER_TURN_MAX: usize = 4;

/// Bytes of records that haven't been opened, and of messages that sessions have in part, over all connections of a
/// driver: nearly all of them parts of incomplete records.
pub const SECURE_PARTIAL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Connections found at once that hold the most of them, so that not each reset examines all connections.
pub const SECURE_HOLDERS_MAX: usize = 64;

/// Unopened bytes of one connection within its handshake that no session can use yet.
pub const SECURE_HANDSHAKE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a session's own records (tickets, responses to key updates) that wait for the socket. Beyond, the session
/// fails: the peer doesn't read what it asks for.
pub const SECURE_REPLY_BYTES_MAX: usize = 64 * 1024;

/// Content sealed by one send, before the socket takes it. Longer outputs, and those with files, take turns.
pub const SEAL_ROUND_BYTES: u64 = 64 * 1024;

/// Content of such outputs sealed in one turn, over all connections, and as much of shorter ones: some 100 µs.
pub const SEAL_BYTES_PER_TURN_MAX: u64 = 512 * 1024;

/// Memory of empty buffers that a driver keeps for the next sends of secured connections, in bytes.
pub const SECURE_SPARE_BYTES_MAX: usize = 1024 * 1024;

/// Idle time before a keep-alive probe, in seconds, with `SO_KEEPALIVE`.
pub const KEEPALIVE_IDLE_S: u32 = 60;

/// Time between keep-alive probes, in seconds.
pub const KEEPALIVE_INTERVAL_S: u32 = 10;

/// Unacknowledged probes after which the connection is dropped.
pub const KEEPALIVE_PROBES: u32 = 6;

/// Default size of the worker's receive buffer: the most that one `Received` lends.
pub const RECV_BUFFER_BYTES: usize = 64 * 1024;

/// Maximum bytes of a send by the ring that doesn't report its success. A socket nearly always takes them whole;
/// of more it holds back what exceeds its unsent bytes (`SEND_UNSENT_BYTES_FIRST`).
pub const SILENT_SEND_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of such sends in one turn above which the next wait doesn't block: until it returns, the driver holds them.
pub const SILENT_BYTES_PER_TURN_MAX: u64 = 4 * 1024 * 1024;

/// Outputs of such sends that the driver keeps for the next ones.
pub const SILENT_OUTPUTS_MAX: usize = 64;

/// Memory of all those outputs, in bytes.
pub const SILENT_OUTPUTS_BYTES_MAX: usize = 1024 * 1024;

/// Budget of a turn for files and long outputs, which wait in a queue until all that was read is handled: bytes
/// passed to the kernel, over all connections. Short responses from shared blocks have another of this size;
/// short ones of plain bytes aren't counted. Slightly more than 1 MiB, so that such a file and its head fit in
/// one turn (docs/decisions/0006-files.md).
pub const SEND_BYTES_PER_TURN_MAX: u64 = 1088 * 1024;

/// Part of a turn's budget for sends that no turn can send whole, and bytes of the longest response in memory
/// that isn't queued. Bounds how long downloads of large files delay a small request.
pub const SEND_QUANTUM_BYTES: u64 = 256 * 1024;

/// Cost of a copied file byte in a turn's budget, by time: some 60 µs for 64 KiB, where `sendfile` takes 15.
pub const COPIED_BYTES_WEIGHT: u64 = 4;

/// Least cost of a system call in a turn's budget, by time: a response may have many small ranges of a file. One
/// send makes at most a quantum's worth of calls in a turn.
pub const SEND_CALL_BYTES: u64 = 16 * 1024;

/// Minimum bytes of an output with a range of a file that is sent in full segments (Linux: `TCP_CORK`). For
/// smaller ones it has no effect or a bad one (docs/decisions/0006-files.md).
pub const CORKED_BYTES_MIN: u64 = 640 * 1024;

/// Unsent bytes of an accepted connection that the kernel holds (Linux: `TCP_NOTSENT_LOWAT`). Without the
/// bound a client that reads nothing makes it hold up to `tcp_wmem`, 4 MiB. Bytes in flight come on top.
pub const SEND_UNSENT_BYTES_FIRST: u32 = 128 * 1024;

/// Unsent bytes for a connection whose client has taken `SEND_ACCEPTED_BYTES_MIN` of a send. A file of 1 MiB
/// then fits the kernel at once, whatever the client's window is.
pub const SEND_UNSENT_BYTES_MAX: u32 = 1152 * 1024;

/// Bytes that the kernel must have sent before it gets the larger bound.
pub const SEND_ACCEPTED_BYTES_MIN: u64 = 640 * 1024;

/// Minimum bytes of a file's range for a page-cache check before sending.
pub const FETCH_CHECK_BYTES_MIN: u64 = 128 * 1024;

/// Validity of a page-cache check, in milliseconds: many downloads of one file share one check. If a page is
/// evicted meanwhile, the worker waits for its disk once.
pub const FETCH_CHECK_MS: u64 = 50;

/// Files whose page-cache checks are kept; the oldest is replaced.
pub const FETCH_CHECKS_MAX: usize = 16;

/// Files that one driver watches for writes while sending them (Linux: inotify). For others a new
/// modification time counts as a write.
pub const WATCHES_MAX: usize = 256;

/// Events of watched files that are read at once; if there are more, all watched files count as written to. Linux queues as many by default.
pub const WATCH_EVENTS_MAX: usize = 16_384;

/// Bytes at the promised end of a file that are kept during a long send. If they differ later, a longer file
/// was rewritten instead of extended.
pub const PROMISED_END_BYTES: usize = 1024;

/// Bytes of a file read ahead at once, on another thread.
pub const FETCH_BYTES: u64 = 2 * 1024 * 1024;

/// Bytes of a file on a server read ahead at once, which are kept for their send.
pub const FETCH_KEPT_BYTES: u64 = 128 * 1024;

/// Fetches that one driver may have queued; further sends wait for the disk themselves.
pub const FETCHES_MAX: usize = 1024;

/// Threads of one driver that read ahead. A fetch that hangs occupies one of them.
pub const FETCHERS_MAX: usize = 4;

/// Delay before the first read-ahead thread is tried again after it could not be started.
pub const FETCHER_RETRY_MS: u64 = 1000;

/// Shorter timeouts are passed to the wait itself: setting the alarm costs a call, and it would go off as
/// often.
#[cfg(target_os = "linux")]
pub(crate) const ALARM_TIMEOUT_MS_MIN: u64 = 200;

/// Events taken from the kernel by one `wait`.
pub const EVENTS_PER_WAIT_MAX: usize = 1024;

/// Receive buffers of one completion driver, over all connections; input without a buffer waits in its
/// socket.
pub const RECV_BUFFERS_MAX: u16 = 256;

/// Receive buffers offered to the kernel at first. It uses all of them in turn, so each gets touched. They
/// double whenever they run out. One enter of the ring fills 40 at most with small requests.
pub const RECV_BUFFERS_FIRST: u16 = 64;

/// Bytes of one receive buffer of a completion driver at most.
pub const RECV_BUFFER_BYTES_MAX: usize = 16 * 1024;

/// Slots for sends in flight that an idle driver keeps; others are freed.
pub const SPARE_SENDS_MAX: usize = 256;

/// Reads of one connection per turn before other connections are read.
pub const RECVS_PER_TURN_MAX: usize = 4;

/// Bytes per turn, over all connections, of receives that fill at least half of their buffer (bodies of
/// uploads). Connections with more wait for a later turn, so that small requests find a buffer and don't wait
/// for megabytes.
pub const BULK_RECV_BYTES_PER_TURN_MAX: usize = 128 * 1024;

/// Full receives since a connection's last send that indicate a body instead of a head: 64 KiB, one buffer of
/// the other drivers.
pub const FULL_RECVS_OF_BULK: u8 = 4;

/// Returns the bulk receives per turn for buffers of this size, at least one.
pub(crate) fn bulk_recvs_per_turn_max(buffer_bytes: usize) -> usize {
    (BULK_RECV_BYTES_PER_TURN_MAX / buffer_bytes).max(1)
}

/// Returns whether a receive of `len` bytes is a bulk receive, likely followed by more.
pub(crate) fn is_bulk(len: usize, buffer_bytes: usize) -> bool {
    len >= buffer_bytes / 2
}

/// Signals queued until an action is set; further ones are dropped.
pub const SIGNALS_QUEUED_MAX: usize = 16;

/// Connections that wait at a control socket for the thread that accepts them.
pub const CONTROL_QUEUED_MAX: i32 = 16;

/// Sockets that a service manager may pass to the process.
pub const INHERITED_SOCKETS_MAX: usize = 256;

/// Longest wait for a service manager that reads no notifications, in milliseconds.
pub const NOTIFY_TIMEOUT_MS: u64 = 1000;

/// Bytes of a message between two processes of a server: an address and a few words.
pub const CHANNEL_MESSAGE_BYTES_MAX: usize = 1024;

/// Sockets received and not yet taken from a channel between two processes of a server.
pub const CHANNEL_SOCKETS_MAX: usize = 64;

/// Sockets that one process of a server passes to the next: addresses times workers.
pub const PASSED_SOCKETS_MAX: usize = 4096;
