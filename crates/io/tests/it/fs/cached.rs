//! Opening and reading what is in the kernel's caches, without waiting for a disk.

use std::io::ErrorKind;

use shearwater_io::fs::{Links, OpenError, Resolver, Root};

use super::Tree;

fn root(tree: &Tree) -> Root {
    Root::open(&tree.root()).expect("a directory")
}

#[test]
fn opens_and_reads_what_was_just_written() {
    let tree = Tree::new();
    tree.file("root/dir/file", "content");
    for links in [Links::Inside, Links::Never, Links::Follow] {
        let root = root(&tree).with_links(links);
        assert!(!root.is_remote(), "temporary files aren't on a server");
        let opened = root.open_cached(b"dir/file").expect("its name is cached");
        let mut bytes = [0; 100];
        match opened.read_cached_at(&mut bytes, 3) {
            Ok(read) => assert_eq!(&bytes[..read], b"tent"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "the file system can't tell"),
        }
    }
}

#[test]
fn leaves_links_that_leave_the_root_to_others() {
    let tree = Tree::new();
    tree.file("root/file", "content");
    tree.link("root/link", tree.at("root/file"));
    let root = root(&tree);
    assert!(root.open_beneath(b"link").is_ok());
    let cached = root.open_cached(b"link");
    match root.has_cached_opens() {
        true => assert!(matches!(cached, Err(OpenError::WouldBlock)), "{cached:?}"),
        false => assert!(cached.is_ok(), "{cached:?}"),
    }
}

#[test]
fn opens_all_where_the_kernel_can_not_tell() {
    let tree = Tree::new();
    tree.file("root/file", "content");
    tree.link("root/link", tree.at("root/file"));
    let root = Root::open_with(&tree.root(), Resolver::Walk).expect("a directory");
    assert!(!root.has_cached_opens());
    assert!(root.open_cached(b"link").is_ok());
}

#[test]
fn a_swapped_root_is_another() {
    let tree = Tree::new();
    tree.file("root/file", "content");
    let first = root(&tree);
    let mut second = first.clone();
    assert!(second.is_same(&first));
    std::fs::rename(tree.root(), tree.at("away")).expect("moved");
    tree.file("root/file", "another");
    assert!(second.look_up() && !second.is_same(&first));
}
