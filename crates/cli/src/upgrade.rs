//! Replaces the running program by the file that it was started from (`SIGUSR2`): a new process takes over the
//! listeners.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use shearwater::{Control, Successor};
use shearwater_metrics::limits::ADMIN_DRAIN_MS;

use crate::args::Serve;
use crate::pid_file;
use crate::tls::RunningTls;

/// Starts a new process with the configuration and the listeners of this one.
pub(crate) struct Upgrader {
    config: Option<PathBuf>,
    pid_file: Option<PathBuf>,
    admin: Option<Arc<Control>>,
    tls: Option<RunningTls>,
}

impl Upgrader {
    pub(crate) fn new(arguments: &Serve, admin: Option<Arc<Control>>, tls: Option<RunningTls>) -> Self {
        Self { config: arguments.config.clone(), pid_file: arguments.pid_file.clone(), admin, tls }
    }

    /// Starts the program again with the same arguments, and waits until it serves. Returns a description for the log.
    ///
    /// # Errors
    /// Complete messages. Nothing has changed then, but the PID file is a new one.
    pub(crate) fn upgrade(&self, control: &Control) -> Result<String, String> {
        let result = self.hand_over(control);
        if result.is_err() {
            self.pid_file.as_deref().into_iter().for_each(pid_file::renew);
        }
        result
    }

    fn hand_over(&self, control: &Control) -> Result<String, String> {
        if let Some(file) =
            self.config.as_ref().filter(|file| !fs::metadata(file).is_ok_and(|found| found.is_file()))
        {
            let file = file.display();
            return Err(format!("error: a new process can't read the configuration {file}: it is no file\n"));
        }
        let failed = |error: &dyn std::fmt::Display| format!("error: {error}\n");
        let mut successor = Successor::of_this_program().map_err(|error| failed(&error))?;
        if let Some(admin) = &self.admin {
            successor = successor.with_listeners_of(Arc::clone(admin));
        }
        if let Some(keys) = self.tls.as_ref().and_then(RunningTls::ticket_keys) {
            successor = successor.hand(keys.as_bytes().to_vec());
        }
        let number = successor.start(control).map_err(|error| failed(&error))?;
        // The status is that of the new process from now on.
        self.admin.iter().for_each(|admin| admin.drain(ADMIN_DRAIN_MS));
        Ok(format!("process {number} serves now"))
    }
}
