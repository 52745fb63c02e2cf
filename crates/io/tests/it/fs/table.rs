//! What each path gives, the same with both resolvers.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use shearwater_io::fs::{Kind, OpenError, Resolver, Root};

use super::roots;
use super::tree::Tree;

/// What opening came to: content, a directory, or the error's name.
fn outcome(root: &Root, path: &[u8]) -> String {
    match root.open_beneath(path) {
        Ok(opened) if opened.kind == Kind::Directory => "directory".to_owned(),
        Ok(mut opened) => {
            let mut content = String::new();
            opened.file.read_to_string(&mut content).expect("readable");
            assert_eq!(opened.meta.len, content.len() as u64);
            content
        }
        Err(OpenError::Other(error)) => panic!("{error} for {}", path.escape_ascii()),
        Err(error) => format!("{error:?}"),
    }
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("root/a/b/f", "abf");
    tree.file("root/a/f", "af");
    tree.file("root/f", "f");
    tree.file("root/back\\slash", "backslash");
    tree.file("root/...", "dots");
    tree.file("root/ sp%20ace", "space");
    tree.link("root/a/to_f", "f");
    tree.link("root/a/b/up", "../../f");
    tree.link("root/a/b/up_dir", "..");
    tree.link("root/to_dir", "a/b");
    tree.link("root/to_dir_slash", "a/b/");
    tree.link("root/to_file_slash", "f/");
    tree.link("root/chain", "to_dir/up_dir/to_f");
    tree.link("root/to_self", ".");
    tree.link("root/down_and_up", "a/b/../../f");
    tree.link("root/dangling", "none");
    tree.link("root/escape", "../outside/f");
    tree.link("root/escape_dir", "../outside");
    tree.link("root/escape_and_back", "../root/f");
    tree.link("root/a/escape", "../../outside/f");
    tree.link("root/parent", "..");
    tree.link("root/absolute", "/etc/passwd");
    tree.link("root/absolute_inside", tree.at("root/f"));
    tree.link("root/absolute_root", "/");
    tree.link("root/circle_a", "circle_b");
    tree.link("root/circle_b", "circle_a");
    tree.link("root/own_circle", "own_circle/x");
    for number in 0..41 {
        let target = if number == 0 { "f".to_owned() } else { format!("chain{}", number - 1) };
        tree.link(&format!("root/chain{number}"), target);
    }
    let made = Command::new("mkfifo").arg(tree.at("root/fifo")).status().expect("mkfifo is of POSIX");
    assert!(made.success());
    tree.link("root/to_fifo", "fifo");
    tree
}

/// (path, outcome)
const TABLE: &[(&[u8], &str)] = &[
    // Ordinary.
    (b"", "directory"),
    (b"f", "f"),
    (b"a", "directory"),
    (b"a/", "directory"),
    (b"a/b/f", "abf"),
    (b"a//b///f", "abf"),
    (b"./a/./b/f", "abf"),
    (b".", "directory"),
    (b"a/.", "directory"),
    (b"back\\slash", "backslash"),
    (b"a\\b\\f", "NotFound"),
    (b"...", "dots"),
    (b" sp%20ace", "space"),
    (b"%66", "NotFound"),
    // Not there.
    (b"none", "NotFound"),
    (b"none/f", "NotFound"),
    (b"f/", "NotFound"),
    (b"f/.", "NotFound"),
    (b"f/x", "NotFound"),
    (b"a/b/f/x", "NotFound"),
    (b"F", "NotFound"),
    (b"\xff\xfe", "NotFound"),
    (b"f\0", "NotFound"),
    (b"f\0.html", "NotFound"),
    (b"dangling", "NotFound"),
    (b"dangling/x", "NotFound"),
    // Paths that lead out, or could.
    (b"..", "Escapes"),
    (b"../outside/f", "Escapes"),
    (b"../root/f", "Escapes"),
    (b"a/..", "Escapes"),
    (b"a/../f", "Escapes"),
    (b"a/../../outside/f", "Escapes"),
    (b"none/../f", "Escapes"),
    (b"/", "Escapes"),
    (b"//f", "Escapes"),
    (b"/etc/passwd", "Escapes"),
    // Links inside.
    (b"a/to_f", "af"),
    (b"a/to_f/", "NotFound"),
    (b"a/b/up", "f"),
    (b"a/b/up_dir", "directory"),
    (b"a/b/up_dir/f", "af"),
    (b"a/b/up_dir/b/up_dir/b/f", "abf"),
    (b"to_dir", "directory"),
    (b"to_dir/", "directory"),
    (b"to_dir/f", "abf"),
    (b"to_dir/up", "f"),
    (b"to_dir_slash", "directory"),
    (b"to_dir_slash/f", "abf"),
    (b"to_file_slash", "NotFound"),
    (b"chain", "af"),
    (b"to_self", "directory"),
    (b"to_self/to_self/f", "f"),
    (b"down_and_up", "f"),
    // Links out.
    (b"escape", "Escapes"),
    (b"escape_dir", "Escapes"),
    (b"escape_dir/f", "Escapes"),
    (b"escape_dir/", "Escapes"),
    (b"escape_and_back", "Escapes"),
    (b"a/escape", "Escapes"),
    (b"to_dir/up_dir/escape", "Escapes"),
    (b"parent", "Escapes"),
    (b"parent/root/f", "Escapes"),
    (b"a/b/up_dir/../../outside/f", "Escapes"),
    (b"absolute", "Escapes"),
    (b"absolute_inside", "Escapes"),
    (b"absolute_root", "Escapes"),
    (b"absolute_root/etc/passwd", "Escapes"),
    // Too many links.
    (b"circle_a", "TooManyLinks"),
    (b"circle_a/x", "TooManyLinks"),
    (b"own_circle", "TooManyLinks"),
    (b"chain39", "f"),
    (b"chain40", "TooManyLinks"),
    // Not plain.
    (b"fifo", "NotPlain"),
    (b"to_fifo", "NotPlain"),
    (b"fifo/", "NotFound"),
];

