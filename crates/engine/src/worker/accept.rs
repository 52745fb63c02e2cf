//! Accepting: admits connections, and limits them per client address and their requests per connection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shearwater_io::{AcceptError, CloseKind, Driver, ListenerId, SlotArray, Token};

use crate::connection::NONE;
use crate::limits::ACCEPT_RETRY_MS;
use crate::server::notice::Notice;
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Opens the slot of an accepted connection, or resets it if its address has too many.
    pub(crate) fn accepted(&mut self, token: Token, listener: ListenerId) {
        self.arrived += 1;
        let state = &mut self.state;
        state.counters.connections_accepted.add(1);
        state.table.open(token, state.now_ms);
        state.served.open(token);
        state.leaving.open(token, listener);
        state.served.check_leaving(state.leaving.has_marked());
        self.open_in_ledger(token);
        let is_admitted = match &self.state.proxies {
            None => self.admit(token),
            Some(_) => self.admit_proxied(token),
        };
        if !is_admitted {
            return;
        }
        self.reconcile(token);
        // Waits until no pause has occurred for a while, so that one free slot doesn't make the reports flap.
        if self.is_pause_reported && self.driver.now_ms() >= self.paused_ms.saturating_add(ACCEPT_RETRY_MS) {
            self.is_pause_reported = false;
            self.state.notify(Notice::AcceptResumed { worker: self.state.worker });
        }
    }

    /// Limits the connections of a peer's address. Returns false if this one was reset.
    fn admit(&mut self, token: Token) -> bool {
        if self.state.addresses.is_none() {
            return true;
        }
        // A peer that is already disconnected has no address to count.
        let Some(peer) = self.state.calls.peers.of(token, &self.driver) else { return true };
        self.enter_address(token, peer.ip())
    }

    /// Counts a connection of an address, or resets it if there are too many. Returns false then.
    pub(crate) fn enter_address(&mut self, token: Token, address: IpAddr) -> bool {
        let Some(addresses) = &self.state.addresses else { return true };
        let index = addresses.enter(address);
        self.state.table.get(token).address = index.unwrap_or(NONE);
        if index.is_none() {
            self.state.counters.connections_refused.add(1);
            self.shut(token, CloseKind::Reset);
        }
        index.is_some()
    }

    /// Reports that the driver has paused accepting: descriptors, slots or memory have run out.
    pub(crate) fn accept_failed(&mut self, error: AcceptError) {
        self.paused_ms = self.driver.now_ms();
        self.accept_again_ms = Some(self.paused_ms + ACCEPT_RETRY_MS);
        self.state.counters.hit_connections.add(1);
        let is_full = error == AcceptError::ProcessDescriptors && self.is_full();
        if is_full {
            self.search_room();
        }
        if !self.is_pause_reported {
            self.is_pause_reported = true;
            let worker = self.state.worker;
            // Distinguishes the configured connection limit from the system's limits.
            self.state.notify(match self.connections_asked {
                Some(connections_max) if is_full => Notice::Full { worker, connections_max },
                _ => Notice::AcceptPaused { worker, error },
            });
        }
    }

    /// Reports a listener that has failed; the others are not affected.
    pub(crate) fn listener_failed(&self, listener: ListenerId, errno: i32) {
        let address = self.state.control.listening.address_of(listener);
        self.state.notify(Notice::ListenerFailed { worker: Some(self.state.worker), address, errno });
    }

    /// Resumes accepting once a connection has closed or the retry is due.
    pub(crate) fn accept_again(&mut self) {
        let has_room = std::mem::take(&mut self.has_room);
        if self.accept_again_ms.is_some_and(|at_ms| has_room || at_ms <= self.driver.now_ms()) {
            self.accept_again_ms = None;
            self.state.limit.ask(false);
            self.driver.accept_resume();
        }
    }

    /// Frees the slot of a connection that the driver has closed.
    pub(crate) fn closed(&mut self, token: Token) {
        let state = &mut self.state;
        let Some(conn) = state.table.find(token) else { return };
        if let (Some(addresses), true) = (&state.addresses, conn.address != NONE) {
            addresses.leave(conn.address);
        }
        state.counters.connections_closed.add(1);
        state.leaving.close(token);
        state.served.check_leaving(state.leaving.has_marked());
        state.table.free(token);
        self.has_room = true;
        if state.limit.is_awaited() {
            state.control.wake();
        }
    }
}

/// A table shared by all workers.
#[derive(Debug)]
pub(crate) struct Addresses {
    bound: u32,
    table: Mutex<AddressTable>,
}

/// Connection counts by address. A connection keeps the entry's index, because its slot has no room for more.
#[derive(Debug, Default)]
struct AddressTable {
    index_of: HashMap<IpAddr, u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    connections: u32,
}

