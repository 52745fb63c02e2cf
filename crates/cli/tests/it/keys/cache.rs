//! `[cache]`: cached files are revalidated twice a second, so that a change may be delayed; files that aren't cached change at once.

use std::fs;
use std::time::Instant;

use super::on_each_driver;
use crate::client::{Client, WAIT_MAX};
use crate::process::Temporary;

/// Replaces a file atomically.
fn replace(folder: &Temporary, name: &str, content: &str) {
    folder.file("www/new", content);
    fs::rename(folder.path().join("www/new"), folder.path().join("www").join(name)).expect("renamed");
}

fn text(client: &mut Client, name: &str) -> String {
    client.request("GET", &format!("/{name}"), &[]).text().to_owned()
}

/// Replaces a file, requests the files `between` and then it, and returns whether the old version was sent.
fn is_old(folder: &Temporary, client: &mut Client, version: u64, between: &[&str]) -> bool {
    let content = format!("{version:06}");
    replace(folder, "f.txt", &content);
    for other in between {
        text(client, other);
    }
    text(client, "f.txt") != content
}

/// Checks whether a file of six bytes is cached: an old version is sent soon, or never in 300 replacements.
fn kept(settings: &str, between: &[&str], is_expected: bool) {
    on_each_driver(&format!("[server]\nworkers = 1\n[cache]\n{settings}\n"), |folder, serving| {
        folder.file("www/other.txt", "others");
        let mut client = serving.connect();
        let begun = Instant::now();
        let times = |version: &u64| if is_expected { begun.elapsed() < WAIT_MAX } else { *version < 300 };
        let mut versions = (0..).take_while(times);
        let is_kept = versions.any(|version| is_old(folder, &mut client, version, between));
        assert_eq!(is_kept, is_expected, "{settings}");
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
