//! State of the manager's thread.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::challenges::Challenges;
use crate::client::Client;
use crate::failure::Failure;
use crate::limits::CA_PAUSE_SECONDS;
use crate::options::Options;
use crate::status::{Board, Notice};
use crate::storage::Storage;

/// The parts that the tasks of all certificates share.
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) storage: Arc<Storage>,
    pub(crate) challenges: Arc<Challenges>,
    pub(crate) client: Client,
    pub(crate) board: Arc<Board>,
    pub(crate) random: RefCell<fastrand::Rng>,
    pub(crate) on_notice: RefCell<Box<dyn FnMut(Notice) + Send>>,
    /// One permit for each attempt that may run.
    pub(crate) attempts: Semaphore,
    /// Unix time before which no attempt begins by itself, because the CA has failed.
    pub(crate) paused_until: Cell<u64>,
    /// Remedy of the machine's failure that was reported last, until an attempt gets past it.
    pub(crate) machine_help: RefCell<Option<String>>,
}

impl Context {
    pub(crate) fn now(&self) -> u64 {
        self.options.clock.now()
    }

    pub(crate) fn notify(&self, notice: Notice) {
        (self.on_notice.borrow_mut())(notice);
    }

    /// Delays all attempts that the operator doesn't ask for: they would fail too.
    pub(crate) fn pause(&self) {
        self.paused_until.set(self.now() + CA_PAUSE_SECONDS);
    }

    /// Reports a failure of the machine, once for all certificates: their paths differ, the cause doesn't.
    pub(crate) fn report_machine(&self, failure: &Failure) {
        if self.machine_help.borrow().as_ref() != Some(&failure.help) {
            self.machine_help.replace(Some(failure.help.clone()));
            self.notify(Notice::Failed(failure.clone()));
        }
    }
}
