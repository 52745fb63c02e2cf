//! Reports to the operator, and their texts.

use std::fmt;
use std::path::PathBuf;

use shearwater_http1::visible::OneLine;
use shearwater_io::AcceptError;

/// A report to the operator. A state is reported when it begins and when it ends. Faults that clients can
/// provoke are reported at most once a second for each kind, with the number of suppressed ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Accepting has paused; connections wait.
    AcceptPaused {
        /// Number of the worker.
        worker: usize,
        /// The cause.
        error: AcceptError,
    },
    /// A connection waits because all workers together hold
    /// [`Limits::connections_max`](crate::Limits::connections_max) connections. Idle ones are closed to make room.
    Full {
        /// Number of the worker.
        worker: usize,
        /// The limit.
        connections_max: usize,
    },
    /// Accepting has resumed.
    AcceptResumed {
        /// Number of the worker.
        worker: usize,
    },
    /// The acceptor has paused; connections wait.
    AcceptorPaused {
        /// The cause.
        error: AcceptError,
    },
    /// The acceptor has resumed.
    AcceptorResumed,
    /// A listener was shut down from outside and accepts no more connections. Reported once for each; the
    /// others are not affected.
    ListenerFailed {
        /// Worker that owns it; `None` for the acceptor.
        worker: Option<usize>,
        /// Address of the listener.
        address: String,
        /// Error number of the failed accept.
        errno: i32,
    },
    /// A handler panicked. Reported at most once a second per source location.
    HandlerPanicked {
        /// Number of the worker.
        worker: usize,
        /// Method and path of the request; `None` if the task panicked after its response.
        request: Option<String>,
        /// Panic message.
        message: String,
        /// File, line and column of the panic, if known.
        place: Option<String>,
        /// Suppressed panics of this location since the last report.
        left_out: u64,
    },
    /// A handler built an invalid response: the client got a `500`, or a truncated response. Reported at most
    /// once a second.
    HandlerMisbuilt {
        /// Number of the worker.
        worker: usize,
        /// The reason why it is invalid.
        message: String,
        /// Suppressed reports since the last one.
        left_out: u64,
    },
    /// A file can't be sent. Reported at most once a second per reason.
    FileFailed {
        /// Number of the worker.
        worker: usize,
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        error: String,
        /// Status that the client got.
        status: u16,
        /// Suppressed reports since the last one.
        left_out: u64,
    },
    /// A file couldn't be sent to its end: its client got less than was promised, and its connection was closed. Reported
    /// at most once a second per reason.
    FileCutShort {
        /// Number of the worker.
        worker: usize,
        /// The reason.
        error: String,
        /// Suppressed reports since the last one.
        left_out: u64,
    },
    /// A connection was reset because it doesn't begin with a PROXY header of a trusted proxy. Reported at most once a
    /// second per reason.
    ProxyRejected {
        /// Number of the worker.
        worker: usize,
        /// Address of the peer.
        peer: String,
        /// The reason.
        why: String,
        /// A remedy.
        help: &'static str,
        /// Suppressed reports since the last one.
        left_out: u64,
    },
    /// A connection to an address with plain HTTP/1 began with another protocol, and got a `400`. Reported at most once a
    /// second per protocol.
    OtherProtocol {
        /// Number of the worker.
        worker: usize,
        /// Name of the protocol: `TLS` or `HTTP/2`.
        protocol: &'static str,
        /// Suppressed reports since the last one.
        left_out: u64,
    },
    /// A streamed body was rejected with `413` because it exceeds
    /// [`Limits::body_bytes_max`](crate::Limits::body_bytes_max). Reported once per worker.
    BodyTooLarge {
        /// Number of the worker.
        worker: usize,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// Unfinished requests hold [`Limits::buffered_bytes_max`](crate::Limits::buffered_bytes_max) bytes: a connection
    /// got a `503`, or was reset or closed. Reported at most once a second.
    BuffersFull {
        /// Number of the worker.
        worker: usize,
        /// The limit, in bytes.
        bytes_max: usize,
        /// Suppressed reports since the last one.
        left_out: u64,
    },
    /// A handler blocks its worker: it computes, or waits outside of its [`Call`](crate::Call). Rate-limited.
    WorkerBlocked {
        /// Number of the worker.
        worker: usize,
        /// Minimum duration so far, in milliseconds.
        ms: u64,
        /// Occurrences since the last report, including this one.
        times: u64,
    },
    /// The handler of this request was the one of the last [`WorkerBlocked`](Self::WorkerBlocked). Sent once it returns.
    BlockedBy {
        /// Number of the worker.
        worker: usize,
        /// Method and path.
        request: String,
    },
    /// A worker keeps its service, because creating the one of a [reload](crate::Control::reload) has panicked.
    ReloadFailed {
        /// Number of the worker.
        worker: usize,
        /// Panic message.
        message: String,
        /// File, line and column of the panic, if known.
        place: Option<String>,
    },
    /// The service manager doesn't know the process that has taken the place of this one.
    SuccessorUnannounced {
        /// Number of the process.
        process: u32,
        /// The reason.
        error: String,
    },
    /// The process that has taken the place of this one has ended with an error.
    SuccessorFailed {
        /// Number of the process.
        process: u32,
        /// Its exit status.
        status: String,
    },
    /// A drain has been ordered.
    Draining {
        /// Limit for the drain, in milliseconds.
        drain_ms: u64,
    },
    /// An immediate stop has been ordered.
    Stopping,
    /// A worker that stops has closed connections during a request or response: the drain timed out, or the
    /// stop was immediate.
    CutOff {
        /// Number of the worker.
        worker: usize,
        /// Number of connections.
        connections: usize,
    },
    /// A worker that ends has dropped tasks of its [host](crate::Host): the drain timed out, or the stop was immediate.
    TasksCutOff {
        /// Number of the worker.
        worker: usize,
        /// Number of tasks.
        tasks: usize,
    },
    /// The acceptor has ended.
    AcceptorEnded {
        /// The error, if it has failed.
        error: Option<String>,
    },
    /// A worker has ended.
    WorkerEnded {
        /// Number of the worker.
        worker: usize,
        /// The error, if it has failed.
        error: Option<String>,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AcceptPaused { worker, error } => {
                write!(f, "worker {worker} accepts no connections for now: {}{WAIT}", why(*error))
            }
            Self::Full { worker, connections_max } => {
                write!(
                    f,
                    "worker {worker} accepts no connections for now: the server holds {connections_max}, its max_connections; idle ones are closed to make room"
                )
            }
            Self::AcceptorPaused { error } => {
                write!(f, "no connections are accepted for now: {}{WAIT}", why(*error))
            }
            Self::AcceptorResumed => f.write_str("connections are accepted again"),
            Self::ListenerFailed { worker, address, errno } => {
                let (worker, error) = (InWorker(*worker), std::io::Error::from_raw_os_error(*errno));
                write!(f, "{worker}no connections are accepted at {address} any more ({error})")
            }
            Self::AcceptResumed { worker } => write!(f, "worker {worker} accepts connections again"),
            Self::HandlerPanicked { worker, request, message, place, left_out } => {
                let (request, panic) = (Named(request), Panicked(message, place));
                write!(f, "worker {worker}: {request}a handler {panic}{HANDLER_FAILED}{}", LeftOut(*left_out))
            }
            Self::HandlerMisbuilt { worker, message, left_out } => {
                write!(f, "worker {worker}: {}{HANDLER_FAILED}{}", Line(message), LeftOut(*left_out))
            }
            Self::FileFailed { worker, path, error, status, left_out } => {
                // Debug formatting escapes line ends in file names.
                write!(f, "worker {worker}: can't send {path:?}: {}", Line(error))?;
                write!(f, "; its client got a {status}{}", LeftOut(*left_out))
            }
            Self::FileCutShort { worker, error, left_out } => {
                write!(f, "worker {worker}: the rest of a file can't be sent: {error}")?;
                write!(f, "; its connection was closed{}", LeftOut(*left_out))
            }
            Self::ProxyRejected { worker, peer, why, help, left_out } => {
                write!(f, "worker {worker}: {}", Reset { peer, why, left_out: *left_out, help })
            }
            Self::OtherProtocol { worker, protocol, left_out } => {
                write!(f, "worker {worker}: {}{}", OtherProtocol(protocol), LeftOut(*left_out))
            }
            Self::BodyTooLarge { worker, bytes_max } => {
                write!(
                    f,
                    "worker {worker}: a request got a 413: its body is longer than body_bytes_max ({bytes_max} bytes)"
                )
            }
            Self::BuffersFull { worker, bytes_max, left_out } => {
                write!(f, "worker {worker}: {FULL} ({bytes_max} bytes; {RAISE}){}", LeftOut(*left_out))
            }
            Self::WorkerBlocked { worker, ms, times } => {
                write!(
                    f,
                    "worker {worker}: a handler has blocked it for {ms} ms or more; its other clients wait"
                )?;
                if *times > 1 { write!(f, " ({times} times since the last report)") } else { Ok(()) }
            }
            Self::BlockedBy { worker, request } => {
                write!(f, "worker {worker}: the handler of {} has blocked it", OneLine(request))
            }
            Self::ReloadFailed { .. }
            | Self::SuccessorFailed { .. }
            | Self::SuccessorUnannounced { .. }
            | Self::Draining { .. }
            | Self::Stopping
            | Self::CutOff { .. }
            | Self::TasksCutOff { .. }
            | Self::AcceptorEnded { .. }
            | Self::WorkerEnded { .. } => self.fmt_end(f),
        }
    }
}

