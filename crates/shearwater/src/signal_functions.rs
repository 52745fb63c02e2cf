//! Functions of the program that signals call: to reload, and to upgrade. Each runs on a thread of its own, one call at
//! a time.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use shearwater_engine::Control;
use shearwater_io::signals::hang_up;

use crate::manager_reports::ReloadReports;
use crate::report::MessageReporter;

/// A program's function: see [`Server::on_reload`](crate::Server::on_reload) and
/// [`Server::on_upgrade`](crate::Server::on_upgrade).
#[derive(Clone)]
pub(crate) struct SignalFunction(Arc<Function>);

type Function = dyn Fn(&Control) -> Result<String, String> + Send + Sync;

impl SignalFunction {
    pub(crate) fn new(function: impl Fn(&Control) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }
}

impl fmt::Debug for SignalFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalFunction").finish_non_exhaustive()
    }
}

/// The purpose of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Reload,
    /// Another process takes the place of this one, which drains for so many milliseconds.
    Upgrade {
        drain_ms: u64,
    },
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Upgrade { .. } => "upgrade",
        }
    }
}

/// Calls a program's function for each request, on a thread that ends with the last one.
///
/// The thread of signals isn't used: a disk that hangs while a configuration is read must not delay a drain. Requests
/// during a call are one further call, whatever their number, because that reads what is there by then.
pub(crate) struct SignalCaller {
    purpose: Purpose,
    function: SignalFunction,
    control: Arc<Control>,
    reporter: MessageReporter,
    /// The service manager's, for a reload.
    reports: Option<ReloadReports>,
    state: Mutex<CallState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallState {
    Idle,
    Running,
    /// Requested again meanwhile.
    RunningAgain,
}

impl SignalCaller {
    pub(crate) fn new(
        purpose: Purpose,
        function: SignalFunction,
        control: Arc<Control>,
        reporter: MessageReporter,
        reports: Option<ReloadReports>,
    ) -> Arc<Self> {
        Arc::new(Self { purpose, function, control, reporter, reports, state: Mutex::new(CallState::Idle) })
    }

    /// Requests a call.
    pub(crate) fn request(self: &Arc<Self>) {
        let mut state = self.state();
        if *state != CallState::Idle {
            *state = CallState::RunningAgain;
            return;
        }
        let caller = Arc::clone(self);
        let thread = thread::Builder::new().name(self.purpose.name().to_owned()).spawn(move || caller.run());
        match thread {
            Ok(_) => *state = CallState::Running,
            Err(error) => {
                self.reports.iter().for_each(ReloadReports::begin);
                self.failed(&format!("error: {error}\n"));
                self.reports.iter().for_each(ReloadReports::end);
            }
        }
    }

    fn succeeded(&self, what: &str) {
        match self.purpose {
            Purpose::Reload => self.reporter.print_reloaded(what, &self.control),
            Purpose::Upgrade { drain_ms } => {
                self.reporter.print_upgraded(what, &self.control);
                self.control.drain(drain_ms);
            }
        }
    }

    fn failed(&self, errors: &str) {
        self.reporter.print_refused(self.purpose, errors, &self.control);
    }

    /// Forwards a reload to the process that serves in place of this one. Returns false if there is none.
    fn forward(&self) -> bool {
        if !matches!(self.purpose, Purpose::Reload) {
            return false;
        }
        // A process that is about to serve may have read the configuration before it was changed.
        self.control.await_passing();
        let Some(process) = self.control.successor() else { return false };
        match hang_up(process) {
            Ok(()) => self.reporter.print_forwarded(process, &self.control),
            Err(error) => {
                self.failed(&format!(
                    "error: process {process} serves now, and can't be signalled: {error}\n"
                ));
            }
        }
        true
    }

    /// Calls the function once. Returns true if it was the last time.
    fn call(&self) -> bool {
        self.reports.iter().for_each(ReloadReports::begin);
        let call = AssertUnwindSafe(|| (self.function.0)(&self.control));
        let mut is_last = false;
        match panic::catch_unwind(call) {
            Ok(Ok(what)) => {
                self.succeeded(&what);
                // Another request has no effect: this process ends.
                is_last = matches!(self.purpose, Purpose::Upgrade { .. });
            }
            // An upgrade that has finished meanwhile may be the reason.
            Ok(Err(_)) if self.forward() => {}
            Ok(Err(errors)) => self.failed(&errors),
            // The panic hook has reported the panic.
            Err(_) => self.failed(&format!("error: the {} has panicked\n", self.purpose.name())),
        }
        self.reports.iter().for_each(ReloadReports::end);
        is_last
    }

    fn run(&self) {
        while self.forward() || !self.call() {
            let mut state = self.state();
            match *state {
                CallState::RunningAgain => *state = CallState::Running,
                CallState::Idle | CallState::Running => {
                    *state = CallState::Idle;
                    return;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::sync::mpsc::{RecvTimeoutError, sync_channel};
    use std::time::Duration;

    use shearwater_engine::Control;

    use super::{Purpose, SignalCaller, SignalFunction};
    use crate::report::{MessageReporter, Verbosity};

    const WAIT_MAX: Duration = Duration::from_secs(20);

    #[test]
    fn combines_requests_during_a_reload() {
        let (control, _notices) = Control::new();
        let (began, has_begun) = sync_channel(10);
        let (may_end, end) = sync_channel(10);
        let end = Mutex::new(end);
        let function = SignalFunction::new(move |_| {
            began.send(()).expect("the test listens");
            end.lock().expect("no panic before").recv().map_err(|error| error.to_string())?;
            panic!("a panic ends no further reload");
        });
        let silent = MessageReporter { verbosity: Verbosity::Off, server: None };
        let caller = SignalCaller::new(Purpose::Reload, function, Arc::new(control), silent, None);
        caller.request();
        has_begun.recv_timeout(WAIT_MAX).expect("it is called");
        (0..5).for_each(|_| caller.request());
        may_end.send(()).expect("it waits");
        has_begun.recv_timeout(WAIT_MAX).expect("it is called once more");
        may_end.send(()).expect("it waits");
        drop(caller);
        assert_eq!(has_begun.recv_timeout(WAIT_MAX), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn forwards_a_reload_during_an_upgrade_to_the_new_process() {
        const SIGHUP: i32 = 1;
        let control = Arc::new(Control::new().0);
        let function = SignalFunction::new(|_| panic!("it is one of the other process"));
        let silent = MessageReporter { verbosity: Verbosity::Off, server: None };
        let caller = SignalCaller::new(Purpose::Reload, function, Arc::clone(&control), silent, None);
        let mut process = Command::new("sleep").arg("60").spawn().expect("it starts");
        let passing = control.pass_listeners().expect("nothing else changes");
        caller.request();
        passing.finish(process.id());
        assert_eq!(process.wait().expect("a child").signal(), Some(SIGHUP));
    }
}
