//! Checks which features of io_uring this kernel and its sandbox permit.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use io_uring::opcode::{AsyncCancel2, PollAdd, Read, Recv, Send, SendMsg, Timeout, TimeoutUpdate};
use io_uring::register::Probe;
use io_uring::types::Fd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;

use super::entry::{Name, Operation, Purpose};
use super::ring::{COMPLETION_ENTRIES, Ring, SUBMIT_ENTRIES};
use super::store::Store;
use crate::limits::{RECV_BUFFER_BYTES_MAX, RECV_BUFFERS_MAX};
use crate::{Item, Output, Shared, Token};

/// The oldest kernel with all required features.
const KERNEL_MIN: &str = "Linux 6.1";

/// Operations that the driver uses.
const OPERATIONS: [(u8, &str); 8] = [
    (AsyncCancel2::CODE, "cancel"),
    (PollAdd::CODE, "poll"),
    (Read::CODE, "read"),
    (Recv::CODE, "receive"),
    (Send::CODE, "send"),
    (SendMsg::CODE, "sendmsg"),
    (Timeout::CODE, "timeout"),
    (TimeoutUpdate::CODE, "a moved timeout"),
];

/// Entries of the trial ring.
const TRIAL_ENTRIES: u32 = 8;
/// Bytes of a send that no small socket buffer takes.
const TRIAL_SEND_BYTES: usize = 64 * 1024;
/// Timeout of a trial that has nothing to wait for.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// Optional features found. Displays as one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The queue of entries needs no array of indices (Linux 6.6).
    pub no_array: bool,
    /// One entry may receive repeatedly, up to a bound (Linux 6.17).
    pub limited_multishot: bool,
    /// Idle connections need no descriptor (Linux 6.8): there may be more than the descriptor limit.
    pub(super) stored_files: bool,
    /// A send without a completion reports a failure, and how far it came.
    pub silent_sends: bool,
}

impl Report {
    /// Returns whether idle connections need no descriptor.
    #[must_use]
    pub fn stores_files(&self) -> bool {
        self.stored_files
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("io_uring is available, ")?;
        f.write_str(if self.limited_multishot {
            "with bounded multishot receives"
        } else {
            "without bounded multishot receives (they need Linux 6.17)"
        })
    }
}

/// Reasons why io_uring is unavailable. Displays as one sentence.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unavailable {
    /// `EPERM` or `EACCES`.
    Forbidden,
    /// `ENOSYS`: the kernel was built without.
    Missing,
    /// The kernel lacks a feature.
    TooOld {
        /// The feature.
        lacks: &'static str,
    },
    /// `ENOMEM`.
    Memory,
    /// Any other error.
    Other(io::Error),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden => f.write_str(
                "io_uring is forbidden here, by a seccomp filter (containers have one) or by the sysctl \
                 kernel.io_uring_disabled",
            ),
            Self::Missing => f.write_str("this kernel was built without io_uring, or a filter hides it"),
            Self::TooOld { lacks } => {
                write!(f, "this kernel's io_uring lacks {lacks}: {KERNEL_MIN} or later is needed")
            }
            Self::Memory => f.write_str(
                "there is no memory for io_uring's queues: raise the memory limit, or RLIMIT_MEMLOCK (ulimit -l)",
            ),
            Self::Other(error) => write!(f, "io_uring can't be used here: {error}"),
        }
    }
}

impl std::error::Error for Unavailable {}

impl Unavailable {
    /// Converts an error of `trying` a feature.
    fn from_error(error: io::Error, trying: &'static str) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::PERM | Errno::ACCESS) => Self::Forbidden,
            Some(Errno::NOSYS) => Self::Missing,
            Some(Errno::INVAL) => Self::TooOld { lacks: trying },
            Some(Errno::NOMEM) => Self::Memory,
            _ => Self::Other(error),
        }
    }
}

/// Probes by trial: sets up a small ring, checks all features that the driver uses, and closes it.
///
/// # Errors
/// The first missing feature.
pub fn probe() -> Result<Report, Unavailable> {
    on_own_thread(probe_here)
}

/// Calls a function on a thread of its own, which takes the work with it that a closed ring leaves to its thread: that
/// would interrupt a later system call of the caller.
fn on_own_thread(
    probe: impl FnOnce() -> Result<Report, Unavailable> + std::marker::Send,
) -> Result<Report, Unavailable> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("probe".to_owned()).spawn_scoped(scope, probe);
        let probed = thread.map_err(Unavailable::Other)?.join();
        probed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn probe_here() -> Result<Report, Unavailable> {
    let (mut ring, no_array) = match Ring::new(TRIAL_ENTRIES, TRIAL_ENTRIES, true) {
        Ok(ring) => (ring, true),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
            let ring = Ring::new(TRIAL_ENTRIES, TRIAL_ENTRIES, false);
            (ring.map_err(|error| Unavailable::from_error(error, "deferred completions"))?, false)
        }
        Err(error) => return Err(Unavailable::from_error(error, "deferred completions")),
    };
    check_features(&ring)?;
    check_operations(&ring)?;
    ring.provide_buffers(2, 64).map_err(|error| Unavailable::from_error(error, "provided buffers"))?;
    let tried = try_multishot(&mut ring);
    let limited_multishot = tried.map_err(|error| Unavailable::from_error(error, "multishot receives"))?;
    // Everything works without, also if the trial itself fails.
    let silent_sends = try_silent_sends(&mut ring).unwrap_or(false);
    Ok(Report { no_array, limited_multishot, stored_files: try_store().is_ok(), silent_sends })
}

