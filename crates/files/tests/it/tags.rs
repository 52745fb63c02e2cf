//! Entity tags: the same for a file on every machine, different for other versions, weak while the file may change
//! undetected.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

use shearwater::testing::{TestResponse, Tested};
use shearwater::{App, DriverChoice};
use shearwater_files::{CacheLimits, Folder};
use testkit::TestFolder;

use crate::site::{TestSite, dated, wait_until};

/// Start time of the simulated kernel: Sun, 06 Nov 1994 08:49:37 GMT.
const START: u64 = 784_111_777;

/// Lengths of a cached and of an uncached file.
const SIZES: [usize; 2] = [1_000, 100_000];

/// A folder with a file `f` and its sibling `f.gz`, and a server whose clock the test drives.
struct Machine {
    folder: TestFolder,
    tested: Tested,
}

impl Machine {
    /// Creates one whose larger files have a tag of length and time.
    fn new(cache: CacheLimits) -> Self {
        Self::with(dated(cache))
    }

    fn with(cache: CacheLimits) -> Self {
        let files = TestFolder::new();
        let folder = Folder::open(files.path()).expect("a folder");
        let app = App::new().mount("/s", move |_| folder.files_with(cache));
        Self { folder: files, tested: Tested::new(app).expect("one mount") }
    }

    /// Writes both, with a time in nanoseconds from the clock's start.
    fn write(&self, content: &[u8], nanoseconds: i64) {
        for (name, content) in
            [("f", content.to_vec()), ("f.gz", testkit::coded("gz", content, content.len()))]
        {
            let time = Duration::from_nanos((START as i64 * 1_000_000_000 + nanoseconds) as u64);
            self.folder.file(name, content).set_modified(name, UNIX_EPOCH + time);
        }
    }

    fn ask(&mut self, lines: &[&str]) -> TestResponse {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        self.tested.ask(format!("GET /s/f HTTP/1.1\r\nHost: test\r\n{lines}\r\n"))
    }

    /// Returns the tags of the file and its sibling after cached ones have expired.
    fn tags(&mut self) -> [String; 2] {
        self.tested.pass(Duration::from_secs(1));
        ["Accept-Encoding: identity", "Accept-Encoding: gzip"].map(|accepted| tag(&self.ask(&[accepted])))
    }
}

fn tag(response: &TestResponse) -> String {
    assert!(matches!(response.status, 200 | 206 | 304 | 412), "{response:?}");
    response.field("ETag").expect("a tag").to_owned()
}

#[test]
fn same_file_has_the_same_tag_on_two_machines() {
    for driver in [DriverChoice::Epoll, DriverChoice::Uring] {
        for (len, cache) in SIZES
            .into_iter()
            .flat_map(|len| [CacheLimits::default(), CacheLimits::none()].map(|cache| (len, dated(cache))))
        {
            let Some(site) = TestSite::driven(driver, cache) else { continue };
            site.tick();
            let Some(other) = TestSite::driven(driver, cache) else { continue };
            let tags = [&site, &other].map(|site| {
                // Another inode and another `ctime`.
                site.file("before", "").tick();
                for name in ["f", "f.gz"] {
                    site.file(name, testkit::coded(&name[1..].replace('.', ""), vec![7; len], len))
                        .modified(name, UNIX_EPOCH + Duration::new(START, 123_456_789));
                }
                ["identity", "gzip"].map(|accepted| {
                    let field = format!("Accept-Encoding: {accepted}");
                    site.connect().request("GET", "/f", &[&field]).field("ETag").expect("a tag").to_owned()
                })
            });
            assert_eq!(tags[0], tags[1], "{driver:?}, {len} bytes");
            assert_ne!(tags[0][0], tags[0][1], "two codings of one file");
            assert!(tags[0][0].starts_with('"'), "long unchanged: {tags:?}");
        }
    }
}

/// Inode, device and `ctime` leak (CVE-2003-1418), and depend on the machine.
#[test]
fn tag_ignores_inode_and_ctime() {
    for (len, cache) in
        [(1_000, CacheLimits::default()), (1_000, CacheLimits::none()), (100_000, CacheLimits::default())]
    {
        let mut machine = Machine::new(cache);
        machine.write(&vec![7; len], -3_600_000_000_000);
        let first = machine.tags();
        for name in ["f", "f.gz"] {
            fs::set_permissions(machine.folder.at(name), Permissions::from_mode(0o600)).expect("a mode");
        }
        assert_eq!(machine.tags(), first, "chmod, {len} bytes");
        for name in ["f", "f.gz"] {
            // Another inode.
            fs::rename(machine.folder.at(name), machine.folder.at("old")).expect("renamed");
            fs::copy(machine.folder.at("old"), machine.folder.at(name)).expect("copied");
            machine.folder.set_modified(name, machine.folder.modified("old"));
        }
        assert_eq!(machine.tags(), first, "cp -p, {len} bytes");
    }
}

