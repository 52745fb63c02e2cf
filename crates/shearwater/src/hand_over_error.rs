//! The error of handing a server over to another process.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use shearwater_engine::StartError;
use shearwater_io::limits::HANDED_STATE_BYTES_MAX;

/// An error of handing over to another process. Displays as one sentence.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandOverError {
    /// This is the first process of a container, which ends with it.
    FirstProcess,
    /// The listeners can't be passed: the server is draining, for example.
    Listeners(StartError),
    /// The program can't be started.
    Start {
        /// The program.
        program: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The process has ended before it served.
    Ended(ExitStatus),
    /// The process doesn't take over: it has closed the channel, and was killed.
    Closed,
    /// The process didn't serve in time, and was killed.
    Late(Duration),
    /// The bytes for the process are too many.
    State {
        /// Their number.
        bytes: usize,
    },
    /// The system failed.
    System(io::Error),
}

impl fmt::Display for HandOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstProcess => f.write_str(
                "this is process 1, and its container would end with it; help: start a container of the new image",
            ),
            Self::Listeners(StartError::System(error)) => write!(f, "can't pass the listeners: {error}"),
            Self::Listeners(error) => error.fmt(f),
            Self::Start { program, error } => write!(f, "can't start {}: {error}", program.display()),
            Self::Ended(status) => write!(f, "the new process ended before it served ({status})"),
            Self::Closed => f.write_str("the new process doesn't take over listeners, and was killed"),
            Self::Late(timeout) => {
                write!(f, "the new process didn't serve within {} s, and was killed", timeout.as_secs_f64())
            }
            Self::State { bytes } => {
                write!(f, "{bytes} bytes for the new process are more than {HANDED_STATE_BYTES_MAX}")
            }
            Self::System(error) => write!(f, "the system failed: {error}"),
        }
    }
}

impl std::error::Error for HandOverError {}
