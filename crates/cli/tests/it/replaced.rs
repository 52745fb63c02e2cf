//! Files that change while they are served: the short form of `cargo e2e replaced`, whose contents and changes these are. Each driver
//! that is there, each way to change a file, some times under load; and then the last version is the one that is served.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use testkit::versions::{Body, VersionedFile, content, read};

use crate::client::{Client, WAIT_MAX};
use crate::process::{Serving, Temporary, drivers, program};

/// Changes of each file in each way.
const CHANGES: u32 = 8;
/// Lengths of the files: in memory, and sent from the descriptor by one call or many.
const LENGTHS: [usize; 3] = [2 * 1024, 100 * 1024, 400 * 1024];

/// Leads from a generation to the next, with a moment between two changes; and whether a part of an response may be missing then.
type Step = fn(&VersionedFile, u32, &dyn Fn()) -> std::io::Result<()>;
const STEPS: [(&str, Step, bool); 4] = [
    ("renamed over", |target, generation, _| target.replace(generation), false),
    ("truncated", truncated, true),
    ("rewritten", |target, generation, _| target.rewrite(generation), true),
    ("deleted", deleted, false),
];

fn truncated(target: &VersionedFile, generation: u32, moment: &dyn Fn()) -> std::io::Result<()> {
    target.replace(generation)?;
    moment();
    target.truncate(target.len as u64 / 2)
}

fn deleted(target: &VersionedFile, generation: u32, moment: &dyn Fn()) -> std::io::Result<()> {
    target.remove()?;
    moment();
    target.replace(generation)
}

/// Responses that have come.
#[derive(Default)]
struct Answers(AtomicU64);

impl Answers {
    /// Waits until some more have come.
    fn wait_for_more(&self) {
        let (wanted, begun) = (self.0.load(Ordering::Relaxed) + 4, Instant::now());
        while self.0.load(Ordering::Relaxed) < wanted {
            assert!(begun.elapsed() < WAIT_MAX, "no answers come");
            std::thread::yield_now();
        }
    }
}

/// Ends the others, also where the test fails.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks once on its own connection: the generation that came whole, if one did.
fn ask(client: &mut Client, path: &str, step: &str, may_be_short: bool, tags: &mut Tags) -> Option<u32> {
    let head = client.ask("GET", path, &["Connection: close"]).head();
    let body = client.rest();
    let wanted: usize = head.field("Content-Length").expect("a length").parse().expect("a number");
    if head.status == 404 {
        assert_eq!(step, "deleted", "it is there all the time");
        return None;
    }
    assert_eq!(head.status, 200);
    if body.len() < wanted {
        assert!(may_be_short, "{step}: {} of {wanted} bytes", body.len());
        return None;
    }
    match read(&body, 0, 0) {
        Body::Version(generation) => {
            let tag = head.field("ETag").expect("a tag").to_owned();
            let known = *tags.entry(tag).or_insert((generation, wanted));
            assert_eq!(known, (generation, wanted), "{step}: a tag of two versions");
            Some(generation)
        }
        Body::HalfWritten => {
            assert_eq!(step, "rewritten", "nobody has written it half");
            None
        }
        Body::Mixture(what) => panic!("{step}: a mixture of {wanted} bytes: {what}"),
    }
}

/// Of which generation and length an response with this tag was.
type Tags = HashMap<String, (u32, usize)>;

/// Asks while the file changes, and then until the last generation comes: it has to, and soon.
fn ask_beside_changes(
    serving: &Serving,
    target: &VersionedFile,
    (name, step, may_be_short): (&str, Step, bool),
) {
    let address = serving.address();
    let path = format!("/{}", target.path.file_name().and_then(|name| name.to_str()).expect("its name"));
    let (is_over, responses) = (&AtomicBool::new(false), &Answers::default());
    std::thread::scope(|scope| {
        let _ends = SetWhenDropped(is_over);
        let asking: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (mut tags, mut whole) = (Tags::new(), 0);
                    while !is_over.load(Ordering::Relaxed) {
                        let mut client = Client::connect(address);
                        whole += u32::from(ask(&mut client, &path, name, may_be_short, &mut tags).is_some());
                        responses.0.fetch_add(1, Ordering::Relaxed);
                    }
                    whole
                })
            })
            .collect();
        let last = CHANGES + 1;
        for generation in 2..=last {
            step(target, generation, &|| responses.wait_for_more()).expect("it can be changed");
            responses.wait_for_more();
        }
        let (begun, mut tags) = (Instant::now(), Tags::new());
        while ask(&mut Client::connect(address), &path, name, may_be_short, &mut tags) != Some(last) {
            assert!(begun.elapsed() < WAIT_MAX, "{name}: the last change does not show");
        }
        is_over.store(true, Ordering::Relaxed);
        let whole: u32 = asking.into_iter().map(|one| one.join().expect("every answer is promised")).sum();
        assert!(whole > 0, "{name}: nothing was seen whole");
    });
}

