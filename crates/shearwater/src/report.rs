//! What workers have to say, and what they have done, goes to standard error, a line each, if it is grave enough.

use std::fmt::Display;
use std::io::Write;

use shearwater_engine::{Notice, Totals};

/// What a server prints to standard error while it serves: each also prints what those before it print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
#[non_exhaustive]
pub enum Verbosity {
    /// Nothing.
    Off,
    /// What has failed; and what was asked for, by `SIGUSR1`.
    Error,
    /// What is not as it should be.
    Warn,
    /// What it does.
    #[default]
    Info,
    /// Everything.
    Debug,
}

impl Verbosity {
    /// Prints a notice.
    pub(crate) fn print(self, notice: &Notice) {
        self.line(gravity(notice), notice);
    }

    /// Prints what a server that goes on has done so far.
    pub(crate) fn so_far(self, totals: &Totals) {
        self.line(Self::Error, &format_args!("so far {totals}"));
    }

    /// Prints what a server has done that has ended.
    pub(crate) fn in_all(self, totals: &Totals) {
        self.line(Self::Info, &format_args!("in all {totals}"));
    }

    fn line(self, gravity: Self, text: &dyn Display) {
        if gravity <= self {
            // A closed standard error is no reason to stop serving.
            drop(writeln!(std::io::stderr(), "shearwater: {text}"));
        }
    }
}

/// From where on a notice is printed.
fn gravity(notice: &Notice) -> Verbosity {
    match notice {
        Notice::WorkerEnded { error: Some(_), .. }
        | Notice::AcceptorEnded { error: Some(_) }
        | Notice::ListenerFailed { .. }
        | Notice::HandlerPanicked { .. }
        | Notice::FileFailed { status: 500.., .. }
        | Notice::HandlerMisbuilt { .. } => Verbosity::Error,
        Notice::Draining { .. } | Notice::Stopping => Verbosity::Info,
        Notice::WorkerEnded { error: None, .. } | Notice::AcceptorEnded { error: None } => Verbosity::Debug,
        // Accepting is paused or goes on, a worker is blocked, connections were cut off, a file may not be sent; and whatever notices there will be.
        _ => Verbosity::Warn,
    }
}

#[cfg(test)]
mod tests {
    use shearwater_engine::Notice;

    use super::{Verbosity, gravity};

    #[test]
    fn each_level_prints_what_those_before_it_print() {
        let notices = [
            Notice::WorkerEnded { worker: 0, error: Some("x".to_owned()) },
            Notice::AcceptResumed { worker: 0 },
            Notice::Stopping,
            Notice::WorkerEnded { worker: 0, error: None },
        ];
        let levels = [Verbosity::Off, Verbosity::Error, Verbosity::Warn, Verbosity::Info, Verbosity::Debug];
        for (printed, level) in levels.into_iter().enumerate() {
            let count = notices.iter().filter(|notice| gravity(notice) <= level).count();
            assert_eq!(count, printed, "{level:?}");
        }
    }
}
