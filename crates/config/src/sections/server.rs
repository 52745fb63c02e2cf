//! `[server]`: threads, the port, the kernel.

use crate::fields::{Fields, Visit};
use crate::rules::{Choice, Choices, Flag, Integer, Optional};

/// Threads, the port, the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Threads that serve; 0: one per core that the process may use.
    pub workers: u16,
    /// A port on all addresses of the machine, IPv4 and IPv6.
    pub http_port: Option<u16>,
    /// `TCP_NODELAY` for each connection.
    pub tcp_nodelay: bool,
    /// `SO_KEEPALIVE` for each connection.
    pub tcp_keepalive: bool,
    /// Serves `https://` targets: a trusted gateway in front terminates TLS.
    pub trusted_gateway: bool,
    /// Connections that may wait to be accepted, per worker.
    pub backlog: u32,
    /// How to wait for the kernel.
    pub driver: Driver,
    /// How connections come to workers.
    pub accept: Accept,
    /// In which order what is ready goes on.
    pub order: Order,
    /// Whether each worker keeps to one core.
    pub pin: bool,
    /// Seconds that ending may take before what is left is cut off.
    pub drain_s: u32,
}

/// How to wait for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// The best that works here.
    Auto,
    /// Linux's epoll.
    Epoll,
    /// Linux's io_uring.
    Uring,
    /// The kqueue of macOS and the BSDs.
    Kqueue,
}

/// How connections come to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// A listener per worker; the kernel spreads connections over them.
    Reuseport,
    /// One acceptor hands connections to workers in turn.
    Dispatch,
}

/// In which order what is ready goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Who has waited longest.
    Fifo,
    /// Who came last, a few in a row at most.
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

impl Default for Server {
    fn default() -> Self {
        Self {
            workers: 0,
            http_port: None,
            tcp_nodelay: true,
            tcp_keepalive: false,
            trusted_gateway: false,
            backlog: 4096,
            driver: Driver::Auto,
            accept: Accept::Reuseport,
            order: Order::Fifo,
            pin: false,
            drain_s: 30,
        }
    }
}

impl Fields for Server {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "workers",
            "Threads that serve; 0: one for each core that the process may use.",
            Integer(0..=1024),
            &mut self.workers,
        );
        visit.field(
            "http_port",
            "A port to listen on, on all addresses of the machine, IPv4 and IPv6; 0 takes a free one. \
             Without it and without [[listen]]: 127.0.0.1:8080.",
            Optional(Integer(0..=65_535)),
            &mut self.http_port,
        );
        visit.field(
            "tcp_nodelay",
            "Whether what is written is sent at once (TCP_NODELAY). Without, short answers may wait for an acknowledgement.",
            Flag,
            &mut self.tcp_nodelay,
        );
        visit.field(
            "tcp_keepalive",
            "Whether the kernel finds out that a silent client is gone (SO_KEEPALIVE).",
            Flag,
            &mut self.tcp_keepalive,
        );
        visit.field(
            "trusted_gateway",
            "Whether all connections come from a trusted gateway that terminates TLS and may send https:// targets: they are served then, \
             else they get 421. A gateway that sends paths, as most do, needs no setting.",
            Flag,
            &mut self.trusted_gateway,
        );
        visit.field(
            "backlog",
            "Connections that may wait to be accepted, per worker. The kernel has its own bound (net.core.somaxconn); \
             what it gives is told at the start.",
            Integer(1..=2_147_483_647),
            &mut self.backlog,
        );
        visit.field(
            "driver",
            "How to wait for the kernel. One that was asked for and isn't there is an error.",
            Choice,
            &mut self.driver,
        );
        visit.field(
            "accept",
            "How connections come to workers: a listener each (reuseport), or one acceptor that hands them round (dispatch).",
            Choice,
            &mut self.accept,
        );
        visit.field(
            "order",
            "Who goes on first among those on a worker that have more to be answered than fits a turn: who has waited longest (fifo), or who came last (lifo). \
             Nobody is left out.",
            Choice,
            &mut self.order,
        );
        visit.field("pin", "Whether each worker keeps to a core of its own.", Flag, &mut self.pin);
        visit.field(
            "drain_s",
            "Seconds that ending may take, so that every request received is answered; then what is left is cut off, and counted in a line.",
            Integer(0..=86_400),
            &mut self.drain_s,
        );
    }

    fn example() -> Self {
        Self { http_port: Some(8080), ..Self::default() }
    }
}