/// Probes, and checks that there is memory for the rings of this many workers. For twice as many: the kernel frees
/// those of a trial a little later.
///
/// # Errors
/// The first missing feature, or [`Unavailable::Memory`].
pub fn probe_for(workers: usize) -> Result<Report, Unavailable> {
    on_own_thread(|| {
        let report = probe_here()?;
        let new_ring = |_| {
            let mut ring = Ring::new(SUBMIT_ENTRIES, COMPLETION_ENTRIES, report.no_array)?;
            ring.provide_buffers(RECV_BUFFERS_MAX, RECV_BUFFER_BYTES_MAX)?;
            Ok(ring)
        };
        let rings: io::Result<Vec<Ring>> = (0..workers.saturating_mul(2)).map(new_ring).collect();
        rings.map_err(|error| Unavailable::from_error(error, "rings of this size")).map(|_| report)
    })
}

fn check_features(ring: &Ring) -> Result<(), Unavailable> {
    let params = ring.params();
    let features = [
        (params.is_feature_nodrop(), "completions that are never dropped"),
        (params.is_feature_ext_arg(), "waits with a timeout"),
        (params.is_feature_submit_stable(), "entries that may be used again at once"),
        (params.is_feature_skip_cqe_on_success(), "entries without a completion"),
    ];
    match features.into_iter().find(|(there, _)| !there) {
        Some((_, lacks)) => Err(Unavailable::TooOld { lacks }),
        None => Ok(()),
    }
}

fn check_operations(ring: &Ring) -> Result<(), Unavailable> {
    let mut found = Probe::new();
    let asked = ring.submitter().register_probe(&mut found);
    asked.map_err(|error| Unavailable::from_error(error, "a list of its operations"))?;
    match OPERATIONS.into_iter().find(|(code, _)| !found.is_supported(*code)) {
        Some((_, lacks)) => Err(Unavailable::TooOld { lacks }),
        None => Ok(()),
    }
}

/// Stores a file and opens a descriptor of it.
fn try_store() -> io::Result<()> {
    let (ours, _theirs) = UnixStream::pair()?;
    let mut store = Store::new();
    store.put(0, ours.as_fd())?;
    store.open(0)?;
    Ok(())
}

/// Returns whether a multishot receive ends at its bound. Kernels without the bound refuse it.
fn try_multishot(ring: &mut Ring) -> io::Result<bool> {
    let (ours, theirs) = UnixStream::pair()?;
    rustix::io::write(&theirs, b"x")?;
    let operation = Operation::recv_until_used_up(Fd(ours.as_raw_fd()), 1);
    ring.push(operation, Name::new(Purpose::Recv, Token::new(0, 0)));
    ring.enter(Some(TRIAL_WAIT))?;
    let done = ring.take().ok_or(io::ErrorKind::TimedOut)?;
    Ok(done.is_last() && done.result() == Ok(1))
}

/// Returns whether sends without a completion report that they were short, and nothing if they weren't: those of
/// bytes, and those with shared blocks.
fn try_silent_sends(ring: &mut Ring) -> io::Result<bool> {
    let plain = |len| {
        let mut output = Output::new();
        output.bytes_mut().resize(len, 0);
        output
    };
    let shared = |len| {
        let mut output = plain(1);
        output.push(Item::Shared(Shared::Block(Rc::new(vec![0; len].into()))));
        output
    };
    Ok(reports_short_sends(ring, plain)? && reports_short_sends(ring, shared)?)
}

/// Sends a short and a long output to a small buffer; returns whether only the second one is reported.
fn reports_short_sends(ring: &mut Ring, output: impl Fn(usize) -> Output) -> io::Result<bool> {
    let (ours, _theirs) = UnixStream::pair()?;
    set_socket_send_buffer_size(&ours, 0)?; // the system rounds it up
    let fd = Fd(ours.as_raw_fd());
    let mut results = Vec::new();
    for len in [1, TRIAL_SEND_BYTES] {
        ring.send_silently(Token::new(0, 0), fd, &mut output(len));
        ring.enter(Some(Duration::ZERO))?;
        while let Some(done) = ring.take() {
            if done.purpose() == Purpose::Silent {
                results.push(done.result());
                ring.reclaim_unsent(done);
            }
        }
        ring.settle(|_, _| {});
    }
    Ok(matches!(results[..], [Ok(sent)] if (1..TRIAL_SEND_BYTES).contains(&(sent as usize))))
}
