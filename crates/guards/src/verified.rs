//! Cache of verified credentials, by a keyed hash.

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::{PoisonError, RwLock};

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::clock::{Clock, nanoseconds};
use crate::limits::{VERIFIED_FOR, VERIFIED_MAX};

/// A keyed hash of a user and password. Useless without the key, which is random and stays in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tag(u128);

impl Tag {
    /// Returns some bits of it.
    pub(crate) fn bits(self) -> u64 {
        self.0 as u64
    }
}

/// Verified credentials of one file.
pub(crate) struct Verified {
    key: [u8; 16],
    clock: Clock,
    /// End of each one's time.
    until_ns: RwLock<HashMap<Tag, u64>>,
}

impl Verified {
    /// Creates an empty cache with a random key.
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub(crate) fn new(clock: Clock) -> Self {
        let mut key = [0; 16];
        getrandom::fill(&mut key).expect("the system has random numbers");
        Self { key, clock, until_ns: RwLock::default() }
    }

    /// Returns the hash of credentials, as decoded.
    pub(crate) fn tag(&self, credentials: &[u8]) -> Tag {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(credentials);
        Tag(hasher.finish128().into())
    }

    /// Returns whether credentials were verified, and may still be used.
    pub(crate) fn has(&self, tag: Tag) -> bool {
        let until_ns = self.until_ns.read().unwrap_or_else(PoisonError::into_inner).get(&tag).copied();
        until_ns.is_some_and(|until_ns| until_ns > self.clock.now_ns())
    }

    /// As [`has`](Self::has); false if the table is being changed. For threads of low priority, for which a worker would wait.
    pub(crate) fn has_now(&self, tag: Tag) -> bool {
        let until_ns = self.until_ns.try_read().ok().and_then(|known| known.get(&tag).copied());
        until_ns.is_some_and(|until_ns| until_ns > self.clock.now_ns())
    }

    /// Caches credentials. If there is no room, evicts those whose time has ended, or else one of the others.
    pub(crate) fn add(&self, tag: Tag) {
        let now_ns = self.clock.now_ns();
        let mut known = self.until_ns.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= VERIFIED_MAX {
            known.retain(|_, until_ns| *until_ns > now_ns);
        }
        if known.len() >= VERIFIED_MAX
            && let Some(&any) = known.keys().next()
        {
            known.remove(&any);
        }
        known.insert(tag, now_ns.saturating_add(nanoseconds(VERIFIED_FOR)));
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, VERIFIED_FOR, VERIFIED_MAX, Verified};

    #[test]
    fn caches_a_bounded_number_for_a_while() {
        let clock = Clock::stopped();
        let verified = Verified::new(clock.clone());
        let tag = |number: usize| verified.tag(&number.to_le_bytes());
        (0..3 * VERIFIED_MAX).for_each(|number| verified.add(tag(number)));
        let known = (0..3 * VERIFIED_MAX).filter(|number| verified.has(tag(*number))).count();
        assert_eq!(known, VERIFIED_MAX);
        clock.advance(VERIFIED_FOR);
        assert!(!(0..3 * VERIFIED_MAX).any(|number| verified.has(tag(number))));
        verified.add(tag(0));
        assert_eq!(verified.until_ns.read().expect("no panic").len(), 1);
    }

    #[test]
    fn each_cache_has_a_key_of_its_own() {
        let [one, other] = [0, 1].map(|_| Verified::new(Clock::default()));
        assert_ne!(one.tag(b"user:secret"), other.tag(b"user:secret"));
        assert_ne!(one.tag(b"user:secret"), one.tag(b"user:Secret"));
    }
}
