//! Files that change while they are served: the short form of `cargo e2e replaced`. A response is of one version or ends short, an entity
//! tag belongs to one version, and the last version is served soon. `crates/files/tests/it/replaced.rs` changes files within a response.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use testkit::versions::{Body, VersionedFile, content, read};
use testkit::{TIMEOUT, TestClient, TestFolder};

use crate::process::{Server, drivers};

/// Changes of each file in each way.
const CHANGES: u32 = 8;
/// Lengths of the files: in memory, and sent from the descriptor by one call or many.
const LENGTHS: [usize; 3] = [2 * 1024, 100 * 1024, 400 * 1024];

/// Changes a file to its next version; the function waits for some responses.
type Change = fn(&VersionedFile, u32, &dyn Fn()) -> std::io::Result<()>;

/// Ways to change a file, and whether responses may then end short.
const WAYS: [(&str, Change, bool); 4] = [
    ("renamed over", |file, version, _| file.replace(version), false),
    (
        "truncated",
        |file, version, wait| {
            file.replace(version)?;
            wait();
            file.truncate(file.len as u64 / 2)
        },
        true,
    ),
    ("rewritten", |file, version, _| file.rewrite(version), true),
    (
        "deleted",
        |file, version, wait| {
            file.remove()?;
            wait();
            file.replace(version)
        },
        false,
    ),
];

/// Version and length of the response with a tag.
type Tags = HashMap<String, (u32, usize)>;

/// Requests a file on a new connection. Returns its version if it was received whole.
fn request(address: SocketAddr, path: &str, way: &str, may_be_short: bool, tags: &mut Tags) -> Option<u32> {
    let mut client = TestClient::connect(address);
    let head = client.ask("GET", path, &["Connection: close"]).head();
    let body = client.rest();
    let expected: usize = head.field("Content-Length").expect("a length").parse().expect("a number");
    if head.status == 404 {
        assert_eq!(way, "deleted", "{path} is always there");
        return None;
    }
    assert_eq!(head.status, 200);
    if body.len() < expected {
        assert!(may_be_short, "{way}: {} of {expected} bytes", body.len());
        return None;
    }
    match read(&body, 0, 0) {
        Body::Version(version) => {
            let tag = head.field("ETag").expect("a tag").to_owned();
            let known = *tags.entry(tag).or_insert((version, expected));
            // Of files in different folders, it may be the same by chance.
            assert!(way == "swapped" || known == (version, expected), "{way}: one tag for two versions");
            Some(version)
        }
        Body::HalfWritten => {
            assert_eq!(way, "rewritten", "no file is half written");
            None
        }
        Body::Mixture(mixture) => panic!("{way}: a mixture of {expected} bytes: {mixture}"),
    }
}

/// Set when dropped, also if the test fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Requests files by two clients each while they are changed, and until the last version is received.
fn while_requested(
    address: SocketAddr,
    paths: &[String],
    (way, may_be_short, last): (&str, bool, u32),
    change: impl FnOnce(&dyn Fn()),
) {
    let (is_over, responses) = (&AtomicBool::new(false), &AtomicU64::new(0));
    let wait = || {
        let (wanted, start) = (responses.load(Ordering::Relaxed) + 4, Instant::now());
        while responses.load(Ordering::Relaxed) < wanted {
            assert!(start.elapsed() < TIMEOUT, "no responses");
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let _ends = SetOnDrop(is_over);
        let client = |path| {
            move || {
                let (mut tags, mut whole) = (Tags::new(), 0);
                while !is_over.load(Ordering::Relaxed) {
                    whole += u32::from(request(address, path, way, may_be_short, &mut tags).is_some());
                    responses.fetch_add(1, Ordering::Relaxed);
                }
                whole
            }
        };
        let clients: Vec<_> = paths.iter().chain(paths).map(|path| scope.spawn(client(path))).collect();
        change(&wait);
        for path in paths {
            let start = Instant::now();
            while request(address, path, way, may_be_short, &mut Tags::new()) != Some(last) {
                assert!(start.elapsed() < TIMEOUT, "{way}: {path}: the last change does not show");
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let whole: u32 = clients.into_iter().map(|client| client.join().expect("valid responses")).sum();
        assert!(whole > 0, "{way}: no whole response");
    });
}

#[test]
fn sends_the_old_or_the_new_version_of_a_changing_file() {
    for driver in drivers() {
        let folder = TestFolder::new();
        folder.file("site/index.html", "");
        let server = Server::start(&folder, &["site", "--driver", driver, "--workers", "2"]);
        for (number, (way, change, may_be_short)) in WAYS.into_iter().enumerate() {
            for len in LENGTHS {
                let name = format!("{number}-{len}.bin");
                let file = VersionedFile { path: folder.at("site").join(&name), len, form: 0 };
                file.replace(1).expect("a file");
                let last = CHANGES + 1;
                while_requested(server.address(), &[format!("/{name}")], (way, may_be_short, last), |wait| {
                    for version in 2..=last {
                        change(&file, version, wait).expect("changed");
                        wait();
                    }
                });
            }
        }
    }
}

/// Makes a release of a folder and points the link `current` at it.
fn release(folder: &TestFolder, version: u32) {
    for len in LENGTHS {
        folder.file(format!("{version}/{len}.bin"), content(version, 0, len));
    }
    folder.link("next", version.to_string());
    std::fs::rename(folder.at("next"), folder.at("current")).expect("swapped");
}

#[test]
fn serves_one_release_of_a_swapped_folder() {
    for driver in drivers() {
        let folder = TestFolder::new();
        release(&folder, 1);
        let server = Server::start(&folder, &["current", "--driver", driver, "--workers", "2"]);
        let paths = LENGTHS.map(|len| format!("/{len}.bin"));
        while_requested(server.address(), &paths, ("swapped", false, CHANGES), |wait| {
            for version in 2..=CHANGES {
                release(&folder, version);
                wait();
            }
        });
    }
}
