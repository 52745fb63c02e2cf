//! The generic cell rate algorithm (GCRA) for many clients: one time for each, in a bounded table.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::client::ClientKey;
use crate::clock::{Clock, nanoseconds};
use crate::limits::{ADDRESSES_MAX, SHARDS};

/// Allowances of clients: a burst at once, then one request for each interval.
///
/// A client's entry is the time at which its allowance is full again. Once that has passed, it is as good as none.
#[derive(Debug)]
pub(crate) struct Meter {
    interval_ns: u64,
    /// Time in which a whole burst is earned.
    burst_ns: u64,
    clock: Clock,
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
    shard_entries_max: usize,
}

/// A part of the table.
#[derive(Debug, Default)]
struct Shard {
    full_at_ns: HashMap<ClientKey, u64>,
    /// No entry can be removed before.
    sweep_at_ns: u64,
}

impl Meter {
    /// Creates a table for at most [`ADDRESSES_MAX`] clients.
    pub(crate) fn new(interval: Duration, burst: u32, clock: Clock) -> Self {
        Self::with_room(interval, burst, clock, SHARDS, ADDRESSES_MAX / SHARDS)
    }

    fn with_room(
        interval: Duration,
        burst: u32,
        clock: Clock,
        shards: usize,
        shard_entries_max: usize,
    ) -> Self {
        let interval_ns = nanoseconds(interval).max(1);
        Self {
            interval_ns,
            burst_ns: interval_ns.saturating_mul(burst.into()),
            clock,
            hasher: RandomState::new(),
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            shard_entries_max,
        }
    }

    /// Takes one request from a client's allowance. Returns the key that was charged, for [`give_back`](Self::give_back).
    ///
    /// # Errors
    /// The time until the next request, if the allowance is used up. Nothing is taken then.
    pub(crate) fn take(&self, client: ClientKey) -> Result<ClientKey, Duration> {
        let now_ns = self.clock.now_ns();
        let mut shard = self.shard(client).lock().unwrap_or_else(PoisonError::into_inner);
        let charged = shard.key(client, now_ns, self.shard_entries_max);
        let full_at_ns = shard.full_at_ns.entry(charged).or_insert(0);
        let next_ns = (*full_at_ns).max(now_ns).saturating_add(self.interval_ns);
        let latest_ns = now_ns.saturating_add(self.burst_ns);
        if next_ns > latest_ns {
            return Err(Duration::from_nanos(next_ns - latest_ns));
        }
        *full_at_ns = next_ns;
        Ok(charged)
    }

    /// Returns a request to a client's allowance.
    pub(crate) fn give_back(&self, client: ClientKey) {
        let mut shard = self.shard(client).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full_at_ns) = shard.full_at_ns.get_mut(&client) {
            *full_at_ns = full_at_ns.saturating_sub(self.interval_ns);
        }
    }

    fn shard(&self, client: ClientKey) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(client) as usize % self.shards.len()]
    }
}

impl Shard {
    /// Returns the key of a client's entry. If there is no room, that is the one that others share.
    fn key(&mut self, client: ClientKey, now_ns: u64, entries_max: usize) -> ClientKey {
        let is_new = !self.full_at_ns.contains_key(&client);
        if is_new && self.full_at_ns.len() >= entries_max && now_ns >= self.sweep_at_ns {
            self.full_at_ns.retain(|_, full_at_ns| *full_at_ns > now_ns);
            // Under a flood of addresses a sweep may find nothing. The next one waits until it can find something.
            self.sweep_at_ns = self.full_at_ns.values().copied().min().unwrap_or(0);
        }
        let has_room = !is_new || self.full_at_ns.len() < entries_max;
        if has_room { client } else { ClientKey::OTHERS }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use super::{Clock, Meter};
    use crate::client::ClientKey;

    const SECOND: Duration = Duration::from_secs(1);

    fn client(number: u32) -> ClientKey {
        ClientKey::of(Some(IpAddr::V4(Ipv4Addr::from_bits(number))))
    }

    #[test]
    fn allows_a_burst_and_then_the_rate() {
        let clock = Clock::stopped();
        let meter = Meter::new(SECOND, 3, clock.clone());
        let taken = |times| (0..times).filter(|_| meter.take(client(1)).is_ok()).count();
        assert_eq!(taken(10), 3);
        assert_eq!(meter.take(client(1)), Err(SECOND));
        clock.advance(SECOND / 2);
        assert_eq!(meter.take(client(1)), Err(SECOND / 2));
        clock.advance(SECOND / 2);
        assert_eq!(taken(10), 1);
        clock.advance(SECOND * 100);
        assert_eq!(taken(10), 3, "no more than a burst is saved up");
        assert_eq!(meter.take(client(2)), Ok(client(2)), "another client");
    }

    #[test]
    fn gives_back() {
        let meter = Meter::new(SECOND, 1, Clock::stopped());
        for _ in 0..10 {
            assert_eq!(meter.take(client(1)), Ok(client(1)));
            meter.give_back(client(1));
        }
        assert_eq!(meter.take(client(1)), Ok(client(1)));
        assert_eq!(meter.take(client(1)), Err(SECOND));
    }

    #[test]
    fn a_full_table_has_one_allowance_for_all_others() {
        let clock = Clock::stopped();
        let meter = Meter::with_room(SECOND, 2, clock.clone(), 1, 100);
        assert!((0..100).all(|number| meter.take(client(number)).is_ok()));
        let others = (100..10_000).filter(|number| meter.take(client(*number)).is_ok()).count();
        assert_eq!(others, 2);
        assert!((0..100).all(|number| meter.take(client(number)).is_ok()), "those in the table keep theirs");
        let entries = || meter.shards[0].lock().expect("no panic").full_at_ns.len();
        assert_eq!(entries(), 101);
        clock.advance(SECOND * 3);
        assert!((200..300).all(|number| meter.take(client(number)).is_ok()), "full allowances are evicted");
        assert!(entries() <= 101, "{}", entries());
    }

    #[test]
    fn extreme_settings_do_not_overflow() {
        for interval in [Duration::ZERO, Duration::MAX] {
            for burst in [1, u32::MAX] {
                let meter = Meter::new(interval, burst, Clock::default());
                assert_eq!(meter.take(client(1)), Ok(client(1)), "{interval:?} {burst}");
                meter.give_back(client(1));
            }
        }
    }
}
