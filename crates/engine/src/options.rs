//! How a server is set up.

use std::net::SocketAddr;

use crate::limits::{Limits, Timeouts};

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Addresses to listen on. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Threads that serve; 0: one per core that the process may use.
    pub workers: usize,
    /// Which driver.
    pub driver: DriverChoice,
    /// Whether each worker keeps to one core.
    pub pin: bool,
    /// Connections that may wait to be accepted, per worker; the kernel has its own bound.
    pub backlog: u32,
    /// What a worker holds back.
    pub limits: Limits,
    /// How long a worker waits.
    pub timeouts: Timeouts,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 8080))],
            workers: 0,
            driver: DriverChoice::Auto,
            pin: false,
            backlog: 4096,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
        }
    }
}

/// Which driver to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
