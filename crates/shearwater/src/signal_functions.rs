//! Functions of the program that signals and an [`Operator`] call: to reload, and to upgrade. Each runs on a thread of
//! its own, one call at a time.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use shearwater_engine::Control;
use shearwater_io::signals::hang_up;

use crate::manager_reports::ReloadReports;
use crate::operator::{Changed, OperationResult};
use crate::report::MessageReporter;

/// A program's function: see [`Server::on_reload`](crate::Server::on_reload) and
/// [`Server::on_upgrade`](crate::Server::on_upgrade).
#[derive(Clone)]
pub(crate) struct SignalFunction(Arc<Function>);

type Function = dyn Fn(&Control) -> Result<Changed, String> + Send + Sync;

impl SignalFunction {
    pub(crate) fn new<T: Into<Changed>>(
        function: impl Fn(&Control) -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |control| function(control).map(Into::into)))
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
    /// A call has ended.
    ended: Condvar,
}

#[derive(Default)]
struct CallState {
    is_running: bool,
    /// Requested since the last call has begun.
    is_requested: bool,
    /// One of these requests was a signal.
    is_signalled: bool,
    /// Number of the last call that has begun; the first one is 1.
    begun: u64,
    /// Number and result of the last call that has ended.
    last: (u64, Option<OperationResult>),
}

impl SignalCaller {
    pub(crate) fn new(
        purpose: Purpose,
        function: SignalFunction,
        control: Arc<Control>,
        reporter: MessageReporter,
        reports: Option<ReloadReports>,
    ) -> Arc<Self> {
        let (state, ended) = (Mutex::default(), Condvar::new());
        Arc::new(Self { purpose, function, control, reporter, reports, state, ended })
    }

    /// Requests a call, for a signal.
    pub(crate) fn signal(self: &Arc<Self>) {
        self.request(true);
    }

    /// Requests a call, and waits for its result or that of a later one.
    pub(crate) fn call_and_wait(self: &Arc<Self>, patience: Duration) -> OperationResult {
        let number = self.request(false);
        self.wait(number, patience)
    }

    fn wait(&self, number: u64, patience: Duration) -> OperationResult {
        let is_pending = |state: &mut CallState| state.last.0 < number;
        let waited = self.ended.wait_timeout_while(self.state(), patience, is_pending);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        match &state.last.1 {
            Some(result) if !waited.timed_out() => result.clone(),
            _ => OperationResult::Unfinished,
        }
    }

    /// Requests a call, and returns its number.
    fn request(self: &Arc<Self>, is_signalled: bool) -> u64 {
        let mut state = self.state();
        state.is_requested = true;
        state.is_signalled |= is_signalled;
        let number = state.begun + 1;
        if state.is_running {
            return number;
        }
        let caller = Arc::clone(self);
        let thread = thread::Builder::new().name(self.purpose.name().to_owned()).spawn(move || caller.run());
        match thread {
            Ok(_) => state.is_running = true,
            Err(error) => {
                self.reports.iter().for_each(ReloadReports::begin);
                let refused = self.failed(&format!("error: {error}\n"));
                self.reports.iter().for_each(|reports| reports.end(&refused, None));
                *state = CallState { begun: number, last: (number, Some(refused)), ..CallState::default() };
            }
        }
        number
    }

    fn succeeded(&self, changed: Changed) -> OperationResult {
        let Changed { what, warnings, is_complete, .. } = changed;
        let text = match self.purpose {
            Purpose::Reload => self.reporter.print_reloaded(&what, &self.control),
            Purpose::Upgrade { drain_ms } => {
                let text = self.reporter.print_upgraded(&what, &self.control);
                self.control.drain(drain_ms);
                text
            }
        };
        match is_complete {
            true => OperationResult::Done { text, details: warnings },
            false => OperationResult::Incomplete { text, details: warnings },
        }
    }

    fn failed(&self, errors: &str) -> OperationResult {
        let text = self.reporter.print_refused(self.purpose, errors, &self.control);
        OperationResult::Refused { text: text.to_owned(), details: errors.to_owned() }
    }

    /// Returns the result if another process serves in place of this one. A signal to reload is forwarded to it.
    fn superseded(&self, is_signalled: bool) -> Option<OperationResult> {
        // A process that is about to serve may have read the configuration before it was changed.
        self.control.await_passing();
        let process = self.control.successor()?;
        if is_signalled && matches!(self.purpose, Purpose::Reload) {
            match hang_up(process) {
                Ok(()) => self.reporter.print_forwarded(process, &self.control),
                Err(error) => {
                    drop(self.failed(&format!(
                        "error: process {process} serves now, and can't be signalled: {error}\n"
                    )));
                }
            }
        }
        Some(OperationResult::Superseded { process })
    }

