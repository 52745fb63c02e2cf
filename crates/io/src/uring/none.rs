//! Replaces io_uring on other systems: refuses to start.

use std::fmt;
use std::io;

use crate::sim::Sim;
use crate::{Driver, Entrances};

pub use crate::driver::UringOptions;

/// Name of this driver.
pub const NAME: &str = "uring";

/// Optional features found: never constructed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {}

impl Report {
    /// Returns whether idle connections need no descriptor.
    #[must_use]
    pub fn stores_files(&self) -> bool {
        match *self {}
    }
}

impl fmt::Display for Report {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// Reason why io_uring is unavailable. Displays as one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it needs Linux")
    }
}

impl std::error::Error for Unavailable {}

/// Fails: there is no io_uring.
///
/// # Errors
/// Always.
pub fn probe() -> Result<Report, Unavailable> {
    Err(Unavailable)
}

/// Fails: there is no io_uring.
///
/// # Errors
/// Always.
pub fn probe_for(_workers: usize) -> Result<Report, Unavailable> {
    Err(Unavailable)
}

/// Fails: there is no io_uring.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn start(_entrances: Entrances, _options: UringOptions) -> io::Result<impl Driver> {
    Err::<Sim, _>(io::Error::new(io::ErrorKind::Unsupported, Unavailable))
}
