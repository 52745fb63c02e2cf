//! Reloads and upgrades that a program requests, and whose results it waits for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use shearwater_engine::Control;

use crate::manager_reports::ReloadReports;
use crate::report::MessageReporter;
use crate::signal_functions::{Purpose, SignalCaller, SignalFunction};
use crate::signal_watch::SignalFunctions;

/// Requests reloads and upgrades of a running server, as `SIGHUP` and `SIGUSR2` do, and waits for their results.
///
/// Requests during a call result in one further call, as signals do. For a program's control channel.
#[derive(Clone)]
pub struct Operator {
    pub(crate) reload: Option<Arc<SignalCaller>>,
    pub(crate) upgrade: Option<Arc<SignalCaller>>,
}

/// A reload or upgrade that has succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Description for the log: the name of a file, for example.
    pub what: String,
    /// Warnings that the function has logged, each with its line end.
    pub warnings: String,
    /// Every worker has taken the change.
    pub is_complete: bool,
    /// Description of what is served now, for the [service manager](crate::Server::serves); `None` if that hasn't changed.
    pub serves: Option<String>,
}

/// Describes a change that is complete.
impl From<String> for Changed {
    fn from(what: String) -> Self {
        Self { what, warnings: String::new(), is_complete: true, serves: None }
    }
}

/// The result of a reload or upgrade. Texts and details are those of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationResult {
    /// The change is complete.
    Done {
        /// A line without its end.
        text: String,
        /// Lines before it: warnings.
        details: String,
    },
    /// The change was made, but a blocked worker doesn't have it yet, or has failed.
    Incomplete {
        /// A line without its end.
        text: String,
        /// Lines before it: warnings.
        details: String,
    },
    /// Nothing has changed.
    Refused {
        /// A line without its end.
        text: String,
        /// Lines before it: errors.
        details: String,
    },
    /// Another process serves in place of this one, and should get the request.
    Superseded {
        /// Its number.
        process: u32,
    },
    /// The call hasn't ended in time, and continues.
    Unfinished,
    /// The program has no function for it.
    Unsupported,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").finish_non_exhaustive()
    }
}

impl Operator {
    pub(crate) fn new(
        functions: &SignalFunctions,
        control: &Arc<Control>,
        drain_ms: u64,
        reporter: MessageReporter,
        reports: Option<ReloadReports>,
    ) -> Self {
        let caller = |purpose, function: &Option<SignalFunction>, reports| {
            let (function, control) = (function.clone()?, Arc::clone(control));
            Some(SignalCaller::new(purpose, function, control, reporter, reports))
        };
        Self {
            reload: caller(Purpose::Reload, &functions.reload, reports),
            upgrade: caller(Purpose::Upgrade { drain_ms }, &functions.upgrade, None),
        }
    }

    /// Reloads by the function of [`Server::on_reload`](crate::Server::on_reload), and waits for the result.
    #[must_use]
    pub fn reload(&self, patience: Duration) -> OperationResult {
        self.reload.as_ref().map_or(OperationResult::Unsupported, |reload| reload.call_and_wait(patience))
    }

    /// Upgrades by the function of [`Server::on_upgrade`](crate::Server::on_upgrade), and waits for the result.
    #[must_use]
    pub fn upgrade(&self, patience: Duration) -> OperationResult {
        self.upgrade.as_ref().map_or(OperationResult::Unsupported, |upgrade| upgrade.call_and_wait(patience))
    }
}
