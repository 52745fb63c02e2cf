//! What is read of a directory.

use std::process::Command;

use shearwater_io::fs::{Entries, EntriesMax, EntryKind, Root};

use super::tree::Tree;

const MANY: EntriesMax = EntriesMax { entries: 1_000, names: 1_000 };

fn read(tree: &Tree, max: EntriesMax, is_wanted: impl Fn(&[u8]) -> bool) -> Entries {
    let root = Root::open(&tree.root()).expect("the root");
    let mut found = root.open_beneath(b"").expect("a directory").entries(max, is_wanted).expect("readable");
    found.entries.sort_by(|a, b| a.name.cmp(&b.name));
    found
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
    let found = read(&tree, MANY, |_| true);
    let kinds: Vec<_> = found.entries.iter().map(|entry| (&entry.name[..], entry.kind)).collect();
    let expected: [(&[u8], EntryKind); 6] = [
        (b".hidden", EntryKind::File),
        (b"dir", EntryKind::Directory),
        (b"file", EntryKind::File),
        (b"link", EntryKind::Link),
        (b"out", EntryKind::Link),
        (b"pipe", EntryKind::Other),
    ];
    assert_eq!(kinds, expected);
    assert!(found.is_whole);
    let root = Root::open(&tree.root()).expect("the root");
    let file = root.open_beneath(b"file").expect("a file");
    assert_eq!((found.entries[2].len, found.entries[2].modified_seconds), (7, file.meta.mtime.seconds));
    assert!(file.entries(MANY, |_| true).is_err(), "a file has no entries");
}

#[test]
fn a_bounded_number_is_read() {
    let tree = Tree::new();
    for number in 0..20 {
        tree.file(&format!("root/{number:02}"), "");
    }
    for (entries, names, wanted, shown, is_whole) in [
        (20, 20, 20, 20, true),
        (19, 100, 20, 19, false),
        (0, 100, 20, 0, false),
        (100, 19, 20, 19, false),
        (100, 20, 20, 20, true),
        (5, 100, 5, 5, true),
        (5, 100, 0, 0, true),
    ] {
        let max = EntriesMax { entries, names };
        let is_wanted = |name: &[u8]| name < format!("{wanted:02}").as_bytes();
        let found = read(&tree, max, is_wanted);
        assert_eq!((found.entries.len(), found.is_whole), (shown, is_whole), "{max:?}, {wanted} wanted");
    }
    let few = read(&tree, EntriesMax { entries: 100, names: 3 }, |_| true);
    assert!(few.entries.len() <= 5 && !few.is_whole, "{} of so few names", few.entries.len());
}
