//! Tests of leases.

use std::path::Path;
use std::sync::{Barrier, Mutex};

use super::{Lease, Owner};
use crate::limits::LEASE_SECONDS;
use crate::storage::Storage;

const NOW: u64 = 1_800_000_000;

fn storage(root: &Path) -> Storage {
    Storage::open(root).unwrap()
}

/// An instance on a machine of its own.
fn remote(random: u64) -> Owner {
    Owner { machine: format!("machine {random}"), process: 1, random }
}

#[test]
fn one_instance_holds_a_lease() {
    let root = tempfile::tempdir().unwrap();
    let locks = &storage(root.path()).locks;
    let first = Lease::take(locks, "example.org", &remote(1), NOW).unwrap().unwrap();
    assert!(Lease::take(locks, "example.org", &remote(2), NOW).unwrap().is_none());
    // The names of others may begin with it.
    assert!(Lease::take(locks, "example.org.uk", &remote(2), NOW).unwrap().is_some());
    drop(first);
    assert!(Lease::take(locks, "example.org", &remote(2), NOW).unwrap().is_some());
}

#[test]
fn a_lease_expires_unless_it_is_renewed() {
    let root = tempfile::tempdir().unwrap();
    let locks = &storage(root.path()).locks;
    let first = Lease::take(locks, "a", &remote(1), NOW).unwrap().unwrap();
    assert!(first.renew(NOW + 30).unwrap());
    assert!(Lease::take(locks, "a", &remote(2), NOW + LEASE_SECONDS).unwrap().is_none());
    let second = Lease::take(locks, "a", &remote(2), NOW + 30 + LEASE_SECONDS).unwrap().unwrap();
    // The first one has slept: it finds out, and doesn't release what isn't its own.
    assert!(!first.renew(NOW + 30 + LEASE_SECONDS).unwrap());
    drop(first);
    assert!(Lease::take(locks, "a", &remote(3), NOW + 40 + LEASE_SECONDS).unwrap().is_none());
    assert!(second.renew(NOW + 40 + LEASE_SECONDS).unwrap());
    assert_eq!(locks.names().unwrap().len(), 1);
}

#[test]
fn a_lease_of_a_process_that_has_ended_is_free() {
    let root = tempfile::tempdir().unwrap();
    let locks = &storage(root.path()).locks;
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let process = i32::try_from(child.id()).unwrap();
    child.wait().unwrap();
    let local = Owner::current();
    if local.machine.is_empty() {
        return; // This system doesn't say which machine it is.
    }
    let ended = Owner { process, random: 1, ..local.clone() };
    locks.write("a.1", &super::terms(&ended, NOW + LEASE_SECONDS)).unwrap();
    // Another machine can't know.
    assert!(Lease::take(locks, "a", &remote(2), NOW).unwrap().is_none());
    assert!(Lease::take(locks, "a", &local, NOW).unwrap().is_some());
}

#[test]
fn a_damaged_or_absurd_lease_is_free_in_the_end() {
    let root = tempfile::tempdir().unwrap();
    let locks = &storage(root.path()).locks;
    let now = crate::options::Clock::default().now();
    locks.write("a.1", b"{").unwrap();
    assert!(Lease::take(locks, "a", &remote(1), now).unwrap().is_none());
    assert!(Lease::take(locks, "a", &remote(1), now + LEASE_SECONDS + 10).unwrap().is_some());
    // It was taken by a machine whose clock is years ahead.
    locks.write("b.1", &super::terms(&remote(2), now * 2)).unwrap();
    assert!(Lease::take(locks, "b", &remote(1), now).unwrap().is_some());
}

#[test]
fn many_instances_that_find_it_free_at_once_get_one_lease() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    // They aren't released: each round finds those of the last one expired.
    let taken = Mutex::new(Vec::new());
    for round in 0..50 {
        let barrier = Barrier::new(4);
        let now = NOW + round * 2 * LEASE_SECONDS;
        std::thread::scope(|scope| {
            for instance in 0..4 {
                let (taken, barrier, locks) = (&taken, &barrier, &storage.locks);
                scope.spawn(move || {
                    barrier.wait();
                    taken.lock().unwrap().extend(Lease::take(locks, "a", &remote(instance), now).unwrap());
                });
            }
        });
        assert_eq!(taken.lock().unwrap().len() as u64, round + 1);
    }
}
