//! The kernel behind one completion-based contract.
//!
//! A worker owns one [`Driver`] and never sees a descriptor. It waits once per turn, takes the turn's events
//! one by one, and responds with verbs. The clauses below number a driver's duties and a worker's; one suite
//! (`tests/it/contract/`) checks every driver.
//!
//! # The contract
//!
//! **T, turns**
//! - **T1** [`Driver::wait`] blocks until there is an event, the timeout has passed, or a [`Waker`] was used.
//!   It returns at once while the driver still has work of its own (a file being sent in pieces, input left
//!   unread). It may return without an event (a signal, readiness of a closed connection, a cancelled
//!   deadline, a time to free memory): the worker checks its timers and waits again.
//! - **T2** [`Driver::next`] returns the turn's events until it returns `None`. Events caused by a verb
//!   (`Sent`, `Closed`) may come in the same turn or a later one, never from inside the verb. A turn is
//!   finite: [`limits`] bounds the share of each connection.
//! - **T3** [`Driver::now_ms`] and [`Driver::unix_seconds`] are those of the last return from `wait`: one
//!   reading a turn. The time of day may lag by 50 ms.
//!   [`Driver::read_clock_us`] reads the same clock anew.
//! - **T4** [`Driver::caught_up_ms`] is a time by the driver's clock: everything that had arrived by then is
//!   delivered with this turn's events, unless receiving is paused or [`Driver::reads_later`] (R7). It is
//!   `now_ms` if the last `wait` took all that the kernel had; otherwise it follows the clock as long as the
//!   worker keeps calling it, however much arrives. It never goes back. The worker acts on no later deadline:
//!   the client's input may not have been fetched.
//! - **T5** [`Driver::rest`] is called when nothing has happened for a while: the driver frees the memory of
//!   a busier moment. It declines while it has work of its own; nothing that has arrived is lost either way.
//! - **T6** For a program whose own event loop waits: [`Driver::descriptor`] becomes readable whenever `wait` would return, once
//!   [`Driver::arm`] has been called after the turn's last verb. `arm` submits what the turn has left, and returns the time
//!   after which the program calls `wait` in any case: zero if the next turn has work already, none if the descriptor shows
//!   the timeout's end, too. Each arrival after `arm` makes the descriptor readable anew, so that an edge-triggered watch
//!   misses nothing. It may become readable without an event, and for an event that was fetched meanwhile.
//!
//! **A, accepting**
//! - **A1** Each connection is reported once, by [`Event::Accepted`], before any other event of its token.
//! - **A2** If the process or the system has no descriptor or memory left, or a connection exceeds the
//!   driver's own bound or its [`SharedLimit`], [`Event::AcceptFailed`] comes once and accepting is paused, as by
//!   [`Driver::accept_pause`]; connections wait unreported, in the kernel's queue or the inbox. Room alone
//!   does not end the pause. A driver never takes more connections from the kernel than its bound, and drivers
//!   together never more than the limit that they share. An idle listener keeps no room from another.
//! - **A3** After [`Driver::accept_pause`] only connections already taken from the kernel are reported (at
//!   most [`limits::ACCEPTS_PER_TURN_MAX`]). [`Driver::accept_resume`] takes those queued in the meantime,
//!   with no new arrival needed.
//! - **A4** [`Driver::accept_stop`] accepts what is queued, then closes the listeners, then reports
//!   [`Event::AcceptStopped`], once. It ends a pause; an `AcceptFailed` during the stop still needs an
//!   `accept_resume`.
//! - **A5** A connection accepted by an acceptor comes by the [`mod@inbox`] with which the driver was made,
//!   in non-blocking mode, and is reported as if a listener with the given number had accepted it: A1 to A3
//!   apply to it too. Connections without room wait in the inbox, which refuses those beyond its bound and,
//!   while accepting is paused or the driver is full with a connection waiting, all of them: another driver
//!   may have room. At most [`limits::ACCEPTS_PER_TURN_MAX`] are reported in a turn. After `accept_stop`,
//!   `AcceptStopped` also waits until the inbox's sender is gone and all its connections are reported.
//! - **A6** [`Event::ListenerFailed`] reports, once, a listener that accepts no more connections, for example
//!   after another process that shares it has shut it down. The other listeners are not affected.
//! - **A7** [`Driver::listener_add`] accepts from one more listener, from the next `wait` on. If the kernel can't watch
//!   it, `ListenerFailed` reports it. After `accept_stop` it closes the listener.
//! - **A8** [`Driver::listener_remove`] accepts what is queued, then closes the listener, then reports
//!   [`Event::ListenerRemoved`], once. The others are not affected. A pause holds that up, and `accept_stop` takes its
//!   place: then `ListenerRemoved` doesn't come. At once, the file of a Unix-domain listener is unlinked, and on Linux
//!   the kernel takes no further connection requests for a TCP listener; both only for a listener of this process alone
//!   ([`Listener::exclusive`]). Handshakes that have begun may end within [`limits::LISTENER_GRACE_MS`], and these
//!   connections are accepted, too. Later ones, and on other systems those of the last instant, are reset.
//! - **A9** [`Driver::adopt`] takes over one end of a connected stream socket. Its token comes without an `Accepted`, and
//!   R, S, C and K hold for it. It counts among [`Driver::connections`], but for no limit on connections.
//!
//! **R, receiving**
//! - **R1** Receiving is armed once, at accept. There is no verb to request bytes.
//! - **R2** [`Event::Received`] lends bytes: [`Driver::lent`] is valid until the next call of `next` or
//!   `wait`. It is never empty. Copy what is needed later. [`Driver::lent_mut`] lends the same bytes to a decorator,
//!   which changes them in place.
//! - **R3** After [`Driver::recv_pause`] at most [`limits::RECV_AFTER_PAUSE_MAX`] further bytes are delivered until
//!   [`Driver::recv_resume`]; of a secured connection [`limits::SECURE_RECV_AFTER_PAUSE_MAX`]. Pausing twice or resuming twice is allowed. Nothing is lost.
//! - **R4** [`Event::ReadClosed`] comes at most once, after the last `Received`: the peer has ended its side
//!   ([`ReadEnd::Eof`]) or the connection is broken ([`ReadEnd::Broken`]). It needs no further arrival from
//!   the peer, even if data and FIN arrived together, and never precedes bytes that were received earlier.
//!   While receiving is paused R6 applies instead.
//! - **R5** After `Eof` sending still works: a half-closed peer gets its responses. A connection that breaks
//!   after `Eof` shows this only in the next `Sent`.
//! - **R6** The end of a peer shows while receiving is paused, too. If it has ended its side, either
//!   `ReadClosed` comes, if nothing is left to be received before it, or [`Event::FinReceived`], at most once
//!   per connection; `ReadClosed` then follows in order, after the resume. If it has broken the connection,
//!   `ReadClosed` comes at once, and unreceived bytes are lost. A break after the FIN may show only in the
//!   next `Sent` (R5) or after the resume.
//! - **R7** [`Driver::reads_later`] returns, at the end of a turn, whether a bound of [`limits`] kept the
//!   driver from reading a connection: input may be pending that the next turns deliver.
//!
//! **S, sending**
//! - **S1** [`Driver::send`] moves an [`Output`] in. Exactly one [`Event::Sent`] returns it, also after an
//!   error and also after `close`, with its contents untouched. An empty output is allowed and completes as
//!   sent.
//! - **S2** Never two sends in flight on one connection: the worker waits for `Sent`. Drivers assert it.
//! - **S3** Partial writes are resumed by the driver, in order, without mixing parts.
//! - **S4** Head bytes that precede a file or shared block leave in the same segment where the kernel allows (`MSG_MORE`).
//! - **S5** Outputs with files, and those longer than [`limits::SEND_QUANTUM_BYTES`], take turns: together at most
//!   [`limits::SEND_BYTES_PER_TURN_MAX`] bytes in one turn. A file that ends early is
//!   [`SendError::FileShort`].
//! - **S6** [`Driver::send_progress`] is the number of bytes of the send in flight that the kernel has
//!   accepted. It never decreases. After a `Sent` with an error it is that of the failed send, until the next event.
//! - **S7** [`Driver::send_at_once`] is `send`, but may return that the send is done: then none is in flight, no
//!   `Sent` follows, and the output is empty or untouched. If the caller waits for the end, the kernel has accepted
//!   everything by then. Otherwise the driver may find in the next `wait` that the kernel has not:
//!   [`Event::Unsent`] comes in that turn, before any other event of the connection, and from then on the send is
//!   in flight as by `send`. `ReadClosed` doesn't come in between. If the worker has sent again in between, one `Sent`
//!   ends both and returns their outputs as one. After a close in between, which may discard what the kernel has not
//!   accepted, `Unsent` comes too, and its `Sent` before `Closed`. The worker neither shuts down nor detaches the
//!   connection before that `wait`. [`Driver::settles_later`] returns whether an `Unsent` may follow;
//!   [`Driver::next_unsent`] takes those of the turn before its other events.
//! - **S8** [`Driver::unacknowledged`] is the number of bytes, of this send and those before it, that the
//!   kernel has accepted and the peer's system hasn't acknowledged. `None` if this system doesn't report it.
//!   It may be a system call: use it when a deadline has come, not per request. For a Unix-domain socket
//!   Linux reports the memory of those bytes, in steps of up to 64 KiB.
//! - **S9** [`Driver::waits_for_disk`] returns whether the send in flight stalls because its file is being
//!   fetched, which is not the peer's fault.
//! - **S10** Of a file in a promised version ([`SharedFile::in_version`]) the last bytes of a range are sent
//!   after a check that the promised bytes are unchanged; otherwise [`SendError::FileChanged`] ends the send
//!   short of them. They count as changed if the file is shorter than promised, or was written to at the same
//!   length. A longer file has grown; mode, owner and names don't count. A modification time set at the same
//!   length counts as a write, unless the system distinguishes them (Linux: inotify, for a send that the
//!   socket doesn't take at once). A file to be copied ([`SharedFile::copied`]) is read into memory: those
//!   bytes can't change any more, and the check comes after the last were read.
//! - **S11** [`Driver::bytes_taken`] is the number of bytes that the kernel has accepted on all connections, whether their send succeeded, failed,
//!   was cancelled or is in flight. It never decreases.
//!
//! **C, closing**
//! - **C1** [`Driver::shutdown_write`] sends FIN after all sent bytes. Not while a send is in flight.
//!   Receiving continues.
//! - **C2** [`Driver::close`] may be called at any time, once. After it the token's only events are the
//!   outstanding `Unsent` and `Sent` (with [`SendError::Cancelled`] unless already decided) and then exactly one final
//!   [`Event::Closed`].
//! - **C3** [`Driver::close`] with [`CloseKind::Reset`] discards unsent data and sends RST.
//! - **C4** Only the worker closes. A broken connection is reported and stays open until it is closed.
//! - **C5** [`Driver::detach`] ends a connection's events with one [`Event::Detached`], in this turn or a later one. It
//!   returns the connection as an owned descriptor, non-blocking, with the bytes received and not yet delivered; or
//!   an error, and the connection is as before. Not while a send is in flight. In between only `close` is allowed,
//!   which takes the event's place. The token keeps its slot and counts among [`Driver::connections`] until it is
//!   closed. `Closed` follows that, and a descriptor that was returned is not touched.
//!
//! **K, tokens**
//! - **K1** A [`Token`] is a slot and a generation. The slot is small and dense (workers index arrays with
//!   it, a [`SlotArray`] for example), and is reused only after `Closed`, with another generation.
//! - **K2** A verb on a token that is closed (from `close` on) or was never returned is ignored
//!   (`debug_assert`ed).
//!
//! **X, encryption**, on a driver that secures connections ([`Driver::SECURES`], [`secure::Secure`])
//! - **X1** [`Driver::secure`] starts the server's side of TLS on an open connection, once: after its `Accepted`, or after
//!   the bytes that precede the handshake (a PROXY header), with those received after them. [`Event::Secured`] comes before
//!   any later `Received`, once, unless `ReadClosed` comes first, with a broken connection. After `Ok`, content is received
//!   and sent, and [`Driver::session`] returns the session's facts. After an error nothing more is received, sends fail, and
//!   the alert was sent if the socket took it: the worker closes. Only after [`NotTls`](secure::Failure::NotTls) the connection
//!   is a plain one again, without the bytes read so far. The worker sends nothing before `Secured`.
//! - **X2** A turn takes at most [`limits::SECURE_COSTLY_PER_TURN_MAX`] costly steps of handshakes, over all connections. The
//!   others wait in order, and the next `wait` doesn't block. A connection that closes or breaks leaves the queue.
//! - **X3** The records of one receive are delivered as one `Received`, which may exceed the receive buffer by the part of a
//!   record that came earlier. A turn opens at most [`limits::SECURE_RECORDS_PER_TURN_MAX`] records of a connection; the
//!   next turns open the others, also while receiving is paused (R3, R7).
//! - **X4** `Received`, outputs and [`Driver::send_progress`] are content; the latter counts that of whole records. Bytes of
//!   records count in [`Driver::bytes_taken`], [`Driver::unacknowledged`], [`Driver::received_on_wire`], which also shows a
//!   record that isn't complete, and [`Driver::delivered`], which doesn't decrease: bytes accepted less those unacknowledged.
//! - **X5** [`Event::Receiving`] reports that a part of a record has arrived, unless a part of it was reported before. It comes
//!   after the content of the same receive. Bytes that aren't opened, and messages of
//!   handshakes that aren't complete, hold at most [`limits::SECURE_PARTIAL_BYTES_MAX`] on all connections: beyond, the sessions of those that hold the most fail, and their receiving ends.
//! - **X6** A close_notify ends the receiving side like FIN, and `shutdown_write` and a normal `close` send one before FIN. A
//!   close doesn't wait for it: a full socket loses it. [`Driver::was_clean`] returns false after a FIN alone. While receiving is
//!   paused, only FIN shows (R6). A session that fails after the handshake ends receiving as a broken connection.
//! - **X7** A session's own records (tickets, responses to key updates, alerts) precede the next output in the same send, or are
//!   a send of the driver's own, behind which the worker's next one waits. At most
//!   [`limits::SECURE_REPLY_BYTES_MAX`] of them wait. The worker sees no event of them.
//! - **X8** S1 and S7 hold for the worker's outputs: they come back unsealed. An `Unsent` of the driver's own sends isn't reported.
//! - **X9** A secured connection can't be detached: `Detached` returns an error. The worker adopts (A9) one end of a socket
//!   pair instead, hands out the other, and copies between both tokens.
//! - **X10** S5 for secured connections: outputs longer than [`limits::SEAL_ROUND_BYTES`], and those with files, are sealed in
//!   rounds of that length, together at most [`limits::SEAL_BYTES_PER_TURN_MAX`] in one turn, in order. The next round of a
//!   connection waits until the socket has taken the one before. Outputs longer than a record that are sealed at once
//!   have another budget of this size.
//!
//! **W, waking**
//! - **W1** A [`Waker`] may be used from any thread, makes the current or the next `wait` return, and shows as at
//!   least one [`Event::Woken`]. Wakes may merge.
//!
//! # Verb × driver
//!
//! | verb | poll (epoll, kqueue) | uring (io_uring) | sim |
//! |---|---|---|---|
//! | `wait` | one `epoll_wait` / `kevent`, with timeout 0 while there is work left; on Linux one `timerfd_settime` if a deadline comes before the alarm that is set | one `io_uring_enter`, with the turn's entries, one of which sets the alarm as on epoll; none if work is left and there are no entries | none; moves the driven clock |
//! | `descriptor` | none: that of epoll or kqueue | the first time an eventfd, which the kernel increments for completions: the ring's own descriptor isn't readable for those that it defers | unsupported |
//! | `arm` | as `wait`, without the `epoll_wait` or `kevent` | as `wait`, without waiting: none if there is nothing to submit | none |
//! | `read_clock_us` | one reading of the clock | as poll | the driven clock |
//! | `rest` | slots | slots, receive buffers, queues, empty tables of files | counts |
//! | `next`: accepted | `accept4` until `EAGAIN` or the bound; one `epoll_ctl` per connection; a `poll` if the driver is full | a poll entry that completes when a connection waits; `accept4` for as many as came the last time, twice as many if more wait at once; a `poll` if the driver is full | takes one from the queue, or a seeded failure |
//! | `next`: received | one `recv` into the worker's one buffer; another only if it was full or the peer closed | armed until a credit of bytes is used up; provided buffers | seeded length |
//! | beyond the bound of descriptors | – | an idle connection has none: one registration of its file the first time, one `close`; a verb that needs one opens it by one enter of another ring | – |
//! | `send` | `send` / `sendmsg` at once; files by `sendfile` (or `pread` and `send`; a `statx` before the last bytes of a version), queued with long sends after all that was read in this turn or the next; parks on `EAGAIN`; owns the output until `Sent` | one entry that never waits; files and the rest of a short send as poll, after an enter that submits the turn's entries if one sends; parked as one poll entry | seeded length |
//! | `send_at_once` | done if the socket takes plain bytes whole | an entry without a completion if nobody awaits its end; `Unsent` if it fails; one after another in a turn waits for the next | seeded |
//! | `settles_later`, `next_unsent` | always false; none | none; the next `wait` doesn't block | none |
//! | `bytes_taken` | none; a counter | none; a counter | a counter |
//! | `unacknowledged` | `ioctl(SIOCOUTQ)`; `None` except on Linux | as poll | what the peer hasn't read |
//! | `waits_for_disk` | none; a flag | none; a flag | set by the test |
//! | `secure` | – | – | – |
//! | `recv_pause`, `recv_resume` | none; a flag, which also records unread input; one `getsockopt` if the peer ends meanwhile | none; a flag; cancelled if something comes, and then one poll entry for the peer's end | a flag |
//! | `shutdown_write` | `shutdown` | `shutdown`; without a descriptor, one enter of another ring | marks FIN |
//! | `close` | `close`; cancels the parked send | cancels, or ends receiving by `shutdown` in a crowd; `close` at the last completion, a turn later | marks closed |
//! | `next`: handed over | only the one `epoll_ctl` | none; armed with the turn's entries | takes one from the inbox, or a seeded failure |
//! | `adopt` | one `epoll_ctl` | none; armed with the turn's entries | carries bytes between socket and connection in `wait` |
//! | `accept_stop` | `accept4` until `EAGAIN` or the bound, `close` | as poll, the `close` after a cancel | closes after the queue |
//! | `listener_add` | one `epoll_ctl` | none; a poll entry with the turn's entries | a queue of its own; the socket is dropped |
//! | `listener_remove` | a socket filter; later `accept4` until `EAGAIN`, one `epoll_ctl`, `close` | as poll, a cancel instead of the `epoll_ctl` | closes after the queue |
//! | `detach` | deregistration | cancels; returned, with unread input, by the last completion of the receive | unsupported |
//!
//! [`secure::Secure`] adds none of its own, except: a send for the records of each handshake flight; one for a close_notify,
//! before `shutdown_write` and `close`; `preadv2` for each round of a file, `statx` before the last bytes of a version; a
//! send for each round.