    /// Calls the function once, unless another process serves.
    fn call(&self, is_signalled: bool) -> OperationResult {
        if let Some(superseded) = self.superseded(is_signalled) {
            return superseded;
        }
        self.reports.iter().for_each(ReloadReports::begin);
        let call = AssertUnwindSafe(|| (self.function.0)(&self.control));
        let mut serves = None;
        let result = match panic::catch_unwind(call) {
            Ok(Ok(mut changed)) => {
                serves = changed.serves.take();
                self.succeeded(changed)
            }
            // An upgrade that has finished meanwhile may be the reason.
            Ok(Err(errors)) => self.superseded(is_signalled).unwrap_or_else(|| self.failed(&errors)),
            // The panic hook has reported the panic.
            Err(_) => self.failed(&format!("error: the {} has panicked\n", self.purpose.name())),
        };
        self.reports.iter().for_each(|reports| reports.end(&result, serves.take()));
        result
    }

    fn run(&self) {
        loop {
            let mut state = self.state();
            if !state.is_requested {
                state.is_running = false;
                return;
            }
            let is_signalled = state.is_signalled;
            (state.is_requested, state.is_signalled) = (false, false);
            state.begun += 1;
            let number = state.begun;
            drop(state);
            let result = self.call(is_signalled);
            self.state().last = (number, Some(result));
            self.ended.notify_all();
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
    use crate::operator::{Changed, OperationResult};
    use crate::report::{MessageReporter, Verbosity};

    const WAIT_MAX: Duration = Duration::from_secs(20);

    const SILENT: MessageReporter = MessageReporter { verbosity: Verbosity::Off, server: None };

    fn caller(function: SignalFunction) -> Arc<SignalCaller> {
        SignalCaller::new(Purpose::Reload, function, Arc::new(Control::new().0), SILENT, None)
    }

    #[test]
    fn combines_requests_during_a_reload() {
        let (began, has_begun) = sync_channel(10);
        let (may_end, end) = sync_channel(10);
        let end = Mutex::new(end);
        let function = SignalFunction::new::<String>(move |_| {
            began.send(()).expect("the test listens");
            end.lock().expect("no panic before").recv().map_err(|error| error.to_string())?;
            panic!("a panic ends no further reload")
        });
        let caller = caller(function);
        caller.signal();
        has_begun.recv_timeout(WAIT_MAX).expect("it is called");
        (0..5).for_each(|_| caller.signal());
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
        let function = SignalFunction::new::<String>(|_| panic!("it is one of the other process"));
        let caller = SignalCaller::new(Purpose::Reload, function, Arc::clone(&control), SILENT, None);
        let mut process = Command::new("sleep").arg("60").spawn().expect("it starts");
        let passing = control.pass_listeners().expect("nothing else changes");
        caller.signal();
        passing.finish(process.id());
        assert_eq!(process.wait().expect("a child").signal(), Some(SIGHUP));
    }

    #[test]
    fn results_are_those_of_calls_that_began_after_the_request() {
        let (began, has_begun) = sync_channel(10);
        let (may_end, end) = sync_channel::<u32>(10);
        let end = Mutex::new(end);
        let caller = caller(SignalFunction::new(move |_| {
            began.send(()).expect("the test listens");
            let number = end.lock().expect("no panic before").recv().map_err(|error| error.to_string())?;
            if number == 2 { Err(format!("error: {number}\n")) } else { Ok(format!("call {number}")) }
        }));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| caller.call_and_wait(WAIT_MAX));
            has_begun.recv_timeout(WAIT_MAX).expect("it is called");
            assert_eq!(caller.call_and_wait(Duration::from_millis(1)), OperationResult::Unfinished);
            assert_eq!([(); 2].map(|()| caller.request(false)), [2, 2]);
            may_end.send(1).expect("it waits");
            let done = OperationResult::Done { text: "reloaded call 1".to_owned(), details: String::new() };
            assert_eq!(first.join().expect("no panic"), done);
            may_end.send(2).expect("it waits");
            let result = caller.wait(2, WAIT_MAX);
            assert!(
                matches!(&result, OperationResult::Refused { text, details }
                    if text.starts_with("not reloaded: ") && details == "error: 2\n"),
                "{result:?}"
            );
        });
        assert_eq!(has_begun.try_iter().count(), 1, "further requests are one call");
    }

    #[test]
    fn a_change_that_a_worker_does_not_have_yet_is_incomplete() {
        let warnings = "warning: a worker is blocked\n".to_owned();
        let changed =
            Changed { what: "it".to_owned(), warnings: warnings.clone(), is_complete: false, serves: None };
        let caller = caller(SignalFunction::new(move |_| Ok(changed.clone())));
        let expected = OperationResult::Incomplete { text: "reloaded it".to_owned(), details: warnings };
        assert_eq!(caller.call_and_wait(WAIT_MAX), expected);
    }

    #[test]
    fn a_request_during_an_upgrade_names_the_new_process() {
        let control = Arc::new(Control::new().0);
        let function = SignalFunction::new::<String>(|_| panic!("it is one of the other process"));
        let caller = SignalCaller::new(Purpose::Reload, function, Arc::clone(&control), SILENT, None);
        let passing = control.pass_listeners().expect("nothing else changes");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| caller.call_and_wait(WAIT_MAX));
            // A number that no process has: it isn't signalled.
            passing.finish(u32::MAX);
            let result = waiting.join().expect("no panic");
            assert_eq!(result, OperationResult::Superseded { process: u32::MAX });
        });
    }
}