#[test]
fn sends_the_old_or_the_new_version_of_a_changing_file() {
    for driver in drivers() {
        let folder = Temporary::new();
        folder.file("site/index.html", "");
        let arguments = ["site", "--listen", "127.0.0.1:0", "--driver", driver, "--workers", "2"];
        let serving = Serving::of(&mut program(folder.path(), &arguments));
        for (number, change) in STEPS.into_iter().enumerate() {
            for len in LENGTHS {
                let path = folder.path().join(format!("site/{number}-{len}.bin"));
                let target = VersionedFile { path, len, form: 0 };
                target.replace(1).expect("a file");
                ask_beside_changes(&serving, &target, change);
            }
        }
    }
}

/// Makes a release of a folder and points the link `current` at it.
fn release(folder: &Temporary, generation: u32) {
    for len in LENGTHS {
        folder.file(&format!("{generation}/{len}.bin"), content(generation, 0, len));
    }
    symlink(generation.to_string(), folder.path().join("next")).expect("a link");
    std::fs::rename(folder.path().join("next"), folder.path().join("current")).expect("swapped");
}

#[test]
fn serves_one_release_of_a_swapped_folder() {
    for driver in drivers() {
        let folder = Temporary::new();
        release(&folder, 1);
        let arguments = ["current", "--listen", "127.0.0.1:0", "--driver", driver, "--workers", "2"];
        let serving = Serving::of(&mut program(folder.path(), &arguments));
        let (address, is_over, responses) = (serving.address(), &AtomicBool::new(false), &Answers::default());
        std::thread::scope(|scope| {
            let _ends = SetWhenDropped(is_over);
            for len in LENGTHS {
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let mut client = Client::connect(address);
                        // It asserts that the response is whole and of one release.
                        ask(&mut client, &format!("/{len}.bin"), "swapped", false, &mut Tags::new());
                        responses.0.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for generation in 2..=CHANGES {
                release(&folder, generation);
                responses.wait_for_more();
            }
            for len in LENGTHS {
                let (path, begun) = (format!("/{len}.bin"), Instant::now());
                let last = || ask(&mut Client::connect(address), &path, "swapped", false, &mut Tags::new());
                while last() != Some(CHANGES) {
                    assert!(begun.elapsed() < WAIT_MAX, "the last release does not show");
                }
            }
        });
    }
}

/// What was on its way when the file was cut or rewritten is not made whole by anything else; what was replaced or removed comes whole.
#[test]
fn a_download_during_a_change_is_whole_or_truncated() {
    const LEN: usize = 16 * 1024 * 1024;
    for driver in drivers() {
        let folder = Temporary::new();
        let target = VersionedFile { path: folder.path().join("large.bin"), len: LEN, form: 0 };
        let arguments = [".", "--listen", "127.0.0.1:0", "--driver", driver];
        let serving = Serving::of(&mut program(folder.path(), &arguments));
        for (name, step, may_be_short) in STEPS {
            target.replace(1).expect("a file");
            let mut client = serving.connect();
            client.ask("GET", "/large.bin", &["Connection: close"]).head();
            let mut begun = [0; 8];
            client.stream.read_exact(&mut begun).expect("it has begun");
            step(&target, 2, &|| {}).expect("it can be changed");
            let body = [&begun[..], &client.rest()].concat();
            // A client knows of an response that is short that it is of no use, whatever came.
            let read = if name == "rewritten" { Body::Version(1) } else { read(&body, 0, 0) };
            assert_eq!(read, Body::Version(1), "{name}");
            // The first step of cutting it is to replace it.
            let is_whole = !may_be_short || name == "truncated";
            assert_eq!(body.len() == LEN, is_whole, "{name}: {} bytes", body.len());
        }
        target.replace(1).expect("a file");
        let mut client = serving.connect();
        client.ask("GET", "/large.bin", &["Connection: close"]).head();
        target.truncate(LEN as u64 - 8).expect("it can be cut");
        let body = client.rest();
        assert!(body.len() < LEN, "nothing is padded");
        assert_eq!(read(&body[..body.len() / 8 * 8], 0, 0), Body::Version(1));
    }
}