mod clock;
mod connections;
pub mod control_socket;
mod driver;
pub mod fs;
pub mod limits;
mod listeners;
#[cfg(not(target_os = "linux"))]
mod not_linux;
pub mod os;
mod output;
mod page_buf;
mod page_cache;
#[cfg(target_os = "linux")]
mod pages;
pub mod poll;
mod read_ahead;
pub mod relay;
pub mod secure;
pub mod service_manager;
mod shared_file;
pub mod signals;
pub mod sim;
mod slot_array;
mod socket;
pub mod socket_channel;
#[cfg(target_os = "linux")]
pub mod uring;
#[cfg(not(target_os = "linux"))]
#[path = "uring/none.rs"]
pub mod uring;
#[cfg(target_os = "linux")]
mod watches;

pub use driver::{
    AcceptError, CloseKind, Detached, Driver, Event, ListenerId, ReadEnd, SendError, Token, Waker,
};
pub use listeners::acceptor::Dispatcher;
pub use listeners::inbox::Inbox;
pub use listeners::{Entrances, FileIdentity, Listener, ListenerHandle, SharedLimit};
pub use listeners::{acceptor, bind as listen, inbox};
pub use output::{FileSlice, Item, Output, Piece, Shared};
pub use page_buf::PageBuf;
pub use shared_file::SharedFile;
pub use slot_array::SlotArray;

/// Returns an unlinked file of this length without content.
#[cfg(test)]
fn test_file(len: u64) -> std::fs::File {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("shearwater-io-{}-{number}", std::process::id()));
    let mut options = std::fs::File::options();
    let file = options.read(true).write(true).create_new(true).open(&path).expect("a file");
    std::fs::remove_file(&path).expect("the file can be removed");
    file.set_len(len).expect("a sparse file");
    file
}
