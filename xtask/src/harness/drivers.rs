//! Which of the server's drivers a command tries, one run each.

/// The drivers to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Drivers {
    /// epoll alone
    Epoll,
    /// io_uring alone
    Uring,
    /// First epoll, then io_uring
    Both,
}

impl Drivers {
    /// Their names, as the server's own settings know them.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Epoll => &["epoll"],
            Self::Uring => &["uring"],
            Self::Both => &["epoll", "uring"],
        }
    }
}
