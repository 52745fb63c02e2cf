//! Symbolic links and bind mounts, which give a directory several paths.

#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "a private mount namespace needs a system call that rustix doesn't wrap safely"
)]

use std::io::Read;
use std::path::Path;
use std::process::Command;

use shearwater_io::fs::{Links, Root};

use super::roots;
use super::{SECRET, Tree};

/// Runs a test on a thread with a private mount namespace. Skips it, with a message, if that isn't permitted.
fn with_own_mounts(test: fn(Tree)) {
    let thread = std::thread::spawn(move || {
        // SAFETY: the call takes no pointers. It affects this thread only.
        let unshared = unsafe { libc::unshare(libc::CLONE_NEWNS) };
        if unshared != 0 || !mount(&["--make-rprivate".as_ref(), "/".as_ref()]) {
            return println!("skipped: {}", std::io::Error::last_os_error());
        }
        test(Tree::new());
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs `mount` in the namespace of this thread.
fn mount(arguments: &[&Path]) -> bool {
    Command::new("mount").args(arguments).status().is_ok_and(|status| status.success())
}

fn bind(from: &Path, to: &Path) {
    assert!(mount(&["--bind".as_ref(), from, to]), "{} at {}", from.display(), to.display());
}

fn unmount(path: &Path) {
    assert!(Command::new("umount").arg(path).status().is_ok_and(|status| status.success()));
}

fn content(root: &Root, path: &str) -> String {
    let mut content = String::new();
    let opened = root.open_beneath(path.as_bytes());
    match opened {
        Ok(opened) => (&opened.file).read_to_string(&mut content).map(|_| content).expect("a file"),
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn recognises_the_root_by_any_of_its_mounts() {
    with_own_mounts(|tree| {
        tree.file("root/dir/f", "inside");
        tree.file("mounted/none", "");
        tree.link("root/by_mount", tree.at("mounted/dir/f"));
        tree.link("root/by_name", tree.at("root/dir/f"));
        tree.link("root/beside", tree.at("mounted/../outside/f"));
        bind(&tree.root(), &tree.at("mounted"));
        for root in [tree.root(), tree.at("mounted")].iter().flat_map(|path| roots(path)) {
            for (path, expected) in
                [("by_mount", "inside"), ("by_name", "inside"), ("beside", "Escapes"), ("dir/f", "inside")]
            {
                assert_eq!(content(&root, path), expected, "{path} by {:?}", root.resolver());
            }
            let root = root.with_links(Links::Follow);
            assert_eq!(content(&root, "beside"), SECRET);
        }
        unmount(&tree.at("mounted"));
    });
}

#[test]
fn a_mount_beneath_the_root_is_inside() {
    with_own_mounts(|tree| {
        tree.file("root/f", "inside");
        tree.file("root/disk/none", "");
        tree.file("volume/f", "on the volume");
        tree.link("volume/up", "../f");
        tree.link("root/absolute", tree.at("root/disk/f"));
        tree.link("root/by_the_volumes_name", tree.at("volume/f"));
        bind(&tree.at("volume"), &tree.at("root/disk"));
        for root in roots(&tree.root()) {
            for (path, expected) in [
                ("disk/f", "on the volume"),
                ("absolute", "on the volume"),
                ("disk/up", "inside"),
                // This path doesn't pass through the root.
                ("by_the_volumes_name", "Escapes"),
            ] {
                assert_eq!(content(&root, path), expected, "{path} by {:?}", root.resolver());
            }
        }
        unmount(&tree.at("root/disk"));
    });
}

/// A mount over a folder of the root isn't part of other mounts of the root.
#[test]
fn a_link_through_another_mount_of_the_root_shows_nothing_masked() {
    with_own_mounts(|tree| {
        tree.file("root/private/f", SECRET);
        tree.file("root/dir/f", "inside");
        tree.file("empty/none", "");
        tree.file("raw/none", "");
        tree.link("root/masked", tree.at("raw/private/f"));
        tree.link("root/folder", tree.at("raw/private"));
        tree.link("root/shown", tree.at("raw/dir/f"));
        tree.link("root/up", tree.at("raw/dir/../private/f"));
        tree.link("root/out", tree.at("raw/../outside/f"));
        bind(&tree.root(), &tree.at("raw"));
        bind(&tree.at("empty"), &tree.at("root/private"));
        for root in roots(&tree.root()) {
            for (path, expected) in [
                ("private/f", "NotFound"),
                ("masked", "NotFound"),
                ("folder/f", "NotFound"),
                ("shown", "inside"),
                ("up", "NotFound"),
                ("out", "Escapes"),
            ] {
                assert_eq!(content(&root, path), expected, "{path} by {:?}", root.resolver());
            }
        }
        unmount(&tree.at("root/private"));
        unmount(&tree.at("raw"));
    });
}
