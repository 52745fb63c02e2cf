//! Reloads by `SIGHUP`: the program's function, run on a thread of its own, one at a time.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use shearwater_engine::Control;

use crate::report::Verbosity;

/// A program's function that reloads: see [`Server::on_reload`](crate::Server::on_reload).
#[derive(Clone)]
pub(crate) struct ReloadFunction(Arc<Function>);

type Function = dyn Fn(&Control) -> Result<String, String> + Send + Sync;

impl ReloadFunction {
    pub(crate) fn new(function: impl Fn(&Control) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }
}

impl fmt::Debug for ReloadFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadFunction").finish_non_exhaustive()
    }
}

/// Calls a program's function for each request, on a thread that ends with the last one.
///
/// The thread of signals isn't used: a disk that hangs while a configuration is read must not delay a drain. Requests
/// during a call are one further call, whatever their number, because that reads what is there by then.
pub(crate) struct Reloader {
    function: ReloadFunction,
    control: Arc<Control>,
    verbosity: Verbosity,
    state: Mutex<ReloaderState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReloaderState {
    Idle,
    Running,
    /// Requested again meanwhile.
    RunningAgain,
}

impl Reloader {
    pub(crate) fn new(function: ReloadFunction, control: Arc<Control>, verbosity: Verbosity) -> Arc<Self> {
        Arc::new(Self { function, control, verbosity, state: Mutex::new(ReloaderState::Idle) })
    }

    /// Requests a call.
    pub(crate) fn request(self: &Arc<Self>) {
        let mut state = self.state();
        if *state != ReloaderState::Idle {
            *state = ReloaderState::RunningAgain;
            return;
        }
        let reloader = Arc::clone(self);
        let thread = thread::Builder::new().name("reload".to_owned()).spawn(move || reloader.run());
        match thread {
            Ok(_) => *state = ReloaderState::Running,
            Err(error) => self.verbosity.print_refused_reload(&format!("error: {error}\n"), &self.control),
        }
    }

    fn run(&self) {
        loop {
            let call = AssertUnwindSafe(|| (self.function.0)(&self.control));
            match panic::catch_unwind(call) {
                Ok(Ok(reloaded)) => self.verbosity.print_reloaded(&reloaded, &self.control),
                Ok(Err(why)) => self.verbosity.print_refused_reload(&why, &self.control),
                // The panic hook has reported the panic.
                Err(_) => {
                    let error = "error: the reload has panicked\n";
                    self.verbosity.print_refused_reload(error, &self.control);
                }
            }
            let mut state = self.state();
            match *state {
                ReloaderState::RunningAgain => *state = ReloaderState::Running,
                ReloaderState::Idle | ReloaderState::Running => {
                    *state = ReloaderState::Idle;
                    return;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, ReloaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::sync::mpsc::{RecvTimeoutError, sync_channel};
    use std::time::Duration;

    use shearwater_engine::Control;

    use super::{ReloadFunction, Reloader};
    use crate::report::Verbosity;

    const WAIT_MAX: Duration = Duration::from_secs(20);

    #[test]
    fn combines_requests_during_a_reload() {
        let (control, _notices) = Control::new();
        let (began, has_begun) = sync_channel(10);
        let (may_end, end) = sync_channel(10);
        let end = Mutex::new(end);
        let function = ReloadFunction::new(move |_| {
            began.send(()).expect("the test listens");
            end.lock().expect("no panic before").recv().map_err(|error| error.to_string())?;
            panic!("a panic ends no further reload");
        });
        let reloader = Reloader::new(function, Arc::new(control), Verbosity::Off);
        reloader.request();
        has_begun.recv_timeout(WAIT_MAX).expect("it is called");
        (0..5).for_each(|_| reloader.request());
        may_end.send(()).expect("it waits");
        has_begun.recv_timeout(WAIT_MAX).expect("it is called once more");
        may_end.send(()).expect("it waits");
        drop(reloader);
        assert_eq!(has_begun.recv_timeout(WAIT_MAX), Err(RecvTimeoutError::Disconnected));
    }
}
