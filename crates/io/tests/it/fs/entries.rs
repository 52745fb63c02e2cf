//! Reading directories: names, kinds and metadata of their entries.

use std::process::Command;

use shearwater_io::fs::{Entry, EntryKind, Opened, Root};

use super::tree::Tree;

fn opened(tree: &Tree) -> Opened {
    Root::open(&tree.root())
        .and_then(|root| root.open_beneath(b"").map_err(std::io::Error::other))
        .expect("a directory")
}

/// A name and its kind, if reported.
type Named = (Vec<u8>, Option<EntryKind>);

/// Returns all names, sorted, and the result of reading them.
fn names(opened: &Opened, max: usize) -> (Vec<Named>, bool) {
    let mut names = Vec::new();
    let is_whole = opened.names(max, |name, kind| names.push((name.to_vec(), kind))).expect("readable");
    names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    (names, is_whole)
}

#[test]
fn each_entry_is_what_it_is() {
    let tree = Tree::new();
    tree.file("root/.hidden", "");
    tree.file("root/dir/inner", "inner");
    tree.file("root/file", "seven b");
    tree.link("root/link", "file");
    tree.link("root/out", "/etc");
    let made = Command::new("mkfifo").arg(tree.at("root/pipe")).status().expect("mkfifo is of POSIX");
    assert!(made.success());
    let opened = opened(&tree);
    let (names, is_whole) = names(&opened, 100);
    let expected: [(&[u8], EntryKind); 6] = [
        (b".hidden", EntryKind::File),
        (b"dir", EntryKind::Directory),
        (b"file", EntryKind::File),
        (b"link", EntryKind::Link),
        (b"out", EntryKind::Link),
        (b"pipe", EntryKind::Other),
    ];
    assert!(is_whole);
    assert_eq!(names.len(), expected.len());
    for ((name, told), (expected, kind)) in names.iter().zip(expected) {
        assert_eq!(name, expected);
        assert!(told.is_none_or(|told| told == kind), "{}: {told:?}", name.escape_ascii());
        assert_eq!(opened.entry(name).map(|entry| entry.kind), Some(kind));
    }
    assert_eq!(opened.entry(b"none"), None);
    let file = Root::open(&tree.root()).expect("the root").open_beneath(b"file").expect("a file");
    let Entry { len, modified_seconds, .. } = opened.entry(b"file").expect("it is there");
    assert_eq!((len, modified_seconds), (7, file.meta.mtime.seconds));
    assert!(file.names(100, |_, _| {}).is_err(), "a file has no entries");
}

#[test]
fn reads_a_bounded_number_of_names() {
    let tree = Tree::new();
    for number in 0..20 {
        tree.file(&format!("root/{number:02}"), "");
    }
    let opened = opened(&tree);
    for (max, count, is_whole) in
        [(0, 0, false), (1, 1, false), (19, 19, false), (20, 20, true), (100, 20, true)]
    {
        let (names, whole) = names(&opened, max);
        assert_eq!((names.len(), whole), (count, is_whole), "{max}");
    }
}
