//! Directories: their entries, and roots whose path is looked up again.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use shearwater_io::fs::{DirectoryEntry, EntryKind, OpenError, Opened, Root};

use super::Tree;
use super::roots;

fn opened(tree: &Tree) -> Opened {
    Root::open(&tree.root())
        .and_then(|root| root.open_beneath(b"").map_err(std::io::Error::other))
        .expect("a directory")
}

/// A name and its kind, if reported.
type NamedKind = (Vec<u8>, Option<EntryKind>);

/// Returns all names, sorted, and the result of reading them.
fn names(opened: &Opened, max: usize) -> (Vec<NamedKind>, bool) {
    let mut names = Vec::new();
    let is_whole = opened.names(max, |name, kind| names.push((name.to_vec(), kind))).expect("readable");
    names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    (names, is_whole)
}

#[test]
fn reports_each_entry_s_kind() {
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
    let DirectoryEntry { len, modified_seconds, .. } = opened.entry(b"file").expect("it is there");
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

/// Returns the content of the file `f`, or the error of opening it.
fn content(root: &Root) -> String {
    match root.open_beneath(b"f") {
        Ok(opened) => {
            let mut content = String::new();
            (&opened.file).read_to_string(&mut content).expect("readable");
            content
        }
        Err(OpenError::Other(error)) => panic!("{error}"),
        Err(error) => format!("{error:?}"),
    }
}

/// Replaces the root by another folder.
fn replace(tree: &Tree, content: &str) {
    tree.file("new/f", content);
    fs::remove_dir_all(tree.root()).expect("it is there");
    fs::rename(tree.at("new"), tree.root()).expect("moved");
}

#[test]
fn look_up_finds_another_directory_at_the_path() {
    let tree = Tree::new();
    for mut root in roots(&tree.root()) {
        let resolver = root.resolver();
        for content_now in ["one", "two", "three"] {
            replace(&tree, content_now);
            assert_eq!(content(&root), "NotFound", "it stays the one that is removed until it is looked up");
            assert!(root.look_up() && !root.look_up());
            assert_eq!((content(&root), root.resolver()), (content_now.to_owned(), resolver));
        }
    }
}

#[test]
fn a_dead_path_has_no_files_until_it_is_repaired() {
    let tree = Tree::new();
    tree.file("kept/f", "kept");
    tree.file("file", "");
    tree.link("circle", "circle");
    fs::remove_dir(tree.root()).expect("it is empty");
    tree.link("root", "kept");
    for mut root in roots(&tree.root()) {
        for (target, why) in [("none", "NotFound"), ("file", "NotFound"), ("circle", "TooManyLinks")] {
            fs::remove_file(tree.root()).expect("a link");
            tree.link("root", target);
            assert_eq!(content(&root), "kept", "it stays itself until it is looked up");
            assert!(root.look_up() && !root.look_up());
            assert_eq!(content(&root), why);
            fs::remove_file(tree.root()).expect("a link");
            tree.link("root", "kept");
            assert!(root.look_up() && !root.look_up());
            assert_eq!(content(&root), "kept");
        }
    }
}

#[test]
fn a_path_that_is_forbidden_forbids_every_file() {
    if rustix::process::getuid().is_root() {
        return println!("skipped: nothing is forbidden to root");
    }
    let tree = Tree::new();
    tree.file("root/inner/f", "f");
    for mut root in roots(&tree.at("root/inner")) {
        fs::set_permissions(tree.root(), Permissions::from_mode(0o000)).expect("the file can be changed");
        assert!(root.look_up());
        assert_eq!(content(&root), "Forbidden");
        fs::set_permissions(tree.root(), Permissions::from_mode(0o755)).expect("the file can be changed");
        assert!(root.look_up());
        assert_eq!(content(&root), "f");
    }
}

/// Each worker has a clone of a root, so a swap must not cost a descriptor per worker.
#[test]
#[cfg(target_os = "linux")]
fn clones_that_find_the_same_directory_share_its_descriptor() {
    let tree = Tree::new();
    tree.file("root/f", "old");
    let mut clones = vec![Root::open(&tree.root()).expect("the root"); 8];
    let open = || {
        let links = fs::read_dir("/dev/fd").expect("this process's descriptors");
        let targets = links.filter_map(|entry| fs::read_link(entry.expect("entry").path()).ok());
        targets.filter(|target| target.starts_with(tree.at(""))).count()
    };
    assert_eq!(open(), 1);
    replace(&tree, "new");
    assert!(clones.iter_mut().all(Root::look_up) && clones.iter().all(|root| content(root) == "new"));
    assert_eq!(open(), 1, "the one before is closed");
}

/// The metadata of a name equals that of the file opened by it, and shows each change of what the name leads to.
#[test]
fn compares_a_file_without_opening_it() {
    let tree = Tree::new();
    tree.file("root/d/f", "f");
    tree.link("root/link", "d/f");
    tree.link("root/nowhere", "none");
    tree.link("root/to_dir", "d");
    for root in roots(&tree.root()) {
        let opened = root.open_beneath(b"d/f").expect("the file").meta;
        for name in [&b"d/f"[..], b"to_dir/f"] {
            assert_eq!(root.compare_at(name).expect("the file"), opened);
        }
        for name in [&b"link"[..], b"nowhere", b"d", b""] {
            let found = root.compare_at(name);
            assert!(matches!(found, Err(OpenError::NotPlain | OpenError::NotFound)), "{found:?}");
        }
        for name in [&b"none"[..], b"d/none", b"d/f/none", b"d/f\0"] {
            assert!(matches!(root.compare_at(name), Err(OpenError::NotFound)));
        }
        for name in [&b"../outside/f"[..], b"/etc/passwd"] {
            assert!(matches!(root.compare_at(name), Err(OpenError::Escapes)));
        }
        tree.file("root/d/f", "longer");
        assert_ne!(root.compare_at(b"d/f").expect("the file"), opened);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn knows_file_systems_that_date_changes_of_names() {
    let dates = |path: &str| {
        let root = Root::open(std::path::Path::new(path)).expect("a directory");
        root.open_beneath(b"").expect("a directory").dates_names()
    };
    assert!(!dates("/proc") && !dates("/sys"));
    let tree = Tree::new();
    tree.file("root/f", "f");
    let root = Root::open(&tree.root()).expect("the folder");
    assert!(!root.open_beneath(b"f").expect("a file").dates_names(), "no directory");
}
