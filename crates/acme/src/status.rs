//! The results of a manager: certificates, failures, and the status that any thread may read.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use shearwater_tls::Pair;

use crate::failure::Failure;

/// A certificate that is to be used from now on.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// Names that it was ordered for, the main name first.
    pub names: Vec<String>,
    /// The chain with its key.
    pub pair: Pair,
}

/// A notice of a manager.
#[derive(Debug, Clone)]
pub enum Notice {
    /// There is a certificate: from the storage, or a new one.
    Certificate(Certificate),
    /// Something failed. The same failure is reported once until something else happens.
    Failed(Failure),
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
    /// Number of the last order by [`Handle::renew`](crate::Handle::renew) that has ended, with a certificate or a failure.
    pub renewals: u64,
}

/// A certificate on the board.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) status: Status,
    /// Number of orders that the operator has asked for.
    pub(crate) renewals_asked: u64,
}

/// The status of all certificates, by their main names.
#[derive(Debug, Default)]
pub(crate) struct Board {
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Notified when an attempt has ended and when the list of certificates has changed.
    pub(crate) changed: Condvar,
}

impl Board {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a status.
    pub(crate) fn show(&self, status: Status) {
        match self.lock().entry(status.names[0].clone()) {
            std::collections::btree_map::Entry::Occupied(mut known) => known.get_mut().status = status,
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Entry { status, renewals_asked: 0 });
            }
        }
    }

    /// Returns the number of orders of a certificate that the operator has asked for.
    pub(crate) fn renewals_asked(&self, id: &str) -> u64 {
        self.lock().get(id).map_or(0, |entry| entry.renewals_asked)
    }
}
