//! `SIGTERM` and `SIGINT`: the first drains, the second stops. `SIGUSR1`: what has been done so far, in a line.

use std::sync::Arc;

use shearwater_engine::Control;
use shearwater_io::signals::{Signal, Signals};

use crate::Verbosity;

/// The process's signals, handled for one server until it is dropped. When none is left, each signal does what it did before.
#[derive(Debug)]
#[must_use = "dropped, the signals do what they did before"]
pub struct SignalWatch {
    _signals: Signals,
}

impl SignalWatch {
    /// Acts on signals that were caught, also on those that have come already.
    pub(crate) fn new(signals: Signals, control: Arc<Control>, drain_ms: u64, verbosity: Verbosity) -> Self {
        signals.act(move |signal| match signal {
            Signal::User1 => verbosity.so_far(&control.totals()),
            Signal::Interrupt | Signal::Terminate if control.is_ending() => control.stop(),
            Signal::Interrupt | Signal::Terminate => control.drain(drain_ms),
        });
        Self { _signals: signals }
    }
}