impl Addresses {
    /// Returns `None` if `bound` is 0, which means unlimited.
    pub(crate) fn new(bound: u32) -> Option<Self> {
        (bound > 0).then(|| Self { bound, table: Mutex::default() })
    }

    /// Counts a connection of `address` and returns its index; `None` if the limit is reached.
    pub(crate) fn enter(&self, address: IpAddr) -> Option<u32> {
        let address = owner(address);
        let held = &mut *self.lock();
        let index = *held.index_of.entry(address).or_insert_with(|| {
            held.free.pop().unwrap_or_else(|| {
                held.entries.push(Entry { address, connections: 0 });
                held.entries.len() as u32 - 1
            })
        });
        let entry = &mut held.entries[index as usize];
        entry.address = address;
        if entry.connections >= self.bound {
            return None;
        }
        entry.connections += 1;
        Some(index)
    }

    /// Removes a connection from the count of `index`.
    pub(crate) fn leave(&self, index: u32) {
        let held = &mut *self.lock();
        let entry = &mut held.entries[index as usize];
        entry.connections -= 1;
        if entry.connections == 0 {
            held.index_of.remove(&entry.address);
            held.free.push(index);
        }
    }

    fn lock(&self) -> MutexGuard<'_, AddressTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key that an address is counted by: an IPv4 address in either form, or an IPv6 /64 prefix.
fn owner(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
    }
}

/// Request counts by slot.
pub(crate) struct Served {
    counts: SlotArray<u32>,
    /// Limit; 0: unlimited.
    requests_max: u32,
    /// A request may be the last of its connection.
    may_end: bool,
}

impl Served {
    pub(crate) fn new(requests_max: u32) -> Self {
        Self { counts: SlotArray::new(), requests_max, may_end: requests_max > 0 }
    }

    /// Notes whether connections of removed listeners are open.
    pub(crate) fn check_leaving(&mut self, has_leaving: bool) {
        self.may_end = has_leaving || self.requests_max > 0;
    }

    /// Returns whether a request may be the last of its connection.
    #[inline]
    pub(crate) fn may_end(&self) -> bool {
        self.may_end
    }

    /// Resets the count of a slot for a new connection.
    pub(crate) fn open(&mut self, token: Token) {
        if self.requests_max > 0 {
            self.counts.grow_to(token.slot());
            self.counts[token.slot()] = 0;
        }
    }

    /// Frees the counts of slots from `slots` on.
    pub(crate) fn trim(&mut self, slots: usize) {
        self.counts.truncate(slots);
    }

    /// Counts a request; returns true if it is the last that its connection may send.
    #[inline]
    pub(crate) fn is_last(&mut self, token: Token) -> bool {
        self.requests_max > 0 && self.count(token)
    }

    fn count(&mut self, token: Token) -> bool {
        let count = &mut self.counts[token.slot()];
        *count = count.saturating_add(1);
        *count >= self.requests_max
    }
}

#[cfg(test)]
mod addresses_tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::Addresses;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

    #[test]
    fn ipv6_addresses_count_by_their_prefix() {
        let owner_of = |text: &str| super::owner(text.parse().expect("an address"));
        assert_eq!(owner_of("::ffff:192.0.2.1"), owner_of("192.0.2.1"));
        assert_eq!(owner_of("2001:db8:1:2:3:4:5:6"), owner_of("2001:db8:1:2::"));
        assert_ne!(owner_of("2001:db8:1:2::"), owner_of("2001:db8:1:3::"));
    }

    #[test]
    fn counts_each_address_and_forgets_it() {
        let addresses = Addresses::new(2).expect("a bound");
        let first = addresses.enter(HERE).expect("one");
        assert_eq!(addresses.enter(HERE), Some(first));
        assert_eq!(addresses.enter(HERE), None);
        let other = addresses.enter(THERE).expect("another address");
        assert_ne!(first, other);
        addresses.leave(first);
        assert_eq!(addresses.enter(HERE), Some(first));
        addresses.leave(first);
        addresses.leave(first);
        addresses.leave(other);
        assert!(addresses.lock().index_of.is_empty());
        assert!(Addresses::new(0).is_none());
    }
}

#[cfg(test)]
mod served_tests {
    use super::{Served, Token};

    #[test]
    fn counts_requests_of_each_connection_from_0() {
        let mut served = Served::new(2);
        let (one, other) = (Token::new(0, 0), Token::new(1, 0));
        served.open(one);
        served.open(other);
        assert_eq!([one, other, one, other].map(|token| served.is_last(token)), [false, false, true, true]);
        served.open(Token::new(0, 1));
        assert!(!served.is_last(Token::new(0, 1)), "a new connection in the slot");
    }

    #[test]
    fn counts_nothing_without_a_limit() {
        let mut served = Served::new(0);
        let token = Token::new(7, 0);
        served.open(token);
        assert!((0..100_000).all(|_| !served.is_last(token)));
        assert!(served.counts.get(7).is_none());
    }
}
