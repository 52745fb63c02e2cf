//! Tests of the storage.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::Storage;
use crate::limits::{FILE_BYTES_MAX, LEFTOVER_SECONDS};
use crate::options::Clock;

fn open() -> (tempfile::TempDir, Storage) {
    let root = tempfile::tempdir().unwrap();
    let storage = Storage::open(&root.path().join("new/storage")).unwrap();
    (root, storage)
}

#[test]
fn folders_and_files_are_for_this_user_alone() {
    let (root, storage) = open();
    storage.certificates.write("example.org.pem", b"key").unwrap();
    let acme = root.path().join("new/storage/acme");
    let mode = |path: &str| fs::symlink_metadata(acme.join(path)).unwrap().permissions().mode() & 0o7777;
    for folder in ["", "account", "certificates", "challenges", "locks"] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    assert_eq!(mode("certificates/example.org.pem"), 0o600);
}

#[test]
fn open_folders_are_closed_to_others() {
    let (root, _) = open();
    let path = root.path().join("new/storage/acme/certificates");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Storage::open(&root.path().join("new/storage")).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
}

#[test]
fn replaces_files_whole() {
    let (root, storage) = open();
    let folder = &storage.certificates;
    assert_eq!(folder.read("a").unwrap(), None);
    folder.write("a", b"first").unwrap();
    let version = folder.version("a").unwrap();
    folder.write("a", b"second").unwrap();
    assert_eq!(folder.read("a").unwrap().unwrap().as_slice(), b"second");
    assert_ne!(folder.version("a").unwrap(), version);
    // Nothing temporary is left.
    assert_eq!(fs::read_dir(root.path().join("new/storage/acme/certificates")).unwrap().count(), 1);
}

#[test]
fn one_instance_at_a_time_has_a_lock() {
    let (root, storage) = open();
    let other = Storage::open(&root.path().join("new/storage")).unwrap();
    let lock = storage.locks.lock("example.org").unwrap();
    assert!(lock.is_some() && other.locks.lock("example.org").unwrap().is_none());
    assert!(other.locks.lock("example.org.uk").unwrap().is_some());
    drop(lock);
    assert!(other.locks.lock("example.org").unwrap().is_some());
}

#[test]
fn follows_no_links() {
    let (root, storage) = open();
    let acme = root.path().join("new/storage/acme");
    let outside = root.path().join("outside");
    fs::write(&outside, b"outside").unwrap();
    symlink(&outside, acme.join("certificates/a")).unwrap();
    let failure = storage.certificates.read("a").unwrap_err();
    assert_eq!(failure.help, "remove the link: nothing in the storage may be one");
    // A write replaces the link, not the file that it names.
    storage.certificates.write("a", b"inside").unwrap();
    assert_eq!(fs::read(&outside).unwrap(), b"outside");
    assert_eq!(storage.certificates.read("a").unwrap().unwrap().as_slice(), b"inside");

    fs::remove_dir(acme.join("locks")).unwrap();
    symlink(root.path(), acme.join("locks")).unwrap();
    let failure = Storage::open(&root.path().join("new/storage")).unwrap_err();
    assert!(
        failure.message.ends_with("(os error 20)") || failure.message.ends_with("(os error 40)"),
        "{failure}"
    );
}

#[test]
fn reads_files_of_a_bounded_size() {
    let (_root, storage) = open();
    storage.certificates.write("a", &vec![b'a'; FILE_BYTES_MAX]).unwrap();
    assert_eq!(storage.certificates.read("a").unwrap().map(|content| content.len()), Some(FILE_BYTES_MAX));
    storage.certificates.write("a", &vec![b'a'; FILE_BYTES_MAX + 1]).unwrap();
    let error = storage.certificates.read("a").unwrap_err();
    assert!(error.message.ends_with("it is larger than 256 KiB"), "{error}");
}

#[test]
fn removes_what_interrupted_instances_have_left() {
    let (_root, storage) = open();
    storage.challenges.write("token.http", b"").unwrap();
    storage.certificates.write(".new-1-1", b"").unwrap();
    storage.certificates.write("a.pem", b"").unwrap();
    let now = Clock::default().now();
    let left = || storage.challenges.names().unwrap().len() + storage.certificates.names().unwrap().len();
    storage.remove_leftovers(now);
    assert_eq!(left(), 3);
    storage.remove_leftovers(now + LEFTOVER_SECONDS + 10);
    assert_eq!(storage.certificates.names().unwrap(), ["a.pem"]);
    assert_eq!(left(), 1);
}
