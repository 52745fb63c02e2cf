//! Results of opening each path, equal with both resolvers.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use shearwater_io::fs::{Kind, Links, OpenError, Opened, Resolver, Root};

use super::Tree;
use super::roots;

/// Returns the result of opening: content, a directory, or the error's name.
///
/// Opening only what is cached must have the same result, or none.
fn outcome(root: &Root, path: &[u8]) -> String {
    let outcome = described(root.open_beneath(path), path);
    let cached = described(root.open_cached(path), path);
    assert!(cached == outcome || cached == "WouldBlock", "{cached} instead of {outcome}");
    outcome
}

fn described(opened: Result<Opened, OpenError>, path: &[u8]) -> String {
    match opened {
        Ok(opened) if opened.kind == Kind::Directory => "directory".to_owned(),
        Ok(opened) => {
            let mut content = String::new();
            (&opened.file).read_to_string(&mut content).expect("readable");
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
    tree.link("root/absolute", tree.at("outside/f"));
    tree.link("root/absolute_none", tree.at("outside/none"));
    tree.link("root/absolute_root", "/");
    tree.link("root/absolute_outside", tree.at("outside"));
    tree.link("root/absolute_inside", tree.at("root/f"));
    tree.link("root/absolute_dir", tree.at("root/a"));
    tree.link("root/absolute_dir_slash", tree.at("root/a/"));
    tree.link("root/absolute_file_slash", tree.at("root/f/"));
    tree.link("root/absolute_own", tree.root());
    tree.link("root/absolute_dangling", tree.at("root/none"));
    tree.link("root/absolute_chain", tree.at("root/a/b/absolute_next"));
    tree.link("root/a/b/absolute_next", tree.at("root/a/to_f"));
    tree.link("root/absolute_alias", tree.at("alias/a/f"));
    tree.link("alias", "root");
    tree.link("root/absolute_back", tree.at("outside/back"));
    tree.link("outside/back", "../root/f");
    tree.link("root/absolute_dots", tree.at("outside/../root/a/../f"));
    tree.link("root/absolute_dots_out", tree.at("root/../outside/f"));
    tree.link("root/absolute_fifo", tree.at("outside/fifo"));
    tree.link("root/absolute_circle", tree.at("outside/circle"));
    tree.link("outside/circle", "circle");
    tree.link("root/circle_a", "circle_b");
    tree.link("root/circle_b", "circle_a");
    tree.link("root/own_circle", "own_circle/x");
    for number in 0..41 {
        let target = if number == 0 { "f".to_owned() } else { format!("chain{}", number - 1) };
        tree.link(&format!("root/chain{number}"), target);
    }
    for fifo in ["root/fifo", "outside/fifo"] {
        let made = Command::new("mkfifo").arg(tree.at(fifo)).status().expect("mkfifo is of POSIX");
        assert!(made.success());
    }
    tree.link("root/to_fifo", "fifo");
    tree
}

/// The outcome with each setting: [`Links::Inside`], [`Links::Never`], [`Links::Follow`].
type Outcomes = [&'static str; 3];

/// The same with every setting.
const fn all(outcome: &'static str) -> Outcomes {
    [outcome; 3]
}

/// Outcomes of a path with a link that ends beneath the root.
const fn link(outcome: &'static str) -> Outcomes {
    [outcome, "Link", outcome]
}

/// Outcomes of a path with a link that ends outside.
const fn out(outcome: &'static str) -> Outcomes {
    ["Escapes", "Link", outcome]
}

const TABLE: &[(&[u8], Outcomes)] = &[
    // Ordinary.
    (b"", all("directory")),
    (b"f", all("f")),
    (b"a", all("directory")),
    (b"a/", all("directory")),
    (b"a/b/f", all("abf")),
    (b"a//b///f", all("abf")),
    (b"./a/./b/f", all("abf")),
    (b".", all("directory")),
    (b"a/.", all("directory")),
    (b"back\\slash", all("backslash")),
    (b"a\\b\\f", all("NotFound")),
    (b"...", all("dots")),
    (b" sp%20ace", all("space")),
    (b"%66", all("NotFound")),
    // Missing.
    (b"none", all("NotFound")),
    (b"none/f", all("NotFound")),
    (b"f/", all("NotFound")),
    (b"f/.", all("NotFound")),
    (b"f/x", all("NotFound")),
    (b"a/b/f/x", all("NotFound")),
    (b"F", all("NotFound")),
    (b"\xff\xfe", all("NotFound")),
    (b"f\0", all("NotFound")),
    (b"f\0.html", all("NotFound")),
    (b"dangling", link("NotFound")),
    (b"dangling/x", link("NotFound")),
    // Paths that leave the root, or could.
    (b"..", all("Escapes")),
    (b"../outside/f", all("Escapes")),
    (b"../root/f", all("Escapes")),
    (b"a/..", all("Escapes")),
    (b"a/../f", all("Escapes")),
    (b"a/../../outside/f", all("Escapes")),
    (b"none/../f", all("Escapes")),
    (b"/", all("Escapes")),
    (b"//f", all("Escapes")),
    (b"/etc/passwd", all("Escapes")),
    // Links inside.
    (b"a/to_f", link("af")),
    (b"a/to_f/", link("NotFound")),
    (b"a/b/up", link("f")),
    (b"a/b/up_dir", link("directory")),
    (b"a/b/up_dir/f", link("af")),
    (b"a/b/up_dir/b/up_dir/b/f", link("abf")),
    (b"to_dir", link("directory")),
    (b"to_dir/", link("directory")),
    (b"to_dir/f", link("abf")),
    (b"to_dir/up", link("f")),
    (b"to_dir_slash", link("directory")),
    (b"to_dir_slash/f", link("abf")),
    (b"to_file_slash", link("NotFound")),
    (b"chain", link("af")),
    (b"to_self", link("directory")),
    (b"to_self/to_self/f", link("f")),
    (b"down_and_up", link("f")),
    // Links out.
    (b"escape", out("secret")),
    (b"escape_dir", out("directory")),
    (b"escape_dir/f", out("secret")),
    (b"escape_dir/", out("directory")),
    (b"escape_and_back", link("f")),
    (b"a/escape", out("secret")),
    (b"to_dir/up_dir/escape", out("secret")),
    (b"parent", out("directory")),
    (b"parent/root/f", out("f")),
    (b"a/b/up_dir/../../outside/f", all("Escapes")),
    (b"absolute", out("secret")),
    (b"absolute_inside", link("f")),
    (b"absolute_root", out("directory")),
    (b"absolute_root/none", out("NotFound")),
    // Too many links.
    (b"circle_a", link("TooManyLinks")),
    (b"circle_a/x", link("TooManyLinks")),
    (b"own_circle", link("TooManyLinks")),
    (b"chain39", link("f")),
    (b"chain40", link("TooManyLinks")),
    // Not plain.
    (b"fifo", all("NotPlain")),
    (b"to_fifo", link("NotPlain")),
    (b"fifo/", all("NotFound")),
    // Absolute links that end inside.
    (b"absolute_dir", link("directory")),
    (b"absolute_dir/f", link("af")),
    (b"absolute_dir/b/up", link("f")),
    (b"absolute_dir_slash", link("directory")),
    (b"absolute_dir_slash/b/f", link("abf")),
    (b"absolute_file_slash", link("NotFound")),
    (b"absolute_own", link("directory")),
    (b"absolute_own/to_dir/f", link("abf")),
    (b"absolute_own/absolute_own/f", link("f")),
    (b"absolute_dangling", link("NotFound")),
    (b"absolute_chain", link("af")),
    (b"absolute_alias", link("af")),
    (b"absolute_back", link("f")),
    (b"absolute_dots", link("f")),
    // Absolute links that end outside. Errors reveal nothing, and names of the path are not looked up there.
    (b"absolute_none", out("NotFound")),
    (b"absolute_outside", out("directory")),
    (b"absolute_outside/f", out("secret")),
    (b"absolute_outside/none", out("NotFound")),
    (b"absolute_outside/back", out("f")),
    (b"absolute_dots_out", out("secret")),
    (b"absolute_fifo", out("NotPlain")),
    (b"absolute_own/escape", out("secret")),
    (b"absolute_circle", link("TooManyLinks")),
];

#[test]
fn each_path_gives_the_same_with_both_resolvers() {
    let tree = tree();
    for root in roots(&tree.root()) {
        for (number, links) in [Links::Inside, Links::Never, Links::Follow].into_iter().enumerate() {
            let root = root.clone().with_links(links);
            for (path, outcomes) in TABLE {
                let what = format!("{} by {:?}, {links:?}", path.escape_ascii(), root.resolver());
                assert_eq!(outcome(&root, path), outcomes[number], "{what}");
            }
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
    // A user who may read it regardless (root) can't be denied anything.
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
        assert_eq!(outcome(&root.clone().with_links(Links::Never), b"f"), "f", "no link beneath it");
        assert_eq!(outcome(&root, b"parent"), "Escapes");
        assert_eq!(outcome(&root, b"absolute_inside"), "f");
        assert_eq!(outcome(&root, b"escape_and_back"), "f");
    }
}

#[test]
fn a_root_stays_itself_when_it_is_moved() {
    let tree = tree();
    let roots = roots(&tree.root());
    fs::rename(tree.at("root"), tree.at("moved")).expect("moved");
    for root in &roots {
        assert_eq!(outcome(root, b"to_dir/f"), "abf");
        // Its old name no longer leads to it.
        assert_eq!(outcome(root, b"absolute_inside"), "Escapes");
    }
    tree.link("root", "moved");
    for root in &roots {
        assert_eq!(outcome(root, b"absolute_inside"), "f");
        assert_eq!(outcome(root, b"escape_and_back"), "f");
    }
}

#[test]
fn another_folder_with_the_name_of_the_root_is_outside() {
    let tree = tree();
    let roots = roots(&tree.root());
    fs::rename(tree.root(), tree.at("moved")).expect("moved");
    tree.file("root/f", "another");
    for root in &roots {
        for path in [&b"absolute_inside"[..], b"escape_and_back", b"absolute_own"] {
            assert_eq!(outcome(root, path), "Escapes", "{}", path.escape_ascii());
        }
    }
}

#[test]
fn opens_by_the_kernel_where_possible() {
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
        for links in [Links::Inside, Links::Never, Links::Follow] {
            let root = root.clone().with_links(links);
            for (path, _) in TABLE {
                let _ = root.open_beneath(path);
            }
        }
    }
    assert_eq!(
        count(tree.root().as_os_str().as_bytes()),
        if cfg!(target_os = "linux") { roots.len() } else { 0 }
    );
}
