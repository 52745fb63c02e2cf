//! Files that a server writes, where others may have put something else.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use shearwater_io::fs::written::{append, check_replaceable, read_own, replace};
use testkit::TestFolder;

fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).expect("a file").permissions().mode() & 0o7777
}

fn make_fifo(path: &std::path::Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(status.success());
}

#[test]
fn replaces_a_link_and_leaves_its_target() {
    let folder = TestFolder::new();
    folder.file("target", "precious").file("file.new", "unrelated");
    symlink(folder.at("target"), folder.at("file")).expect("a link");
    check_replaceable(&folder.at("file")).expect("replaceable");
    let identity = replace(&folder.at("file"), b"1\n", 0o644).expect("written");
    assert_eq!(fs::read(folder.at("target")).expect("a file"), b"precious");
    assert_eq!(fs::read(folder.at("file.new")).expect("a file"), b"unrelated");
    assert_eq!(read_own(&folder.at("file"), 32).expect("a file"), (b"1\n".to_vec(), identity));
    assert_eq!(mode(&folder.at("file")), 0o644);
    let other = replace(&folder.at("file"), b"2\n", 0o600).expect("written");
    assert_ne!(identity, other);
    assert_eq!(
        (mode(&folder.at("file")), fs::read_dir(folder.path()).expect("a folder").count()),
        (0o600, 3)
    );
}

#[test]
fn refuses_what_is_no_regular_file_at_once() {
    let folder = TestFolder::new();
    make_fifo(&folder.at("pipe"));
    symlink(folder.at("pipe"), folder.at("link")).expect("a link");
    fs::create_dir(folder.at("folder")).expect("a folder");
    for (name, kind) in [("pipe", ErrorKind::AlreadyExists), ("folder", ErrorKind::IsADirectory)] {
        assert_eq!(check_replaceable(&folder.at(name)).expect_err(name).kind(), kind);
        assert_eq!(replace(&folder.at(name), b"", 0o644).expect_err(name).kind(), kind);
        assert_eq!(read_own(&folder.at(name), 32).expect_err(name).kind(), ErrorKind::InvalidData);
    }
    assert_eq!(check_replaceable(&folder.at("none/f")).expect_err("none").kind(), ErrorKind::NotFound);
    read_own(&folder.at("link"), 32).expect_err("a link isn't followed");
    folder.file("long", "0".repeat(33));
    assert_eq!(read_own(&folder.at("long"), 32).expect_err("long").kind(), ErrorKind::InvalidData);
    append(&folder.at("pipe"), 0o640).expect_err("a pipe without a reader");
}

#[test]
fn appends_by_a_link_of_this_user_only() {
    let folder = TestFolder::new();
    folder.file("log", "1\n");
    symlink(folder.at("log"), folder.at("link")).expect("a link");
    symlink(folder.at("new"), folder.at("dangling")).expect("a link");
    for name in ["link", "dangling", "plain"] {
        append(&folder.at(name), 0o640).and_then(|mut log| log.write_all(b"2\n")).expect(name);
    }
    assert_eq!(fs::read(folder.at("log")).expect("a file"), b"1\n2\n");
    assert_eq!(fs::read(folder.at("new")).expect("a file"), b"2\n");
    assert_eq!(mode(&folder.at("plain")) & 0o600, 0o600);
    // Only root can make such a link.
    if std::os::unix::fs::lchown(folder.at("link"), Some(12345), None).is_ok() {
        let error = append(&folder.at("link"), 0o640).expect_err("another user's link");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::read(folder.at("log")).expect("a file"), b"1\n2\n");
    }
}
