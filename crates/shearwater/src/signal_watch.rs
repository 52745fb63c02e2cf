//! The effects of signals on a server.

use std::io;
use std::os::unix::process::parent_id;
use std::sync::{Arc, OnceLock};

use shearwater_engine::Control;
use shearwater_io::relay::is_running;
use shearwater_io::service_manager::takes_notifications;
use shearwater_io::signals::{self, Signal, Signals};

use crate::observe::Reopen;
use crate::operator::Operator;
use crate::report::MessageReporter;
use crate::signal_functions::{SignalCaller, SignalFunction};

/// The signals that every server handles.
const ALWAYS: [Signal; 4] = [Signal::Interrupt, Signal::Terminate, Signal::Quit, Signal::User1];

/// Variable with the number of the process that this one succeeds, if that ignores the hangup of its terminal.
pub(crate) const WITHOUT_HANGUP: &str = "SHEARWATER_WITHOUT_HANGUP";

/// Returns true if this process, or the one that it succeeds, was started by `nohup` or the like.
///
/// An upgrade hides that from the new process: the old one catches the signal, and so the new one starts with its usual
/// effect. Decided at the first call, which comes before the handler is installed and the old process ends.
pub(crate) fn ignores_hangup() -> bool {
    static IGNORES: OnceLock<bool> = OnceLock::new();
    *IGNORES.get_or_init(|| {
        let is_parent = |number: std::ffi::OsString| number.to_str() == Some(&parent_id().to_string());
        signals::ignores_hangup() || std::env::var_os(WITHOUT_HANGUP).is_some_and(is_parent)
    })
}

/// Functions of the program that signals call. Without one, its signal is left alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignalFunctions {
    /// At `SIGHUP`.
    pub(crate) reload: Option<SignalFunction>,
    /// At `SIGUSR2`.
    pub(crate) upgrade: Option<SignalFunction>,
    /// At `SIGUSR1`.
    pub(crate) reopen: Reopen,
}

/// Signals that are caught, and not yet acted on.
#[derive(Debug)]
pub(crate) struct CaughtSignals {
    signals: Signals,
    /// The program was started in a terminal and not by `nohup`: closing the terminal sends `SIGHUP`, and ends it.
    ends_with_terminal: bool,
}

impl CaughtSignals {
    /// Returns whether a signal asks for the end of a server that doesn't act on signals yet.
    pub(crate) fn ask_for_end(&self) -> bool {
        self.signals.has_queued(&[Signal::Interrupt, Signal::Terminate, Signal::Quit])
    }
}

/// The effect of a signal that asks for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Drain,
    Stop,
    Nothing,
}

/// The signals so far that have asked for the end.
#[derive(Debug, Default)]
struct EndSignals {
    count: u32,
    /// The first one came while a successor was running.
    had_successor: bool,
}

impl EndSignals {
    /// Returns the effect of the next one. `successor` tells whether the process that has taken the place of this one runs, if
    /// there is one.
    ///
    /// systemd signals both processes at a stop, and this one again when the new one has ended: neither ends its drain. If
    /// the new process has failed, it signals this one and restarts the service when it has ended.
    fn effect(&mut self, is_ending: bool, successor: Option<bool>, has_manager: bool) -> Effect {
        self.count = self.count.saturating_add(1);
        match (successor, self.count) {
            (None, _) if !is_ending => Effect::Drain,
            (Some(true), 1) => {
                self.had_successor = true;
                Effect::Drain
            }
            (Some(false), 1) if !has_manager => Effect::Drain,
            (Some(false), 2) if has_manager && self.had_successor => Effect::Nothing,
            _ => Effect::Stop,
        }
    }
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
    /// Catches signals: those of functions only for a program that has them.
    pub(crate) fn catch(functions: &SignalFunctions) -> io::Result<CaughtSignals> {
        let reloads = functions.reload.is_some();
        let ends_with_terminal = reloads && !ignores_hangup() && signals::has_terminal();
        let mut caught = ALWAYS.to_vec();
        caught.extend(reloads.then_some(Signal::Hangup));
        caught.extend(functions.upgrade.is_some().then_some(Signal::User2));
        Ok(CaughtSignals { signals: Signals::catch(&caught)?, ends_with_terminal })
    }

    /// Acts on caught signals, including those that have already arrived.
    pub(crate) fn new(
        caught: CaughtSignals,
        control: Arc<Control>,
        drain_ms: u64,
        reporter: MessageReporter,
        operator: Operator,
        reopen: Reopen,
    ) -> Self {
        let Operator { reload, upgrade } = operator;
        let CaughtSignals { signals, ends_with_terminal } = caught;
        let (mut ends, has_manager) = (EndSignals::default(), takes_notifications());
        signals.act(move |signal| match signal {
            Signal::Hangup if ends_with_terminal && !signals::has_terminal() => control.drain(drain_ms),
            // Without a function it is caught for another server of the process.
            Signal::Hangup => reload.iter().for_each(SignalCaller::signal),
            Signal::User2 => upgrade.iter().for_each(SignalCaller::signal),
            Signal::User1 => {
                reopen.call();
                reporter.print_running_totals(&control.totals());
            }
            Signal::Interrupt | Signal::Terminate | Signal::Quit => {
                let is_passed = control.has_passed_listeners();
                let successor = is_passed.then(|| control.successor().is_some_and(is_running));
                match ends.effect(control.is_ending(), successor, has_manager) {
                    Effect::Drain => control.drain(drain_ms),
                    Effect::Stop => control.stop(),
                    Effect::Nothing => {}
                }
            }
        });
        Self { _signals: signals }
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, EndSignals};

    #[test]
    fn a_second_signal_stops_unless_a_manager_ends_two_processes() {
        use Effect::{Drain, Nothing, Stop};
        let (none, runs, ended) = (None, Some(true), Some(false));
        for (has_manager, successors, effects) in [
            (false, [none, none], [Drain, Stop]),
            (true, [none, none], [Drain, Stop]),
            (true, [runs, ended], [Drain, Nothing]),
            (true, [runs, runs], [Drain, Stop]),
            (true, [ended, ended], [Stop, Stop]),
            (false, [runs, ended], [Drain, Stop]),
            (false, [ended, ended], [Drain, Stop]),
        ] {
            let mut signals = EndSignals::default();
            let first = signals.effect(successors[0].is_some(), successors[0], has_manager);
            let second = signals.effect(true, successors[1], has_manager);
            assert_eq!([first, second], effects, "{has_manager} {successors:?}");
        }
        assert_eq!(EndSignals::default().effect(true, None, false), Stop, "it drains already");
    }
}
