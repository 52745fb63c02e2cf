//! Concurrent renames of directories and links: nothing outside the root is ever opened.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use shearwater_io::fs::{OpenError, Root};

use super::roots;
use super::{SECRET, Tree};

/// Opens of one race that must both find and miss the file.
const OPENS: usize = 50_000;
/// Opens after which no race is possible here.
const OPENS_MAX: usize = 500_000;

/// Opens `path` repeatedly while another thread runs `move_things`.
fn open_while(root: &Root, path: &[u8], move_things: impl Fn() + Send + Sync) {
    let over = AtomicBool::new(false);
    let (mut opened, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        // Also on a failed assertion: otherwise the mover would never end.
        let _over = SetOnDrop(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                move_things();
            }
        });
        while opened + refused < OPENS_MAX && (opened + refused < OPENS || opened == 0 || refused == 0) {
            match root.open_beneath(path) {
                Ok(mut file) => {
                    let mut content = String::new();
                    file.file.read_to_string(&mut content).expect("readable");
                    assert_ne!(content, SECRET, "{} by {:?}", path.escape_ascii(), root.resolver());
                    opened += 1;
                }
                Err(OpenError::NotFound | OpenError::Escapes) => refused += 1,
                Err(error) => panic!("{error:?} for {}", path.escape_ascii()),
            }
        }
    });
    assert!(opened > 0 && refused > 0, "{opened} opened, {refused} refused by {:?}", root.resolver());
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn rename(from: &Path, to: &Path) {
    fs::rename(from, to).expect("only the mover renames");
}

#[test]
fn a_directory_that_becomes_a_link_to_outside() {
    let tree = Tree::new();
    tree.file("root/current/f", "inside");
    tree.link("root/evil", "../outside");
    let [current, evil, aside] = ["root/current", "root/evil", "root/aside"].map(|path| tree.at(path));
    for root in roots(&tree.root()) {
        open_while(&root, b"current/f", || {
            rename(&current, &aside);
            rename(&evil, &current);
            rename(&current, &evil);
            rename(&aside, &current);
        });
    }
}

#[test]
fn a_file_that_becomes_a_link_to_outside() {
    let tree = Tree::new();
    tree.file("root/f", "inside");
    tree.link("root/evil", tree.at("outside/f"));
    let [file, evil, aside] = ["root/f", "root/evil", "root/aside"].map(|path| tree.at(path));
    for root in roots(&tree.root()) {
        open_while(&root, b"f", || {
            rename(&file, &aside);
            rename(&evil, &file);
            rename(&file, &evil);
            rename(&aside, &file);
        });
    }
}

#[test]
fn an_absolute_link_while_a_directory_becomes_a_link_to_outside() {
    let tree = Tree::new();
    tree.file("root/current/f", "inside");
    tree.link("root/evil", tree.at("outside"));
    tree.link("root/absolute", tree.at("root/current/f"));
    let [current, evil, aside] = ["root/current", "root/evil", "root/aside"].map(|path| tree.at(path));
    for root in roots(&tree.root()) {
        open_while(&root, b"absolute", || {
            rename(&current, &aside);
            rename(&evil, &current);
            rename(&current, &evil);
            rename(&aside, &current);
        });
    }
}

#[test]
fn an_absolute_link_while_the_root_trades_names_with_outside() {
    let tree = Tree::new();
    tree.file("root/f", "inside");
    tree.link("root/absolute", tree.at("root/f"));
    let roots = roots(&tree.root());
    let [root_path, outside, aside] = ["root", "outside", "aside"].map(|path| tree.at(path));
    for root in roots {
        open_while(&root, b"absolute", || {
            rename(&root_path, &aside);
            rename(&outside, &root_path);
            rename(&root_path, &outside);
            rename(&aside, &root_path);
        });
    }
}

#[test]
fn an_absolute_link_upwards_while_a_directory_is_moved_outside() {
    let tree = Tree::new();
    tree.file("root/a/f", "inside");
    tree.file("root/a/b/c/g", "inside");
    tree.link("root/absolute", tree.at("root/a/b/c/../../f"));
    let [inside, outside] = ["root/a/b", "outside/b"].map(|path| tree.at(path));
    for root in roots(&tree.root()) {
        open_while(&root, b"absolute", || {
            rename(&inside, &outside);
            rename(&outside, &inside);
        });
    }
}

#[test]
fn a_link_upwards_in_a_directory_that_is_moved_outside() {
    let tree = Tree::new();
    tree.file("root/a/f", "inside");
    tree.file("root/a/b/c/g", "inside");
    tree.link("root/a/b/c/up", "../../f");
    let [inside, outside] = ["root/a/b", "outside/b"].map(|path| tree.at(path));
    for root in roots(&tree.root()) {
        open_while(&root, b"a/b/c/up", || {
            rename(&inside, &outside);
            rename(&outside, &inside);
        });
    }
}
