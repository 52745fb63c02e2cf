//! io_uring is Linux's: here it can be asked for, and is refused.

use std::fmt;
use std::io;

use crate::poll::Poll;
use crate::{Driver, Entrances};

pub use crate::uring_options::UringOptions;

/// The name of this driver.
pub const NAME: &str = "uring";

/// What was found: nothing, ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {}

impl fmt::Display for Report {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// Why io_uring can't be used. Displays as one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is Linux's")
    }
}

impl std::error::Error for Unavailable {}

/// Says that it isn't there.
///
/// # Errors
/// Always.
pub fn probe() -> Result<Report, Unavailable> {
    Err(Unavailable)
}

/// Starts none.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn start(_entrances: Entrances, _options: UringOptions) -> io::Result<impl Driver> {
    Err::<Poll, _>(io::Error::new(io::ErrorKind::Unsupported, Unavailable))
}