#[test]
fn each_path_gives_the_same_with_both_resolvers() {
    let tree = tree();
    for root in roots(&tree.root()) {
        for (path, expected) in TABLE {
            assert_eq!(outcome(&root, path), *expected, "{} by {:?}", path.escape_ascii(), root.resolver());
        }
    }
}

#[test]
fn long_names_are_refused() {
    let tree = tree();
    let deep = [b"a/".repeat(2000), b"f".to_vec()].concat();
    let same = [b"./".repeat(2000), b"f".to_vec()].concat();
    for root in roots(&tree.root()) {
        assert_eq!(outcome(&root, &[b'x'; 255]), "NotFound");
        assert_eq!(outcome(&root, &[b'x'; 256]), "NameTooLong");
        assert_eq!(outcome(&root, &[b'x'; 4095]), "NameTooLong");
        assert_eq!(outcome(&root, &b"./".repeat(2048)), "NameTooLong");
        assert_eq!(outcome(&root, &deep), "NotFound");
        assert_eq!(outcome(&root, &same), "f");
    }
}

#[test]
fn sockets_and_devices_are_refused() {
    let tree = tree();
    let _socket = UnixListener::bind(tree.at("root/socket")).expect("socket");
    for root in roots(&tree.root()) {
        assert_eq!(outcome(&root, b"socket"), "NotPlain");
    }
    for root in roots(Path::new("/dev")) {
        assert_eq!(outcome(&root, b"null"), "NotPlain");
    }
}

#[test]
fn unreadable_things_are_forbidden() {
    let tree = tree();
    tree.file("root/locked", "locked");
    tree.file("root/shut/f", "shut");
    let set = |path, mode| fs::set_permissions(tree.at(path), Permissions::from_mode(mode)).expect("mode");
    set("root/locked", 0o000);
    set("root/shut", 0o000);
    // Who may read it all the same (root may) can't be forbidden anything.
    let expected =
        if fs::read(tree.at("root/locked")).is_ok() { ["locked", "shut"] } else { ["Forbidden"; 2] };
    for root in roots(&tree.root()) {
        assert_eq!([outcome(&root, b"locked"), outcome(&root, b"shut/f")], expected);
    }
    set("root/shut", 0o700);
}

#[test]
fn metadata_is_that_of_the_opened_file() {
    let tree = tree();
    let expected = fs::metadata(tree.at("root/a/b/f")).expect("there");
    for root in roots(&tree.root()) {
        for path in [&b"a/b/f"[..], b"to_dir/f"] {
            let opened = root.open_beneath(path).expect("there");
            let (meta, kind) = (opened.meta, opened.kind);
            assert_eq!((kind, meta.len, meta.ino, meta.dev), (Kind::File, 3, expected.ino(), expected.dev()));
            assert_eq!(
                (meta.mtime.seconds, i64::from(meta.mtime.nanoseconds)),
                (expected.mtime(), expected.mtime_nsec())
            );
            assert_eq!(
                (meta.ctime.seconds, i64::from(meta.ctime.nanoseconds)),
                (expected.ctime(), expected.ctime_nsec())
            );
        }
    }
}

#[test]
fn a_changed_file_has_other_metadata() {
    let tree = tree();
    for root in roots(&tree.root()) {
        let before = root.open_beneath(b"f").expect("there").meta;
        tree.file("root/new", "F");
        fs::rename(tree.at("root/new"), tree.at("root/f")).expect("replaced");
        let after = root.open_beneath(b"f").expect("there").meta;
        assert_ne!(before, after);
        assert_ne!(before.ino, after.ino);
    }
}

#[test]
fn the_root_must_be_a_directory_and_may_be_a_link() {
    let tree = tree();
    tree.link("link", "root");
    assert!(Root::open(&tree.at("root/f")).is_err());
    assert!(Root::open(&tree.at("none")).is_err());
    for root in roots(&tree.at("link")) {
        assert_eq!(outcome(&root, b"f"), "f");
        assert_eq!(outcome(&root, b"parent"), "Escapes");
    }
}

#[test]
fn a_root_stays_itself_when_it_is_moved() {
    let tree = tree();
    let roots = roots(&tree.root());
    fs::rename(tree.at("root"), tree.at("moved")).expect("moved");
    for root in &roots {
        assert_eq!(outcome(root, b"to_dir/f"), "abf");
    }
}

#[test]
fn opening_takes_the_kernel_where_it_can() {
    let tree = tree();
    let by_kernel = Root::open_with(&tree.root(), Resolver::Kernel).is_ok();
    let expected = if by_kernel { Resolver::Kernel } else { Resolver::Walk };
    assert_eq!(Root::open(&tree.root()).expect("there").resolver(), expected);
}

#[test]
fn no_descriptor_is_left_open() {
    fn is_shared<T: Send + Sync + Clone>(_: &T) {}
    let tree = tree();
    let count = |prefix: &[u8]| {
        let links = fs::read_dir("/dev/fd").expect("this process's descriptors");
        let targets = links.filter_map(|entry| fs::read_link(entry.expect("entry").path()).ok());
        targets.filter(|target| target.as_os_str().as_bytes().starts_with(prefix)).count()
    };
    let roots = roots(&tree.root());
    is_shared(&roots[0]);
    for root in &roots {
        for (path, _) in TABLE {
            let _ = root.open_beneath(path);
        }
    }
    assert_eq!(
        count(tree.root().as_os_str().as_bytes()),
        if cfg!(target_os = "linux") { roots.len() } else { 0 }
    );
}
