//! How a server is set up.

use std::fmt;
use std::net::SocketAddr;

use shearwater_tasks::Order;

use crate::limits::{Limits, Timeouts};
use crate::listen_address::ListenAddress;
use crate::listening_socket::ListeningSocket;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub listen: Vec<ListenAddress>,
    /// Sockets that listen already.
    pub sockets: Vec<ListeningSocket>,
    /// How connections get to the workers.
    pub accept: AcceptMode,
    /// Threads that serve; 0: one per core that the process may use.
    pub workers: usize,
    /// Which driver.
    pub driver: DriverChoice,
    /// Whether each worker keeps to one core.
    pub pin: bool,
    /// Connections that may wait to be accepted, per listener; the kernel has its own bound.
    pub backlog: u32,
    /// How connections of TCP behave.
    pub tcp: TcpOptions,
    /// What a worker holds back.
    pub limits: Limits,
    /// How long a worker waits.
    pub timeouts: Timeouts,
    /// Serves `https://` targets: every connection comes from a trusted gateway that terminates TLS. Without it they get a `421` (RFC 9110
    /// section 7.4). Schemes other than `http` and `https` always do.
    pub trusted_gateway: bool,
    /// In which order what is ready goes on.
    pub order: Order,
    /// How often it is looked whether a handler keeps a worker, in milliseconds; 0: never.
    pub watchdog_ms: u64,
    /// Called on a worker's own thread when no connection has said anything for [`REST_AFTER_MS`](crate::limits::REST_AFTER_MS) and the worker has
    /// given back its own memory of a busier moment ([`REST_EVENTS_MIN`](crate::limits::REST_EVENTS_MIN) events since it last did): the place
    /// for a word to an allocator that keeps what was freed. Tasks that only sleep and calculate meanwhile don't keep it from that.
    /// It should take milliseconds at most; a panic is printed and otherwise ignored.
    pub at_rest: Option<fn()>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 8080)).into()],
            sockets: Vec::new(),
            accept: AcceptMode::default(),
            workers: 0,
            driver: DriverChoice::Auto,
            pin: false,
            backlog: 4096,
            tcp: TcpOptions::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            trusted_gateway: false,
            order: Order::Fifo,
            watchdog_ms: 1000,
            at_rest: None,
        }
    }
}

/// How connections of TCP behave. Set on the listeners, from which they inherit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// `TCP_NODELAY`: a small answer leaves at once. Without it the kernel may hold the last piece of an answer back until the one before
    /// is acknowledged, 40 ms and more. Default: on.
    pub nodelay: bool,
    /// `SO_KEEPALIVE`: a client that is silent is asked whether it is still there: after [`KEEPALIVE_IDLE_S`] for the first
    /// time, then every [`KEEPALIVE_INTERVAL_S`], [`KEEPALIVE_PROBES`] times in vain. Default: off, since a server's own times are shorter.
    ///
    /// [`KEEPALIVE_IDLE_S`]: shearwater_io::limits::KEEPALIVE_IDLE_S
    /// [`KEEPALIVE_INTERVAL_S`]: shearwater_io::limits::KEEPALIVE_INTERVAL_S
    /// [`KEEPALIVE_PROBES`]: shearwater_io::limits::KEEPALIVE_PROBES
    pub keepalive: bool,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self { nodelay: true, keepalive: false }
    }
}

/// How connections get to the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum AcceptMode {
    /// Each worker listens by itself, and the kernel spreads connections over them by their addresses and ports
    /// (`SO_REUSEPORT`). Accepting costs no hand-over, and worker and connection stay on one core.
    #[default]
    Reuseport,
    /// One thread accepts and hands connections to the workers in turn, in batches: each gets as many as the others, whatever their
    /// addresses are, and who is busy is passed over.
    Dispatch,
}

impl fmt::Display for AcceptMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reuseport => "reuseport",
            Self::Dispatch => "dispatch",
        })
    }
}

/// Which driver to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum DriverChoice {
    /// The best that works here; it is reported which.
    #[default]
    Auto,
    /// `epoll`, on Linux.
    Epoll,
    /// `io_uring`, on Linux.
    Uring,
    /// `kqueue`, on macOS and the BSDs.
    Kqueue,
}
