//! `[server]` and `[logging]`.

use std::time::Duration;

use crate::rules::{Choice, Choices, Flag, Integer, Optional, Period};
use crate::section::section;

section! {
    /// Worker threads, the port and kernel options.
    Server {
        workers: u16 = 0, Integer(0..=1024),
            "Worker threads. 0: one per core that the process may use.";
        http_port: Option<u16> = None, Optional(Integer(0..=65_535)),
            "Port to listen on, on every address of the machine, IPv4 and IPv6. 0 picks a free port. Without this key and without \
             `[[listen]]`, the server listens on 127.0.0.1:8080.";
        tcp_nodelay: bool = true, Flag,
            "Sends small writes at once (TCP_NODELAY). If off, short responses may wait for an acknowledgement.";
        tcp_keepalive: bool = false, Flag,
            "Lets the kernel detect dead clients (SO_KEEPALIVE).";
        trusted_gateway: bool = false, Flag,
            "Accepts `https://` request targets, which otherwise get 421. Only for servers that nothing but a TLS-terminating gateway \
             can reach; most gateways send plain paths and don't need it.";
        backlog: u32 = 4096, Integer(1..=2_147_483_647),
            "Length of the accept queue, per worker. The kernel caps it (net.core.somaxconn); the start report shows the effective value.";
        driver: Driver = Driver::Auto, Choice,
            "Kernel interface for events. \"auto\" picks the best available; any other is an error if unavailable.";
        accept: Accept = Accept::Reuseport, Choice,
            "How connections reach workers: \"reuseport\" gives each worker a listener, \"dispatch\" uses one acceptor for all.";
        order: Order = Order::Fifo, Choice,
            "Scheduling order of connections with more pending requests than one turn allows. \"lifo\" is bounded, so that none starves.";
        pin: bool = false, Flag,
            "Pins each worker to its own core.";
        drain_timeout: Duration = Duration::from_secs(30), Period(0..=86_400_000),
            "Maximum duration of a graceful shutdown, in which requests in flight are answered. Connections that remain are closed and \
             counted in the log.";
    }

    fn example() -> Self {
        Self { http_port: Some(8080), ..Self::default() }
    }
}

/// Kernel interface for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// The best available.
    Auto,
    /// Linux's epoll.
    Epoll,
    /// Linux's io_uring.
    Uring,
    /// kqueue of macOS and the BSDs.
    Kqueue,
}

/// Distribution of connections over workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// A listener per worker; the kernel distributes connections.
    Reuseport,
    /// One acceptor distributes connections round-robin.
    Dispatch,
}

/// Scheduling order of connections with more pending requests than one turn allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The longest waiting first.
    Fifo,
    /// The most recent first, with a bound against starvation.
    Lifo,
}

impl Choices for Order {
    const ALL: &'static [(&'static str, Self)] = &[("fifo", Self::Fifo), ("lifo", Self::Lifo)];
}

impl Choices for Driver {
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("epoll", Self::Epoll), ("uring", Self::Uring), ("kqueue", Self::Kqueue)];
}

impl Choices for Accept {
    const ALL: &'static [(&'static str, Self)] =
        &[("reuseport", Self::Reuseport), ("dispatch", Self::Dispatch)];
}

section! {
    /// Messages on standard error.
    Logging {
        level: Level = Level::Info, Choice,
            "Least severe messages to log to standard error while serving. The start report, warnings about the configuration and startup \
             errors are always printed.";
    }
}

/// Severity of log messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No messages.
    Off,
    /// Failures.
    Error,
    /// Problems that need attention.
    Warn,
    /// Normal operation.
    Info,
    /// Everything.
    Debug,
}

impl Choices for Level {
    const ALL: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];
}
