//! The command line, exactly as it is typed.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use shearwater::{AcceptMode, DriverChoice};

const EXAMPLES: &str = "\
Examples:
  shearwater                            serve ./public, or a welcome page, on http://127.0.0.1:8080
  shearwater ./site                     serve the folder ./site
  shearwater ./site --listen [::]:80    to everyone, on port 80
  shearwater ./site --listen 127.0.0.1:0 --workers 1

A folder is answered with its index.html. Nothing outside of the folder is ever served.
Ctrl-C (SIGINT) or SIGTERM: no new connections, every request received is answered, then it ends;
a second one ends at once. SIGUSR1: a line on what it has done so far and which limits were
reached, as at its end. Exit codes: 0 served and ended, 1 a worker failed, 2 could not start.";

/// Serves a folder over HTTP/1.1, at the kernel's own limit.
#[derive(Debug, Parser)]
#[command(name = "shearwater", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Args {
    /// The folder to serve. Without it: ./public if there is one, else a welcome page
    pub(crate) dir: Option<PathBuf>,

    /// Address and port to listen on, or unix:PATH; port 0 takes a free one
    #[arg(long, short, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,

    /// Threads that serve; 0 is one per core
    #[arg(long, short, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) workers: u16,

    /// How to wait for the kernel
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Driver::Auto)]
    pub(crate) driver: Driver,

    /// How connections get to the workers
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Accept::Reuseport)]
    pub(crate) accept: Accept,

    /// Keep each worker on its own core
    #[arg(long)]
    pub(crate) pin: bool,

    /// Seconds that ending may take before what is left is cut off
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain: u32,
}

/// The names of drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Driver {
    /// The best that works here
    Auto,
    /// Linux's epoll
    Epoll,
    /// Linux's io_uring
    Uring,
    /// The kqueue of macOS and the BSDs
    Kqueue,
}

/// The names of accept modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Accept {
    /// Each worker listens by itself
    Reuseport,
    /// One thread accepts and hands connections out in turn
    Dispatch,
}

impl From<Accept> for AcceptMode {
    fn from(accept: Accept) -> Self {
        match accept {
            Accept::Reuseport => Self::Reuseport,
            Accept::Dispatch => Self::Dispatch,
        }
    }
}

impl From<Driver> for DriverChoice {
    fn from(driver: Driver) -> Self {
        match driver {
            Driver::Auto => Self::Auto,
            Driver::Epoll => Self::Epoll,
            Driver::Uring => Self::Uring,
            Driver::Kqueue => Self::Kqueue,
        }
    }
}