#[test]
fn each_version_has_its_own_tag() {
    const AGO: i64 = -3_600_000_000_000;
    for (len, cache) in
        [(1_000, CacheLimits::default()), (1_000, CacheLimits::none()), (100_000, CacheLimits::default())]
    {
        let mut machine = Machine::new(cache);
        let is_hashed = len == 1_000 && cache != CacheLimits::none();
        let mut seen = Vec::new();
        // Content, length, time. The same content with another time is the same version only for hashes.
        for (byte, len, time) in
            [(7, len, AGO), (8, len, AGO + 1), (8, len + 1, AGO + 1), (8, len + 1, AGO + 1_000_000_000)]
        {
            machine.write(&vec![byte; len], time);
            seen.push(machine.tags());
        }
        assert_eq!(seen[2] == seen[3], is_hashed, "{seen:?}");
        let distinct = if is_hashed { &seen[..3] } else { &seen };
        for (number, tags) in distinct.iter().enumerate() {
            assert!(distinct[..number].iter().flatten().all(|tag| !tags.contains(tag)), "{seen:?}");
        }
        machine.write(&vec![9; len], AGO);
        let replaced = machine.tags();
        assert_eq!(replaced != seen[0], is_hashed, "another content of the same length and time");
    }
}

/// Within a tick of the file system's clock, two seconds on some, a file may change and keep its time.
#[test]
fn tag_of_length_and_time_is_weak_for_two_seconds() {
    for (len, cache) in [(100_000, CacheLimits::default()), (1_000, CacheLimits::none())] {
        for age_s in [-1_000_000, 0, 1, 2, 3] {
            let mut machine = Machine::new(cache);
            machine.write(&vec![7; len], -age_s * 1_000_000_000);
            let tag = tag(&machine.ask(&[]));
            assert_eq!(tag.starts_with("W/\""), age_s <= 2, "{age_s} s: {tag}");
        }
        let mut machine = Machine::new(cache);
        machine.write(&vec![7; len], 0);
        let weak = tag(&machine.ask(&[]));
        let strong = weak.strip_prefix("W/").expect("a weak tag").to_owned();
        let status = |machine: &mut Machine, line: &str, range: &str| machine.ask(&[line, range]).status;
        for known in [&weak, &strong] {
            assert_eq!(status(&mut machine, &format!("If-None-Match: {known}"), "X: y"), 304);
            assert_eq!(status(&mut machine, &format!("If-Match: {known}"), "X: y"), 412);
            assert_eq!(status(&mut machine, &format!("If-Range: {known}"), "Range: bytes=0-1"), 200);
        }
        assert_eq!(status(&mut machine, "If-Match: *", "Range: bytes=0-1"), 206);
        machine.tested.pass(Duration::from_secs(3));
        assert_eq!(tag(&machine.ask(&[])), strong, "the same text");
        for (known, is_strong) in [(&weak, false), (&strong, true)] {
            assert_eq!(status(&mut machine, &format!("If-None-Match: {known}"), "X: y"), 304);
            let (matches, ranged) = if is_strong { (200, 206) } else { (412, 200) };
            assert_eq!(status(&mut machine, &format!("If-Match: {known}"), "X: y"), matches);
            assert_eq!(status(&mut machine, &format!("If-Range: {known}"), "Range: bytes=0-1"), ranged);
        }
    }
}