impl Notice {
    /// Formats a notice of a reload, of the end of a server, or of the process in its place.
    fn fmt_end(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReloadFailed { worker, message, place } => {
                write!(f, "worker {worker} {KEEPS_SERVICE} {}", Panicked(message, place))
            }
            Self::SuccessorUnannounced { process, error } => {
                write!(f, "can't notify the service manager of process {process}: {error}; {UNANNOUNCED}")
            }
            Self::SuccessorFailed { process, status } => {
                write!(f, "process {process}, which had taken over, has failed ({status})")
            }
            Self::Draining { drain_ms } => {
                let seconds = drain_ms.div_ceil(1000);
                write!(
                    f,
                    "draining: responding to received requests for up to {seconds} s (repeat to stop at once)"
                )
            }
            Self::Stopping => f.write_str("stopping at once"),
            Self::CutOff { worker, connections } => {
                write!(f, "worker {worker} has cut off {connections} connections {UNFINISHED}")
            }
            Self::TasksCutOff { worker, tasks } => {
                write!(f, "worker {worker} has dropped spawned tasks that hadn't ended: {tasks}")
            }
            Self::AcceptorEnded { error: None } => f.write_str("the acceptor has ended"),
            Self::AcceptorEnded { error: Some(error) } => write!(f, "the acceptor has failed: {error}"),
            Self::WorkerEnded { worker, error: None } => write!(f, "worker {worker} has ended"),
            Self::WorkerEnded { worker, error: Some(error) } => {
                write!(f, "worker {worker} has failed: {error}")
            }
            _ => Ok(()),
        }
    }
}

