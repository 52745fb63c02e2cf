//! The rungs, in order. Each file but the last is a whole server; compare neighbours with `diff`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

#[path = "02_buffered.rs"]
mod buffered;
#[path = "08_cores.rs"]
mod cores;
#[path = "06_event_loop.rs"]
mod event_loop;
#[path = "11_guided.rs"]
mod guided;
#[path = "10_io_uring.rs"]
mod io_uring;
#[path = "04_keep_alive.rs"]
mod keep_alive;
#[path = "01_naive.rs"]
mod naive;
#[path = "07_no_repetition.rs"]
mod no_repetition;
#[path = "09_prebuilt.rs"]
mod prebuilt;
#[path = "05_threads.rs"]
mod threads;
#[path = "03_views.rs"]
mod views;

/// One server of the ladder.
pub(crate) struct Rung {
    pub(crate) name: &'static str,
    pub(crate) idea: &'static str,
    /// Serves until it fails.
    pub(crate) serve: fn(SocketAddr) -> io::Result<Infallible>,
}

impl Rung {
    const fn new(
        name: &'static str,
        idea: &'static str,
        serve: fn(SocketAddr) -> io::Result<Infallible>,
    ) -> Self {
        Self { name, idea, serve }
    }
}

/// All rungs; a rung's number is its place, counted from 1.
pub(crate) const RUNGS: [Rung; 11] = [
    Rung::new("naive", "a system call for each byte received and each piece sent", naive::serve),
    Rung::new("buffered", "a system call for all bytes that have arrived, one to respond", buffered::serve),
    Rung::new("views", "no copies: requests stay where they arrived, responses where they are", views::serve),
    Rung::new("keep-alive", "many requests on one connection", keep_alive::serve),
    Rung::new("threads", "a thread for each connection, a listener for each core", threads::serve),
    Rung::new(
        "event-loop",
        "one thread serves all connections; one write for many requests",
        event_loop::serve,
    ),
    Rung::new("no-repetition", "no byte is searched twice, no socket registered twice", no_repetition::serve),
    Rung::new("cores", "an event loop for each core, pinned to it", cores::serve),
    Rung::new("prebuilt", "nothing allocated per request, responses encoded once a second", prebuilt::serve),
    Rung::new("io-uring", "one system call per turn, for all connections", io_uring::serve),
    Rung::new("guided", "rung 10, built with a profile of how it runs and another allocator", guided::serve),
];
