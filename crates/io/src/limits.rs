//! Bounds of the drivers. Each has a line in `docs/limits.md`.

/// Connections accepted from one listener before other events get their turn.
pub const ACCEPTS_PER_TURN_MAX: usize = 64;

/// Connections that a driver still accepts after `accept_stop`, should the queue never be empty.
pub const ACCEPTS_AFTER_STOP_MAX: usize = 65_536;

/// Bytes that may still be delivered for a connection after `recv_pause`.
pub const RECV_AFTER_PAUSE_MAX: usize = 64 * 1024;

/// Default size of the worker's receive buffer: the most that one `Received` lends.
pub const RECV_BUFFER_BYTES: usize = 64 * 1024;

/// Bytes handed to the kernel for one connection before other events get their turn. A little more than half of 1 MiB, so that such a
/// file and its head take two calls, not three (docs/decisions/0006-files.md).
pub const SEND_BYTES_PER_TURN_MAX: u64 = 640 * 1024;

/// Bytes handed to the kernel in one turn by sends that go on from an earlier one, all connections together: so that
/// many downloads don't keep a small request waiting.
pub const SEND_BYTES_PER_TURN_ALL_MAX: u64 = 8 * 1024 * 1024;

/// Events taken from the kernel by one `wait`.
pub const EVENTS_PER_WAIT_MAX: usize = 1024;

/// Times one connection may be read in one turn before the others get theirs.
pub const RECVS_PER_TURN_MAX: usize = 4;