/// Consequence of a process that the service manager doesn't know, and a remedy.
const UNANNOUNCED: &str = "systemd may end the service with this process; help: restart the service";

/// Suffix of reports about connections that were cut off.
const UNFINISHED: &str = "during a request or response";

/// Suffix of reports about paused accepting.
const WAIT: &str = "; new ones wait";

/// Parts of reports about full buffers.
const FULL: &str = "a connection was rejected: unfinished requests hold buffered_bytes_max";
const RAISE: &str = "raise it, or the memory that the server may use";

/// A part of reports about failed reloads.
const KEEPS_SERVICE: &str = "keeps its old service: the function that makes the new one";

/// Suffix of reports about failed handlers.
const HANDLER_FAILED: &str = "; its client got a 500, or what had been sent by then";

/// Untrusted text on one line. Backslashes are escaped, too: whoever sent it can't write an escape.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        OneLine(&self.0.replace('\\', r"\\")).fmt(f)
    }
}

/// Message and location of a panic.
struct Panicked<'a>(&'a str, &'a Option<String>);

impl fmt::Display for Panicked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked ({})", Line(self.0))?;
        self.1.iter().try_for_each(|place| write!(f, " at {}", Line(place)))
    }
}

/// Prefix that names the worker of a report, if there is one.
struct InWorker(Option<usize>);

impl fmt::Display for InWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|worker| write!(f, "worker {worker}: "))
    }
}

/// Prefix that names the request of a report, if it is known.
struct Named<'a>(&'a Option<String>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|request| write!(f, "{}: ", Line(request)))
    }
}

/// A connection that was reset, with the reason and a remedy.
struct Reset<'a> {
    peer: &'a str,
    why: &'a str,
    left_out: u64,
    help: &'a str,
}

impl fmt::Display for Reset<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { peer, why, help, .. }, left_out) = (self, LeftOut(self.left_out));
        write!(f, "reset a connection from {peer}: {why}{left_out}; help: {help}")
    }
}

/// A client with another protocol than that of its port.
struct OtherProtocol<'a>(&'a str);

impl fmt::Display for OtherProtocol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a client spoke {} to a port that takes plain HTTP/1 only; ", self.0)?;
        f.write_str("help: clients use http:// here, or the port of https")
    }
}

/// Suffix with the number of suppressed reports.
struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} more like it)"),
        }
    }
}

/// Describes the resource that has run out.
fn why(error: AcceptError) -> &'static str {
    match error {
        AcceptError::ProcessDescriptors => "its share of descriptors is used up (raise the limit: ulimit -n)",
        AcceptError::SystemFiles => "the system has no file left (fs.file-max)",
        AcceptError::Memory => "the system has no memory left for sockets",
        AcceptError::Other { .. } => "the system refused, for a reason unknown here",
    }
}
