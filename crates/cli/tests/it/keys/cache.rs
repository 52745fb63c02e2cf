//! `[cache]`: what a worker keeps of files. What is kept is looked at twice a second, so a change does not show at once; what is
//! not kept is as it lies there.

use std::fs;
use std::time::Instant;

use super::on_each_driver;
use crate::client::{Client, PATIENCE};
use crate::folder::Temporary;

/// Replaces a file as a whole.
fn replace(folder: &Temporary, name: &str, content: &str) {
    folder.file("www/new", content);
    fs::rename(folder.path().join("www/new"), folder.path().join("www").join(name)).expect("renamed");
}

fn text(client: &mut Client, name: &str) -> String {
    client.request("GET", &format!("/{name}"), &[]).text().to_owned()
}

/// Whether a file is kept: replaced again and again, an old version comes soon. `between` is what is asked for before each look.
fn is_kept(folder: &Temporary, client: &mut Client, name: &str, between: &[&str]) -> bool {
    let begun = Instant::now();
    for version in 0_u64.. {
        let content = format!("{version:06}");
        replace(folder, name, &content);
        for other in between {
            text(client, other);
        }
        if text(client, name) != content {
            return true;
        }
        // A thousand versions take much less than half a second; on a machine that is held up they may not.
        if version > 1000 && (version > 3000 || begun.elapsed() > PATIENCE) {
            return false;
        }
    }
    false
}

/// Asserts for settings whether files of six bytes are kept.
fn kept(settings: &str, between: &[&str], is_expected: bool) {
    on_each_driver(&format!("[server]\nworkers = 1\n[cache]\n{settings}\n"), |folder, serving| {
        folder.file("www/other.txt", "others");
        let mut client = serving.connect();
        assert_eq!(is_kept(folder, &mut client, "f.txt", between), is_expected, "{settings}");
    });
}

#[test]
pub(super) fn enabled() {
    kept("enabled = true", &[], true);
    kept("enabled = false", &[], false);
}

#[test]
pub(super) fn file_bytes_max() {
    kept("file_bytes_max = 6", &[], true);
    kept("file_bytes_max = 5", &[], false);
}

/// One has to make room for the other.
#[test]
pub(super) fn bytes_max() {
    let both = |bytes: u32| format!("file_bytes_max = 6\nbytes_max = {bytes}");
    kept(&both(100_000), &["other.txt"], true);
    kept(&both(6), &["other.txt"], false);
}

#[test]
pub(super) fn entries_max() {
    kept("entries_max = 2", &["other.txt"], true);
    kept("entries_max = 1", &["other.txt"], false);
}
