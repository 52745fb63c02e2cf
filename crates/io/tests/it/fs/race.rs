//! Concurrent renames of directories and links: nothing outside the root is ever opened.

use std::fs;
use std::io::Read;

use shearwater_io::fs::{OpenError, Root};
use testkit::versions::while_changing;

use super::roots;
use super::{SECRET, Tree};

/// Opens of one race that must both find and miss the file.
const OPENS: usize = 50_000;
/// Opens after which no race is possible here.
const OPENS_MAX: usize = 500_000;

/// Opens `path` repeatedly while another thread runs `move_things`.
fn open_while(root: &Root, path: &[u8], move_things: impl Fn() + Send) {
    let (mut opened, mut refused) = (0, 0);
    while_changing(move_things, || {
        while opened + refused < OPENS_MAX && (opened + refused < OPENS || opened == 0 || refused == 0) {
            match root.open_beneath(path) {
                Ok(file) => {
                    let mut content = String::new();
                    (&file.file).read_to_string(&mut content).expect("readable");
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

/// Files, links and renames of a race; each of these is undone by the last.
struct Race {
    what: &'static str,
    files: &'static [&'static str],
    /// Relative targets, and absolute ones as paths of the tree.
    links: &'static [(&'static str, Target)],
    path: &'static str,
    renames: &'static [(&'static str, &'static str)],
}

enum Target {
    Relative(&'static str),
    Absolute(&'static str),
}
use Target::{Absolute, Relative};

const CURRENT_TO_EVIL: &[(&str, &str)] = &[
    ("root/current", "root/aside"),
    ("root/evil", "root/current"),
    ("root/current", "root/evil"),
    ("root/aside", "root/current"),
];

const MOVED_OUT: &[(&str, &str)] = &[("root/a/b", "outside/b"), ("outside/b", "root/a/b")];

const RACES: [Race; 6] = [
    Race {
        what: "a directory becomes a link to outside",
        files: &["root/current/f"],
        links: &[("root/evil", Relative("../outside"))],
        path: "current/f",
        renames: CURRENT_TO_EVIL,
    },
    Race {
        what: "a file becomes a link to outside",
        files: &["root/current"],
        links: &[("root/evil", Absolute("outside/f"))],
        path: "current",
        renames: CURRENT_TO_EVIL,
    },
    Race {
        what: "an absolute link while a directory becomes a link to outside",
        files: &["root/current/f"],
        links: &[("root/evil", Absolute("outside")), ("root/absolute", Absolute("root/current/f"))],
        path: "absolute",
        renames: CURRENT_TO_EVIL,
    },
    Race {
        what: "an absolute link while the root and outside swap names",
        files: &["root/f"],
        links: &[("root/absolute", Absolute("root/f"))],
        path: "absolute",
        renames: &[("root", "aside"), ("outside", "root"), ("root", "outside"), ("aside", "root")],
    },
    Race {
        what: "an absolute link upwards while a directory is moved outside",
        files: &["root/a/f", "root/a/b/c/g"],
        links: &[("root/absolute", Absolute("root/a/b/c/../../f"))],
        path: "absolute",
        renames: MOVED_OUT,
    },
    Race {
        what: "a link upwards in a directory that is moved outside",
        files: &["root/a/f", "root/a/b/c/g"],
        links: &[("root/a/b/c/up", Relative("../../f"))],
        path: "a/b/c/up",
        renames: MOVED_OUT,
    },
];

#[test]
fn renames_never_expose_a_file_outside() {
    for Race { what, files, links, path, renames } in RACES {
        println!("{what}");
        let tree = Tree::new();
        files.iter().for_each(|file| tree.file(file, "inside"));
        for (link, target) in links {
            match target {
                Relative(target) => tree.link(link, target),
                Absolute(target) => tree.link(link, tree.at(target)),
            }
        }
        let renames: Vec<_> = renames.iter().map(|(from, to)| (tree.at(from), tree.at(to))).collect();
        for root in roots(&tree.root()) {
            open_while(&root, path.as_bytes(), || {
                for (from, to) in &renames {
                    fs::rename(from, to).expect("only the mover renames");
                }
            });
        }
    }
}
