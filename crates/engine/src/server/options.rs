//! Configuration of a server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use shearwater_tasks::Order;

use crate::limits::{Limits, Timeouts};
use crate::observe::finished::ExchangeListener;
use crate::proxies::ProxyOptions;
use crate::server::addresses::PassedListener;
use crate::server::addresses::{ListenAddress, ListeningSocket};
use crate::server::host::Host;

/// Configuration of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Addresses to listen on.
    pub listen: Vec<ListenAddress>,
    /// Sockets that are already listening.
    pub sockets: Vec<ListeningSocket>,
    /// Sockets of another process of this server, which are taken instead of binding their addresses.
    pub passed: Vec<PassedListener>,
    /// Distribution of connections to the workers.
    pub accept: AcceptMode,
    /// Number of workers; 0: one per core that the process may use.
    pub workers: usize,
    /// Driver to use.
    pub driver: DriverChoice,
    /// Pins each worker to a core.
    pub pin: bool,
    /// Connections that may wait to be accepted, per listener; the kernel has its own limit.
    pub backlog: u32,
    /// Options of TCP connections.
    pub tcp: TcpOptions,
    /// Limits of each worker.
    pub limits: Limits,
    /// Timeouts of each worker.
    pub timeouts: Timeouts,
    /// HTTP/2.
    pub http2: Http2Options,
    /// Proxies in front of the server. Only they may send `https://` targets: others get a `421` (RFC 9110 section 7.4), and
    /// so does every scheme but `http` and `https`.
    pub proxies: ProxyOptions,
    /// Scheduling order of ready connections and tasks.
    pub order: Order,
    /// Interval at which the watchdog checks for blocked workers, in milliseconds; 0: never.
    pub watchdog_ms: u64,
    /// Called on a worker's own thread after an idle trim: when no event has occurred for
    /// [`IDLE_TRIM_AFTER_MS`](crate::limits::IDLE_TRIM_AFTER_MS) and the worker has freed its spare memory, after at
    /// least [`IDLE_TRIM_EVENTS_MIN`](crate::limits::IDLE_TRIM_EVENTS_MIN) events. Can be used to trim an allocator.
    /// Tasks that only sleep and compute don't prevent it. It should return within milliseconds; a panic is
    /// printed and otherwise ignored.
    pub at_rest: Option<fn()>,
    /// Listeners for finished exchanges. Without any, exchanges cost nothing.
    pub listeners: Vec<ExchangeListener>,
    /// Event loop that the workers are run within. Default: none, each waits by itself.
    pub host: Option<Arc<dyn Host>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 8080)).into()],
            sockets: Vec::new(),
            passed: Vec::new(),
            accept: AcceptMode::default(),
            workers: 0,
            driver: DriverChoice::Auto,
            pin: false,
            backlog: 4096,
            tcp: TcpOptions::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            http2: Http2Options::default(),
            proxies: ProxyOptions::default(),
            order: Order::Fifo,
            watchdog_ms: 1000,
            at_rest: None,
            listeners: Vec::new(),
            host: None,
        }
    }
}

/// Options of HTTP/2 (RFC 9113). Connections with TLS negotiate it if its name, `h2`, is among the protocols of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Options {
    /// Serves HTTP/2 on connections without TLS, to clients that begin with it ("prior knowledge", RFC 9113 section 3.3).
    /// Default: off, such a client gets a `400` in HTTP/1.1.
    pub prior_knowledge: bool,
    /// Requests of a connection at a time; beyond, REFUSED_STREAM. Default 100; usable 1 to 10,000.
    pub streams_max: u32,
}

impl Default for Http2Options {
    fn default() -> Self {
        Self { prior_knowledge: false, streams_max: 100 }
    }
}

/// Options of TCP connections, set on the listeners and inherited from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// `TCP_NODELAY`: sends small responses at once. Without it the kernel may delay the last segment of a
    /// response until the one before is acknowledged, for 40 ms and more. Default: on.
    pub nodelay: bool,
    /// `SO_KEEPALIVE`: probes silent clients first after [`KEEPALIVE_IDLE_S`], then every
    /// [`KEEPALIVE_INTERVAL_S`], up to [`KEEPALIVE_PROBES`] times. Default: off, since a server's own
    /// timeouts are shorter.
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

/// Distribution of connections to the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum AcceptMode {
    /// Each worker has its own listener, and the kernel distributes connections by a hash of addresses and
    /// ports (`SO_REUSEPORT`). There is no hand-over between threads, and worker and connection stay on one
    /// core.
    #[default]
    Reuseport,
    /// One thread accepts and hands connections to the workers in turn, in batches. All workers get equally
    /// many, whatever the addresses; busy workers are skipped.
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

/// Driver to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum DriverChoice {
    /// `io_uring` if it works here, else `epoll` or `kqueue`; the choice and its reason are reported.
    #[default]
    Auto,
    /// `epoll`, on Linux.
    Epoll,
    /// `io_uring`, on Linux.
    Uring,
    /// `kqueue`, on macOS and the BSDs.
    Kqueue,
}
