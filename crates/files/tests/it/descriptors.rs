//! Files in memory are sent without free descriptors.

use std::fs::File;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use shearwater_files::FolderOptions;

use crate::client::Client;
use crate::site::Site;

/// Marks the child process that runs out of descriptors.
const CHILD: &str = "SHEARWATER_FILES_TEST_CHILD";

/// A time after which a file must be checked again.
const BEYOND_FRESH: Duration = Duration::from_millis(1000);

#[test]
fn a_file_in_memory_outlasts_a_want_of_descriptors() {
    in_own_process(want_of_descriptors);
}

#[test]
fn a_list_without_a_descriptor_to_read_the_folder_is_unavailable() {
    in_own_process(|| {
        let site = Site::with(&FolderOptions { listing: true, ..FolderOptions::default() });
        site.file("dir/f", "f");
        let mut client = site.connect();
        assert_eq!(client.request("GET", "/dir/", &[]).status, 200);
        let mut used = use_all();
        assert_eq!(client.request("GET", "/dir/", &[]).status, 503, "the folder can't be opened");
        used.pop();
        let response = client.request("GET", "/dir/", &[]);
        assert_eq!(response.status, 503, "the folder can be opened but not read");
        assert_eq!(response.field("Retry-After"), Some("1"));
        used.pop();
        assert_eq!(client.request("GET", "/dir/", &[]).status, 200);
    });
}

/// Opens files until no descriptor is free.
fn use_all() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Runs a test in its own process, since the limit of descriptors applies to the process.
fn in_own_process(test: fn()) {
    if std::env::var_os(CHILD).is_some() {
        return test();
    }
    let program = std::env::current_exe().expect("the test program has a path");
    let this = thread::current();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 256 && exec \"$0\" --exact \"$1\" --nocapture"])
        .args([program.as_os_str(), this.name().expect("a test has a name").as_ref()])
        .env(CHILD, "1")
        .output()
        .expect("the child runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn want_of_descriptors() {
    let site = Site::cached();
    site.file("index.html", "<p>index").file("a.css", "p {}").file("a.css.gz", "packed");
    let mut client = site.connect();
    let asked = [
        ("/", &[][..], "<p>index"),
        ("/a.css", &[], "p {}"),
        ("/a.css", &["Accept-Encoding: gzip"], "packed"),
    ];
    let all_are_sent = |client: &mut Client, when: &str| {
        for (target, fields, body) in asked {
            let response = client.request("GET", target, fields);
            assert_eq!(
                (response.status, &response.body[..]),
                (200, body.as_bytes()),
                "{target} {fields:?} {when}"
            );
        }
        client.request("GET", "/none", &[]).status
    };
    assert_eq!(all_are_sent(&mut client, "before"), 404);
    let used = use_all();
    let start = Instant::now();
    while start.elapsed() < BEYOND_FRESH {
        assert_eq!(
            all_are_sent(&mut client, "for want of descriptors"),
            503,
            "what isn't in memory can't be looked for"
        );
    }
    let (served, away) = (site.at(""), site.outside("away"));
    std::fs::rename(&served, &away).expect("moved away");
    std::fs::create_dir(&served).expect("another folder");
    let start = Instant::now();
    while start.elapsed() < BEYOND_FRESH {
        all_are_sent(&mut client, "while the folder in its place can't be opened");
    }
    drop(used);
    let start = Instant::now();
    while client.request("GET", "/", &[]).status == 200 {
        assert!(start.elapsed() < Duration::from_secs(20), "the other folder does not show");
    }
    std::fs::remove_dir(&served).expect("removed");
    std::fs::rename(&away, &served).expect("moved back");
    let start = Instant::now();
    while client.request("GET", "/", &[]).status != 200 {
        assert!(start.elapsed() < Duration::from_secs(20), "the folder does not show again");
    }
    assert_eq!(all_are_sent(&mut client, "behind"), 404);
    std::fs::remove_file(site.at("a.css")).expect("removed");
    let start = Instant::now();
    while client.request("GET", "/a.css", &[]).status == 200 {
        assert!(start.elapsed() < Duration::from_secs(20), "the change does not show");
    }
}
