//! Messages to standard error, one line each, and the effects of signals.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use shearwater_engine::{Control, Notice, Totals};
use shearwater_io::signals::{self, Signal, Signals};

use crate::observe::Reopen;
use crate::reload::{ReloadFunction, Reloader};

/// Log level of messages to standard error. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
#[non_exhaustive]
pub enum Verbosity {
    /// No messages.
    Off,
    /// Failures, refused reloads, and totals requested by `SIGUSR1`.
    Error,
    /// Warnings.
    Warn,
    /// Reloads, starting and ending a drain, totals at the end.
    #[default]
    Info,
    /// Everything, including the normal end of each worker.
    Debug,
}

impl Verbosity {
    /// Prints a notice.
    pub(crate) fn print(self, notice: &Notice) {
        self.line(level(notice), notice);
    }

    /// Prints the totals of a running server.
    pub(crate) fn print_running_totals(self, totals: &Totals) {
        self.line(Self::Error, &format_args!("so far {totals}"));
    }

    /// Prints the totals of a server that has ended.
    pub(crate) fn print_totals(self, totals: &Totals) {
        self.line(Self::Info, &format_args!("in all {totals}"));
    }

    /// Prints a warning.
    pub(crate) fn warn(self, text: &dyn Display) {
        self.line(Self::Warn, text);
    }

    /// Prints that a reload has succeeded.
    pub(crate) fn print_reloaded(self, what: &str) {
        self.line(Self::Info, &format_args!("reloaded {what}"));
    }

    /// Prints the errors of a reload as they are, and that nothing has changed.
    pub(crate) fn print_refused_reload(self, errors: &str) {
        if self >= Self::Error {
            drop(write!(io::stderr(), "{errors}"));
        }
        self.line(Self::Error, &"not reloaded: what was served before is still served");
    }

    fn line(self, level: Self, text: &dyn Display) {
        if level <= self {
            // A closed standard error is no reason to stop serving.
            drop(writeln!(std::io::stderr(), "shearwater: {text}"));
        }
    }
}

/// Returns the level of a notice.
fn level(notice: &Notice) -> Verbosity {
    match notice {
        Notice::WorkerEnded { error: Some(_), .. }
        | Notice::AcceptorEnded { error: Some(_) }
        | Notice::ListenerFailed { .. }
        | Notice::HandlerPanicked { .. }
        | Notice::FileFailed { status: 500.., .. }
        | Notice::HandlerMisbuilt { .. } => Verbosity::Error,
        Notice::Draining { .. } | Notice::Stopping => Verbosity::Info,
        Notice::WorkerEnded { error: None, .. } | Notice::AcceptorEnded { error: None } => Verbosity::Debug,
        // Accepting is paused or resumed, a worker is blocked, connections were reset, a file must not be sent; and
        // notices added in the future.
        _ => Verbosity::Warn,
    }
}

/// The signals that a server handles; the last one only for a program that reloads.
const CAUGHT: [Signal; 5] =
    [Signal::Interrupt, Signal::Terminate, Signal::Quit, Signal::User1, Signal::Hangup];

/// Signals that are caught, and not yet acted on.
#[derive(Debug)]
pub(crate) struct CaughtSignals {
    signals: Signals,
    /// The program was started in a terminal and not by `nohup`: closing the terminal sends `SIGHUP`, and ends it.
    ends_with_terminal: bool,
}

/// Handles the process's signals for one server until dropped.
///
/// When the last one is dropped, each signal has its previous effect again.
#[derive(Debug)]
#[must_use = "dropping it restores the signals' previous effects"]
pub struct SignalWatch {
    _signals: Signals,
}

impl SignalWatch {
    /// Catches signals: `SIGHUP` only for a program that reloads.
    pub(crate) fn catch(reloads: bool) -> io::Result<CaughtSignals> {
        let ends_with_terminal = reloads && !signals::ignores_hangup() && signals::has_terminal();
        let count = if reloads { CAUGHT.len() } else { CAUGHT.len() - 1 };
        Ok(CaughtSignals { signals: Signals::catch(&CAUGHT[..count])?, ends_with_terminal })
    }

    /// Acts on caught signals, including those that have already arrived.
    pub(crate) fn new(
        caught: CaughtSignals,
        control: Arc<Control>,
        drain_ms: u64,
        verbosity: Verbosity,
        reload: Option<ReloadFunction>,
        reopen: Reopen,
    ) -> Self {
        let reloader = reload.map(|function| Reloader::new(function, Arc::clone(&control), verbosity));
        let CaughtSignals { signals, ends_with_terminal } = caught;
        signals.act(move |signal| match signal {
            Signal::Hangup if ends_with_terminal && !signals::has_terminal() => control.drain(drain_ms),
            // Without a reloader it is caught for another server of the process.
            Signal::Hangup => reloader.iter().for_each(Reloader::request),
            Signal::User1 => {
                reopen.call();
                verbosity.print_running_totals(&control.totals());
            }
            Signal::Interrupt | Signal::Terminate | Signal::Quit if control.is_ending() => control.stop(),
            Signal::Interrupt | Signal::Terminate | Signal::Quit => control.drain(drain_ms),
        });
        Self { _signals: signals }
    }
}

#[cfg(test)]
mod tests {
    use shearwater_engine::Notice;

    use super::{Verbosity, level};

    #[test]
    fn each_level_includes_those_before_it() {
        let notices = [
            Notice::WorkerEnded { worker: 0, error: Some("x".to_owned()) },
            Notice::AcceptResumed { worker: 0 },
            Notice::Stopping,
            Notice::WorkerEnded { worker: 0, error: None },
        ];
        let levels = [Verbosity::Off, Verbosity::Error, Verbosity::Warn, Verbosity::Info, Verbosity::Debug];
        for (printed, verbosity) in levels.into_iter().enumerate() {
            let count = notices.iter().filter(|notice| level(notice) <= verbosity).count();
            assert_eq!(count, printed, "{verbosity:?}");
        }
    }
}
