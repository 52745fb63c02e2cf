//! Roots beneath which no symbolic link is followed, the same with both resolvers.

use shearwater_io::fs::{Links, OpenError};

use super::roots;
use super::tree::Tree;

/// (path, whether it has a link in it)
const TABLE: &[(&[u8], bool)] = &[
    (b"", false),
    (b"f", false),
    (b"a/", false),
    (b"a/b/f", false),
    (b"to_f", true),
    (b"to_dir", true),
    (b"to_dir/", true),
    (b"to_dir/f", true),
    (b"a/up", true),
    (b"dangling", true),
    (b"escape", true),
    (b"escape_dir/f", true),
    (b"absolute", true),
    (b"circle", true),
    (b"circle/x", true),
];

#[test]
fn none_is_followed_where_none_may_be() {
    let tree = Tree::new();
    tree.file("root/f", "f");
    tree.file("root/a/b/f", "abf");
    for (name, target) in [
        ("to_f", "f"),
        ("to_dir", "a/b"),
        ("a/up", "../f"),
        ("dangling", "none"),
        ("escape", "../outside/f"),
        ("escape_dir", "../outside"),
        ("absolute", "/etc/passwd"),
        ("circle", "circle"),
    ] {
        tree.link(&format!("root/{name}"), target);
    }
    for root in roots(&tree.root()) {
        let root = root.with_links(Links::Deny);
        for (path, is_link) in TABLE {
            let opened = root.open_beneath(path);
            let what = format!("{} by {:?}: {opened:?}", path.escape_ascii(), root.resolver());
            match is_link {
                true => assert!(matches!(opened, Err(OpenError::Link)), "{what}"),
                false => assert!(opened.is_ok(), "{what}"),
            }
        }
        for path in [&b"none"[..], b"f/x", b"a/none/x"] {
            assert!(matches!(root.open_beneath(path), Err(OpenError::NotFound)), "{}", path.escape_ascii());
        }
        assert!(root.with_links(Links::Beneath).open_beneath(b"to_dir/f").is_ok());
    }
}

#[test]
fn the_root_itself_may_be_behind_a_link() {
    let tree = Tree::new();
    tree.file("root/f", "f");
    tree.link("link", "root");
    for root in roots(&tree.at("link")) {
        assert!(root.with_links(Links::Deny).open_beneath(b"f").is_ok());
    }
}
