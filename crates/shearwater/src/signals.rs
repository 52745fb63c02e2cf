//! `SIGTERM` and `SIGINT`: the first drains, the second stops.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use shearwater_engine::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// Handles the process's signals for one server, until it is dropped.
pub(crate) struct Watch {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(crate) fn start(control: Arc<Control>, drain_ms: u64) -> io::Result<Self> {
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let handle = signals.handle();
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut given = signals.forever();
            if given.next().is_some() {
                control.drain(drain_ms);
            }
            if given.next().is_some() {
                control.stop();
            }
        })?;
        Ok(Self { handle, thread: Some(thread) })
    }
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
