//! Effects of signals: the first `SIGTERM` or `SIGINT` drains, the second stops, `SIGUSR1` prints totals.

use std::sync::Arc;

use shearwater_engine::Control;
use shearwater_io::signals::{Signal, Signals};

use crate::Verbosity;

/// Handles the process's signals for one server until dropped.
///
/// When the last one is dropped, each signal has its previous effect again.
#[derive(Debug)]
#[must_use = "dropping it restores the signals' previous effects"]
pub struct SignalWatch {
    _signals: Signals,
}

impl SignalWatch {
    /// Acts on caught signals, including those that have already arrived.
    pub(crate) fn new(signals: Signals, control: Arc<Control>, drain_ms: u64, verbosity: Verbosity) -> Self {
        signals.act(move |signal| match signal {
            Signal::User1 => verbosity.print_running_totals(&control.totals()),
            Signal::Interrupt | Signal::Terminate if control.is_ending() => control.stop(),
            Signal::Interrupt | Signal::Terminate => control.drain(drain_ms),
        });
        Self { _signals: signals }
    }
}
