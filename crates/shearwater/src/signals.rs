//! `SIGTERM` and `SIGINT`: the first drains, the second stops. `SIGUSR1`: what has been done so far, in a line.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use shearwater_engine::Control;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};

use crate::Verbosity;

/// Signals that are caught, but nobody acts on them yet: none is lost, and none ends the process.
pub(crate) struct Caught(Signals);

impl Caught {
    pub(crate) fn new() -> io::Result<Self> {
        Signals::new([SIGTERM, SIGINT, SIGUSR1]).map(Self)
    }

    /// Acts on them, also on those that have come already.
    pub(crate) fn watch(
        self,
        control: Arc<Control>,
        drain_ms: u64,
        verbosity: Verbosity,
    ) -> io::Result<Watch> {
        let Self(mut signals) = self;
        let handle = signals.handle();
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut is_draining = false;
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 => verbosity.so_far(&control.totals()),
                    _ if is_draining => control.stop(),
                    _ => {
                        is_draining = true;
                        control.drain(drain_ms);
                    }
                }
            }
        })?;
        Ok(Watch { handle, thread: Some(thread) })
    }
}

/// Handles the process's signals for one server, until it is dropped.
pub(crate) struct Watch {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It only waits for signals; a panic there has been printed.
            drop(thread.join());
        }
    }
}
