//! Connections by client address, for their limit.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

#[cfg(test)]
mod tests {
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
