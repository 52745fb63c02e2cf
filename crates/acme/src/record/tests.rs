//! Tests of records.

use super::{Record, read_pair};
use crate::limits::REISSUE_SECONDS_MIN;
use crate::schedule::tests::facts;
use crate::storage::Storage;

const DAY: u64 = 86_400;
const CA: &str = "https://ca.example/directory";

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_certificate_is_ordered_when_none_fits() {
    let (record, facts) = (Record { directory: CA.to_owned(), ..Record::default() }, facts(90 * DAY));
    let own = names(&["example.org"]);
    assert_eq!(record.order_at(None), 0);
    assert!(record.usable(Some(&facts), &own, CA).is_some());
    // Another name, and another CA: from a staging directory to the one whose certificates browsers trust.
    assert_eq!(
        record.order_at(record.usable(Some(&facts), &names(&["example.org", "www.example.org"]), CA)),
        0
    );
    assert_eq!(record.order_at(record.usable(Some(&facts), &own, "https://other.example/")), 0);
    // A file without a record is one that an operator has put there.
    assert!(Record::default().usable(Some(&facts), &own, CA).is_some());
}

#[test]
fn a_failure_delays_every_order() {
    let record = Record { next_attempt: 77, ..Record::default() };
    assert_eq!(record.order_at(None), 77);
}

#[test]
fn suggestions_cannot_make_it_order_all_the_time() {
    let facts = facts(90 * DAY);
    let now = facts.not_before;
    let mut record = Record { issued_at: now, ..Record::default() };
    record.plan_for(&facts, &mut fastrand::Rng::with_seed(1));
    record.plan.suggest(now - DAY, now - DAY, 0, now, &mut fastrand::Rng::with_seed(1));
    assert_eq!(
        record.order_at(record.usable(Some(&facts), &names(&["example.org"]), CA)),
        now + REISSUE_SECONDS_MIN
    );
    // A certificate that lives for an hour is renewed within it.
    let facts = crate::schedule::tests::facts(3600);
    assert_eq!(record.order_at(record.usable(Some(&facts), &names(&["example.org"]), CA)), now + 1200);
}

#[test]
fn a_plan_is_for_one_certificate() {
    let (mut record, mut facts) = (Record::default(), facts(90 * DAY));
    record.plan_for(&facts, &mut fastrand::Rng::with_seed(1));
    let first = record.plan.clone();
    record.plan_for(&facts, &mut fastrand::Rng::with_seed(2));
    assert_eq!(record.plan, first);
    facts.serial = vec![9];
    facts.not_before += DAY;
    record.plan_for(&facts, &mut fastrand::Rng::with_seed(2));
    assert_ne!(record.plan, first);
}

#[test]
fn times_of_a_clock_that_was_ahead_delay_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = Storage::open(root.path()).unwrap().certificates;
    let ahead = 10 * 365 * DAY;
    let mut record = Record { issued_at: ahead, next_attempt: ahead, held_until: ahead, ..Record::default() };
    record.plan.ask_at = ahead;
    record.write(&folder, "example.org").unwrap();
    assert_eq!(Record::read(&folder, "example.org", ahead).unwrap(), record);
    assert_eq!(Record::read(&folder, "example.org", DAY).unwrap(), Record::default());
}

#[test]
fn a_new_certificate_ends_the_failures() {
    let mut record = Record { failures: 3, next_attempt: 77, held_until: 77, ..Record::default() };
    record.plan_for(&facts(90 * DAY), &mut fastrand::Rng::with_seed(1));
    assert_eq!((record.failures, record.next_attempt, record.held_until), (0, 0, 0));
}

#[test]
fn a_suggestion_after_the_end_renews_before_it() {
    let facts = facts(90 * DAY);
    let mut record = Record::default();
    record.plan_for(&facts, &mut fastrand::Rng::with_seed(1));
    record.plan.renew_at = facts.not_after + DAY;
    let own = names(&["example.org"]);
    assert!(record.order_at(record.usable(Some(&facts), &own, CA)) < facts.not_after - 7 * DAY);
}

#[test]
fn damaged_files_are_harmless() {
    let root = tempfile::tempdir().unwrap();
    let folder = Storage::open(root.path()).unwrap().certificates;
    let record = Record { failures: 3, ..Record::default() };
    record.write(&folder, "example.org").unwrap();
    assert_eq!(Record::read(&folder, "example.org", 0).unwrap(), record);
    folder.write("example.org.json", b"{\"failures\":").unwrap();
    assert_eq!(Record::read(&folder, "example.org", 0).unwrap(), Record::default());
    assert!(read_pair(&folder, "example.org").unwrap().is_none());
    folder.write("example.org.pem", b"-----BEGIN").unwrap();
    let failure = read_pair(&folder, "example.org").unwrap_err();
    assert_eq!(failure.message, "cannot use the stored certificate of example.org: found no certificate");
}
