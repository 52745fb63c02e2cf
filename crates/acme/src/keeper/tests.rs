//! Tests of one certificate's task, without a CA.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{Keeper, Turn};
use crate::challenges::Challenges;
use crate::client::Client;
use crate::context::Context;
use crate::limits::{REISSUE_SECONDS_MIN, STORAGE_POLL_SECONDS};
use crate::options::{Clock, Options};
use crate::record::Record;
use crate::status::{Board, Notice};
use crate::storage::Storage;

const NOW: u64 = 1_800_000_000;
const NAME: &str = "example.org";

fn context(root: &Path, on_notice: impl FnMut(Notice) + Send + 'static) -> Context {
    let mut options = Options::new(root.to_owned(), vec![vec![NAME.to_owned()]]);
    options.clock = Clock::new(|| NOW);
    // Requests fail at once.
    options.directory = "https://127.0.0.1:1/".to_owned();
    let storage = Arc::new(Storage::open(root).unwrap());
    Context {
        challenges: Arc::new(Challenges::new(Arc::clone(&storage), options.clock.clone())),
        client: Client::new(None, options.clock.clone()).unwrap(),
        options,
        storage,
        board: Arc::new(Board::default()),
        random: RefCell::new(fastrand::Rng::with_seed(1)),
        on_notice: RefCell::new(Box::new(on_notice)),
        attempts: Semaphore::new(1),
        paused_until: Cell::default(),
        machine_help: RefCell::default(),
    }
}

fn keeper(context: &Context) -> Keeper {
    Keeper::open(context, vec![NAME.to_owned()])
}

#[tokio::test]
async fn a_stored_certificate_completes_its_order() {
    let root = tempfile::tempdir().unwrap();
    let context = context(root.path(), drop);
    // The process was killed when it had stored the certificate, and not yet removed the order.
    crate::manager::tests::store(root.path(), NAME);
    let folder = &context.storage.certificates;
    folder.write("example.org.order", b"{}").unwrap();
    let mut keeper = keeper(&context);
    assert!(matches!(keeper.work(&context).await, Ok(Turn::Own)));
    assert!(keeper.pair.is_some() && folder.read("example.org.order").unwrap().is_none());
    let stored = Record::read(folder, NAME, NOW).unwrap();
    assert!(stored.plan.renew_at > NOW && stored.plan.ask_at > NOW);
}

#[tokio::test]
async fn a_certificate_that_could_not_be_stored_is_stored_later() {
    let root = tempfile::tempdir().unwrap();
    let context = context(root.path(), drop);
    let serial = crate::manager::tests::store(root.path(), NAME);
    let folder = &context.storage.certificates;
    let mut keeper = keeper(&context);
    // As if it had been issued while the storage failed.
    keeper.unstored = folder.read("example.org.pem").unwrap();
    folder.remove("example.org.pem").unwrap();
    assert!(matches!(keeper.work(&context).await, Ok(Turn::Own)));
    assert!(folder.read("example.org.pem").unwrap().is_some() && keeper.unstored.is_none());
    assert_eq!(keeper.pair.as_ref().unwrap().facts().serial, serial);
    assert_eq!(Record::read(folder, NAME, NOW).unwrap().issued_at, NOW);
}

#[tokio::test]
async fn a_damaged_file_is_reported_and_ordered_again() {
    let root = tempfile::tempdir().unwrap();
    let (sender, notices) = std::sync::mpsc::sync_channel(10);
    let context = context(root.path(), move |notice| sender.send(notice).unwrap());
    crate::manager::tests::store(root.path(), NAME);
    let mut keeper = keeper(&context);
    assert!(matches!(notices.try_recv(), Ok(Notice::Certificate(_))));
    context.storage.certificates.write("example.org.pem", b"-----BEGIN").unwrap();
    assert!(matches!(keeper.work(&context).await, Ok(Turn::Own)));
    let failure = |notice| match notice {
        Notice::Failed(failure) => failure.message,
        notice @ Notice::Certificate(_) => panic!("{notice:?}"),
    };
    assert!(failure(notices.try_recv().unwrap()).starts_with("cannot use the stored certificate"));
    assert!(failure(notices.try_recv().unwrap()).contains("cannot connect to the CA"));
    // The one in memory stays in use.
    assert!(keeper.pair.is_some() && keeper.usable(&context).is_none());
}

#[tokio::test]
async fn instances_with_different_settings_do_not_order_in_turn() {
    let root = tempfile::tempdir().unwrap();
    let (sender, notices) = std::sync::mpsc::sync_channel(10);
    let context = context(root.path(), move |notice| sender.send(notice).unwrap());
    let mut keeper = keeper(&context);
    keeper.obtained_at = Some(NOW);
    // Another instance replaces it by one of another CA.
    crate::manager::tests::store(root.path(), NAME);
    let other = Record { directory: "https://other.example/".to_owned(), ..Record::default() };
    other.write(&context.storage.certificates, NAME).unwrap();
    keeper.read(&context).unwrap();
    assert!(matches!(notices.try_recv(), Ok(Notice::Certificate(_))), "any is better than none");
    let Ok(Notice::Failed(failure)) = notices.try_recv() else { panic!("it is reported") };
    assert!(failure.message.starts_with("another instance orders the certificate of example.org"));
    assert_eq!(keeper.due(&context), NOW + REISSUE_SECONDS_MIN);
}

#[tokio::test]
async fn storing_is_tried_again_in_a_minute_whatever_the_back_off() {
    let root = tempfile::tempdir().unwrap();
    let context = context(root.path(), drop);
    crate::manager::tests::store(root.path(), NAME);
    for (has_unstored, delay) in [(true, STORAGE_POLL_SECONDS), (false, 10_000)] {
        let mut keeper = keeper(&context);
        keeper.unstored =
            context.storage.certificates.read("example.org.pem").unwrap().filter(|_| has_unstored);
        keeper.record.next_attempt = NOW + 10_000;
        // Every attempt fails while it is a folder.
        let lock = root.path().join("acme/locks").join(NAME);
        std::fs::create_dir(&lock).unwrap();
        keeper.attempt(&context).await;
        std::fs::remove_dir(&lock).unwrap();
        assert_eq!(keeper.repeat_at, Some(NOW + delay));
    }
}