/// Builds and package managers give every version of every file the same time, in whole seconds.
#[test]
fn fixed_mtimes_claim_nothing() {
    // Nix sets the second 1; buildpacks the second second of 1980; npm 1985-10-26 08:15; others that of a commit.
    for (len, is_hashed, seconds) in [1, 315_532_801, 499_162_500, START - 86_400]
        .into_iter()
        .flat_map(|seconds| [(1_000, true, seconds), (100_000, false, seconds)])
    {
        let mut machine = Machine::with(CacheLimits::default());
        machine.write(&vec![7; len], (seconds as i64 - START as i64) * 1_000_000_000);
        let response = machine.ask(&[]);
        assert_eq!(response.status, 200);
        assert_eq!(response.field("ETag").is_some(), is_hashed, "{len} bytes");
        let date = response.field("Last-Modified").expect("a date").to_owned();
        let [since, if_range] = ["If-Modified-Since", "If-Range"].map(|name| format!("{name}: {date}"));
        for (line, range, status) in [
            ("If-None-Match: \"a\"", "X: y", 200),
            ("If-None-Match: *", "X: y", 304),
            ("If-Match: *", "X: y", 200),
            ("If-Match: \"a\"", "X: y", 412),
            ("If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT", "X: y", 200),
            (&since, "X: y", 200),
            (&if_range, "Range: bytes=0-1", 200),
            ("X: y", "Range: bytes=0-1", 206),
        ] {
            assert_eq!(machine.ask(&[line, range]).status, status, "{line}, {len} bytes");
        }
    }
}

/// A file and its sibling that aren't cached, replaced by others of the same length and time.
#[test]
fn file_replaced_with_its_length_and_time_is_another_version() {
    for driver in [DriverChoice::Epoll, DriverChoice::Uring] {
        let Some(site) = TestSite::driven(driver, CacheLimits::default()) else { continue };
        let replace = |byte: u8| {
            for (name, start) in [("f", &[][..]), ("f.br", b"\x0c")] {
                let content = [start, &vec![byte; 100_000 - start.len()]].concat();
                site.file("new", content).modified("new", UNIX_EPOCH + Duration::from_secs(315_532_801));
                fs::rename(site.at("new"), site.at(name)).expect("replaced");
            }
        };
        let mut client = site.connect();
        for coding in ["identity", "br"] {
            let accepted = format!("Accept-Encoding: {coding}");
            let mut ask = |lines: [&str; 2]| client.request("GET", "/f", &[&accepted, lines[0], lines[1]]);
            replace(7);
            let first = ask(["A: b", "C: d"]);
            assert_eq!((first.status, first.field("ETag")), (200, None), "it isn't hashed yet");
            let date = first.field("Last-Modified").expect("a date").to_owned();
            let [since, dated] = ["If-Modified-Since", "If-Range"].map(|name| format!("{name}: {date}"));
            assert_eq!(ask([&since, "C: d"]).status, 200);
            assert_eq!(ask([&dated, "Range: bytes=0-1"]).status, 200);
            let mut tags = Vec::new();
            for byte in [7, 8, 7] {
                wait_until("the hash", || ask(["A: b", "C: d"]).field("ETag").is_some());
                let tag = ask(["A: b", "C: d"]).field("ETag").expect("a tag").to_owned();
                let [none_match, tagged] = ["If-None-Match", "If-Range"].map(|name| format!("{name}: {tag}"));
                assert_eq!(ask([&none_match, "C: d"]).status, 304);
                assert_eq!(ask([&tagged, "Range: bytes=0-1"]).status, 206);
                tags.push(tag);
                let next = 15 - byte;
                replace(next);
                wait_until("the change", || ask(["A: b", "C: d"]).body.last() == Some(&next));
                for lines in [[&none_match, "C: d"], [&since, "C: d"], [&tagged, "Range: bytes=0-1"]] {
                    let response = ask(lines);
                    assert_eq!((response.status, response.body.len()), (200, 100_000), "{lines:?}");
                    assert_eq!(response.body.last(), Some(&next), "{lines:?}");
                }
                assert_eq!(ask([&dated, "Range: bytes=0-1"]).status, 200);
            }
            assert!(tags[0] == tags[2] && tags[0] != tags[1], "the content alone counts: {tags:?}");
        }
    }
}

/// A hash covers the bytes that are sent.
#[test]
fn tag_of_the_content_is_strong_at_once() {
    let mut machine = Machine::new(CacheLimits::default());
    machine.write(&[7; 1_000], 0);
    let tag = tag(&machine.ask(&[]));
    assert!(tag.starts_with('"'), "{tag}");
    for (line, range, status) in
        [("If-None-Match", "X: y", 304), ("If-Match", "X: y", 200), ("If-Range", "Range: bytes=0-1", 206)]
    {
        assert_eq!(machine.ask(&[&format!("{line}: {tag}"), range]).status, status, "{line}");
    }
}
