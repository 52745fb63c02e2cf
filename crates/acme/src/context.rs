//! The parts that all attempts share, and the status that workers may read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::challenges::Challenges;
use crate::client::Client;
use crate::failure::Failure;
use crate::lease::Owner;
use crate::options::Options;
use crate::storage::Storage;

/// The parts that all attempts of a manager share.
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) storage: Arc<Storage>,
    pub(crate) challenges: Arc<Challenges>,
    pub(crate) client: Client,
    pub(crate) owner: Owner,
    pub(crate) board: Arc<Board>,
    pub(crate) random: RefCell<fastrand::Rng>,
}

impl Context {
    pub(crate) fn now(&self) -> u64 {
        self.options.clock.now()
    }
}

/// State of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// There is none yet, and none is being ordered.
    Missing,
    /// There is none yet, and an attempt is in progress.
    Ordering,
    /// The certificate can be used. It may be about to be renewed, or a renewal may have failed: see [`Status::failure`].
    Valid,
    /// The end of its validity has passed.
    Expired,
}

/// A certificate's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Names, the main name first.
    pub names: Vec<String>,
    /// State.
    pub state: State,
    /// Begin of its validity, as Unix time.
    pub not_before: Option<u64>,
    /// End of its validity, as Unix time.
    pub not_after: Option<u64>,
    /// Unix time of the next order, unless the CA suggests another one.
    pub next_attempt: u64,
    /// Failure of the last order, if it failed.
    pub failure: Option<Failure>,
    /// Number of attempts that this instance has completed; it grows with each one.
    pub attempts: u64,
    /// Number of orders by [`Handle::renew`](crate::Handle::renew) that have ended, with a certificate or a failure.
    pub renewals: u64,
}

/// The status of all certificates, by their main names.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<BTreeMap<String, Status>>);

impl Board {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Status>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
