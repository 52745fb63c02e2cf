//! Attempts to verify credentials, and what they cost an address.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::ClientKey;
use crate::clock::Clock;
use crate::limits::{FAILURE_EVERY, FAILURES_MAX};
use crate::meter::Meter;
use crate::verified::Tag;

/// Wrong passwords by address, and the credentials that are being verified now.
pub(crate) struct Attempts {
    failures: Meter,
    /// At most as many as passwords wait or are verified.
    verifying: Mutex<HashSet<Tag>>,
}

/// An attempt. An address pays for it, unless it turns out [correct](Self::end) or is dropped before that.
pub(crate) struct Attempt {
    attempts: Arc<Attempts>,
    pub(crate) tag: Tag,
    /// The allowance that was charged; `None` if the same credentials are being verified already.
    charged: Option<ClientKey>,
}

impl Attempts {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            failures: Meter::new(FAILURE_EVERY, FAILURES_MAX, clock),
            verifying: Mutex::default(),
        })
    }

    /// Begins an attempt. The same credentials at once, such as a browser's for the parts of a page, are one attempt.
    ///
    /// # Errors
    /// The time until the client may try again.
    pub(crate) fn begin(self: &Arc<Self>, tag: Tag, client: ClientKey) -> Result<Attempt, Duration> {
        let mut verifying = self.verifying();
        let charged = match verifying.contains(&tag) {
            true => None,
            false => Some(self.failures.take(client)?),
        };
        if charged.is_some() {
            verifying.insert(tag);
        }
        Ok(Attempt { attempts: Arc::clone(self), tag, charged })
    }

    fn verifying(&self) -> MutexGuard<'_, HashSet<Tag>> {
        self.verifying.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt {
    /// Ends an attempt that was verified. One with a wrong password has its price.
    pub(crate) fn end(mut self, is_correct: bool) {
        if !is_correct && self.charged.take().is_some() {
            self.attempts.verifying().remove(&self.tag);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(charged) = self.charged {
            self.attempts.verifying().remove(&self.tag);
            self.attempts.failures.give_back(charged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Attempts, ClientKey, Clock, FAILURES_MAX};
    use crate::verified::Verified;

    #[test]
    fn only_wrong_passwords_cost_something() {
        let clock = Clock::stopped();
        let (attempts, tags) = (Attempts::new(clock.clone()), Verified::new(clock));
        let client = ClientKey::of(None);
        let begin = |number: u32| attempts.begin(tags.tag(&number.to_le_bytes()), client);
        let same: Vec<_> =
            (0..100).map(|_| begin(0).expect("the same credentials are one attempt")).collect();
        drop(same);
        for _ in 0..100 {
            begin(0).expect("one that was never made is free").end(true);
        }
        for number in 0..FAILURES_MAX {
            begin(number).expect("it is allowed").end(false);
        }
        assert!(begin(FAILURES_MAX).is_err());
        assert_eq!(attempts.verifying().len(), 0);
    }
}
