//! Tests of one attempt, without a CA.

use std::cell::RefCell;
use std::sync::Arc;

use super::{Attempt, clock_failure};
use crate::challenges::Challenges;
use crate::client::Client;
use crate::context::{Board, Context};
use crate::lease::{Lease, Owner};
use crate::limits::LEASE_POLL_SECONDS;
use crate::options::{Clock, Options};
use crate::record::{PendingOrder, Record};
use crate::schedule::tests::facts;
use crate::storage::Storage;

const NOW: u64 = 1_800_000_000;

fn context(root: &std::path::Path) -> Context {
    let names = vec!["example.org".to_owned()];
    let options = Options { clock: Clock::new(|| NOW), ..Options::new(root.to_owned(), vec![names]) };
    let storage = Arc::new(Storage::open(root).unwrap());
    Context {
        challenges: Arc::new(Challenges::new(Arc::clone(&storage), options.clock.clone())),
        options,
        storage,
        client: Client::new(None, Clock::new(|| NOW)).unwrap(),
        owner: Owner::current(),
        board: Arc::new(Board::default()),
        random: RefCell::new(fastrand::Rng::with_seed(1)),
    }
}

#[tokio::test]
async fn waits_while_another_instance_holds_the_lease() {
    let root = tempfile::tempdir().unwrap();
    let context = context(root.path());
    let _lease = Lease::take(&context.storage.locks, "example.org", &Owner::current(), NOW).unwrap().unwrap();
    let names = ["example.org".to_owned()];
    let outcome = Attempt { context: &context, names: &names, is_forced: true }.run().await;
    assert_eq!(outcome.again_at, Some(NOW + LEASE_POLL_SECONDS));
    assert!(outcome.record.is_none() && outcome.failure.is_none() && outcome.storage_failure.is_none());
}

#[tokio::test]
async fn a_stored_certificate_completes_its_order() {
    let root = tempfile::tempdir().unwrap();
    let mut context = context(root.path());
    // Questions for the renewal fail at once.
    context.options.directory = "https://127.0.0.1:1/".to_owned();
    let folder = &context.storage.certificates;
    // The process was killed when it had stored the certificate, and not yet that the order is complete.
    crate::manager::tests::store(root.path(), "example.org");
    let names = ["example.org".to_owned()];
    let order = PendingOrder {
        url: "https://127.0.0.1:1/1".to_owned(),
        names: names.to_vec(),
        directory: String::new(),
    };
    let record = Record { order: Some(order), ..Record::default() };
    record.write(folder, "example.org").unwrap();
    let outcome = Attempt { context: &context, names: &names, is_forced: false }.run().await;
    assert!(outcome.pair.is_some() && outcome.failure.is_none());
    assert_eq!(outcome.record.unwrap().order, None);
    let stored = Record::read(folder, "example.org").unwrap();
    assert!(stored.order.is_none() && stored.plan.renew_at > NOW && stored.plan.ask_at > NOW);
}

#[test]
fn finds_a_wrong_clock_by_a_new_certificate() {
    let facts = facts(1000);
    assert_eq!(clock_failure(&facts, NOW), None);
    let behind = clock_failure(&facts, NOW - 7).unwrap();
    assert!(behind.message.ends_with("the clock of this machine is behind by 7 s or more"), "{behind}");
    let ahead = clock_failure(&facts, NOW + 1000).unwrap();
    assert!(ahead.message.ends_with("the clock of this machine is ahead by 0 s or more"), "{ahead}");
}
