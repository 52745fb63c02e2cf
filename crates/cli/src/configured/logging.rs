//! `[logging]`: what is said on standard error.

use shearwater::Verbosity;
use shearwater_config::{Level, Logging};

/// What is said.
pub(crate) fn verbosity(logging: &Logging) -> Verbosity {
    match logging.level {
        Level::Off => Verbosity::Off,
        Level::Error => Verbosity::Error,
        Level::Warn => Verbosity::Warn,
        Level::Info => Verbosity::Info,
        Level::Debug => Verbosity::Debug,
    }
}
