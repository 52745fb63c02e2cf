//! Files that change while they are sent: a response is whole and of one version, or the connection ends short of it.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use shearwater::DriverChoice;
use shearwater_files::CacheLimits;
use testkit::versions::{Body, VersionedFile, read, while_changing};

use crate::site::TestSite;

/// More bytes than the socket buffers of both sides hold.
const LARGE: usize = 24_000_000;

/// A change of the file `f` after the head of its response.
type FileChange = fn(&TestSite);

fn open(site: &TestSite) -> File {
    File::options().write(true).open(site.at("f")).expect("a file")
}

fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

/// Returns true if the server can distinguish a date that is set from a write.
fn distinguishes_writes() -> bool {
    Path::new("/proc/self/fdinfo").is_dir()
}

/// Creates a site for each available driver, with a large file that was modified long ago.
fn sites() -> impl Iterator<Item = TestSite> {
    [DriverChoice::Epoll, DriverChoice::Uring].into_iter().filter_map(|driver| {
        let site = TestSite::driven(driver, CacheLimits::default())?;
        site.file("f", vec![b'a'; LARGE]).modified("f", long_ago());
        Some(site)
    })
}

/// Requests the file, changes it after the head, and reads the body. Returns its `Content-Length` too.
fn body_beside(site: &TestSite, fields: &[&str], change: FileChange) -> (Vec<u8>, usize) {
    let mut client = site.connect();
    let head = client.ask("GET", "/f", fields).head();
    assert!(matches!(head.status, 200 | 206), "{}", head.status);
    change(site);
    let expected = head.content_length().expect("a length");
    let (body, is_cut) = client.body_or_cut();
    assert_eq!(is_cut, body.len() < expected);
    // Nothing follows a whole response: the connection stays open.
    client.end_sending().is_ended();
    (body, expected)
}

#[test]
fn sends_replaced_and_removed_files_whole() {
    let changes: [FileChange; 3] = [
        |site| {
            site.replace("f", vec![b'b'; LARGE]);
        },
        |site| fs::remove_file(site.at("f")).expect("removed"),
        |site| {
            fs::hard_link(site.at("f"), site.at("kept")).expect("a link");
            fs::remove_file(site.at("f")).expect("removed");
            fs::remove_file(site.at("kept")).expect("removed");
            site.file("f", "another");
        },
    ];
    for change in changes {
        for site in sites() {
            let (body, _) = body_beside(&site, &[], change);
            assert!(body == vec![b'a'; LARGE], "{} bytes", body.len());
        }
    }
}

#[test]
fn sends_files_whole_despite_growth_and_metadata_changes() {
    let changes: [(&str, FileChange); 7] = [
        ("appended to", |site| open(site).write_all_at(b"b", LARGE as u64).expect("written at its end")),
        ("chmod", |site| {
            fs::set_permissions(site.at("f"), Permissions::from_mode(0o600)).expect("our file");
        }),
        ("chown", |site| {
            let owner = fs::metadata(site.at("f")).expect("the file").uid();
            chown(site.at("f"), Some(owner), None).expect("our file");
        }),
        ("touch", |site| {
            let now = SystemTime::now();
            let times = FileTimes::new().set_accessed(now).set_modified(now);
            open(site).set_times(times).expect("our file");
        }),
        ("mv", |site| fs::rename(site.at("f"), site.outside("f")).expect("moved")),
        ("ln", |site| fs::hard_link(site.at("f"), site.at("link")).expect("a link")),
        ("all of it", |site| {
            fs::set_permissions(site.at("f"), Permissions::from_mode(0o640)).expect("our file");
            File::options()
                .append(true)
                .open(site.at("f"))
                .and_then(|mut f| f.write_all(b"more"))
                .expect("written");
            fs::rename(site.at("f"), site.at("f.1")).expect("moved");
            site.file("f", "the next one");
        }),
    ];
    for (what, change) in changes.into_iter().filter(|(what, _)| *what != "touch" || distinguishes_writes()) {
        for site in sites() {
            for fields in [&[][..], &["Range: bytes=1-"], &["Range: bytes=0-20000000,23000000-23000009"]] {
                for name in ["f", "link"] {
                    let _ = fs::remove_file(site.at(name));
                }
                File::create(site.at("f")).and_then(|file| file.set_len(LARGE as u64)).expect("a hole");
                let (body, expected) = body_beside(&site, fields, change);
                assert_eq!(body.len(), expected, "{what}, {fields:?}");
                // Parts have heads between them.
                let is_multipart = fields.iter().any(|field| field.contains(','));
                assert!(is_multipart || body == vec![0; expected], "{what}");
            }
        }
    }
}

#[test]
fn sends_a_growing_log_at_its_first_length() {
    const LINE: &[u8] = b"a line of the log\n";
    for len in [1_000, 100_000, 1_000_000, 4_000_000] {
        for site in sites() {
            site.file("f", LINE.repeat(len / LINE.len()));
            let mut log = File::options().append(true).open(site.at("f")).expect("the file");
            let write = || {
                log.write_all(LINE).expect("written");
                std::thread::yield_now();
            };
            while_changing(write, || {
                for _ in 0..6 {
                    let present = fs::metadata(site.at("f")).expect("the file").len();
                    let (body, expected) = body_beside(&site, &[], |_| {});
                    assert_eq!(body.len(), expected, "of {len} and more");
                    // The length may include a line that is being written.
                    let lines = LINE.repeat(expected.div_ceil(LINE.len()));
                    assert!(lines.starts_with(&body), "{} bytes", body.len());
                    // A cached file may be half a second old.
                    assert!(expected as u64 >= present || len < 64 * 1024, "{expected} of {present}");
                }
            });
        }
    }
}

#[test]
fn closes_short_when_a_file_is_rewritten_longer() {
    for site in sites() {
        let (body, expected) = body_beside(&site, &[], |site| {
            site.file("f", vec![b'b'; LARGE + 1]);
        });
        assert!(body.len() < expected, "{} bytes", body.len());
    }
}

#[test]
fn closes_short_when_a_file_is_rewritten_in_place() {
    let changes: [FileChange; 5] = [
        |site| open(site).set_len(LARGE as u64 - 1).expect("cut"),
        |site| open(site).write_all_at(b"b", 7).expect("written"),
        |site| open(site).write_all_at(b"b", LARGE as u64 - 1).expect("written"),
        |site| {
            fs::set_permissions(site.at("f"), Permissions::from_mode(0o600)).expect("our file");
            open(site).write_all_at(b"b", 7).expect("written");
        },
        |site| {
            open(site).write_all_at(b"b", 7).expect("written");
            // Restores the times.
            site.modified("f", long_ago());
        },
    ];
    for change in changes.into_iter().take(if distinguishes_writes() { 5 } else { 4 }) {
        for site in sites() {
            for fields in [&[][..], &["Range: bytes=1-"], &["Range: bytes=0-20000000,23000000-23000009"]] {
                site.file("f", vec![b'a'; LARGE]).modified("f", long_ago());
                let (body, expected) = body_beside(&site, fields, change);
                assert!(body.len() < expected, "{} bytes, {fields:?}", body.len());
                // Bytes read before the change are the old ones, and a shortened file isn't padded.
                assert!(!body.contains(&0), "{fields:?}");
            }
            // The next response has the present content.
            let (status, body) = site.get("/f");
            assert!(status == 200 && body == fs::read(site.at("f")).expect("the file"));
        }
    }
}

/// Brings a file to a version.
type VersionChange = fn(&VersionedFile, u32) -> io::Result<()>;

/// Ways to change a file, and whether responses may then end short.
const WAYS: [(&str, VersionChange, bool); 4] = [
    ("renamed over", VersionedFile::replace, false),
    ("rewritten", VersionedFile::rewrite, true),
    (
        "truncated",
        |file, version| {
            file.replace(version)?;
            file.truncate(file.len as u64 / 2)
        },
        true,
    ),
    (
        "deleted",
        |file, version| {
            file.remove()?;
            file.replace(version)
        },
        false,
    ),
];

/// Requests a file. The response is of one version, or ends short if that is permitted.
fn expect_one_version(site: &TestSite, name: &str, way: &str, may_be_short: bool) {
    let mut client = site.connect();
    let head = client.ask("GET", &format!("/{name}"), &["Connection: close"]).head();
    let body = client.rest();
    if head.status == 404 {
        return assert_eq!(way, "deleted");
    }
    assert_eq!(head.status, 200, "{way}");
    let expected = head.content_length().expect("a length");
    if body.len() < expected {
        return assert!(may_be_short, "{way}: {} of {expected} bytes", body.len());
    }
    match read(&body, 0, 0) {
        Body::Version(_) => {}
        Body::HalfWritten => assert_eq!(way, "rewritten", "no file is half written"),
        Body::Mixture(mixture) => panic!("{way}: a mixture of {expected} bytes: {mixture}"),
    }
}

#[test]
fn never_mixes_versions_of_a_changing_file() {
    for driver in [DriverChoice::Epoll, DriverChoice::Uring, DriverChoice::Kqueue] {
        let Some(site) = TestSite::driven(driver, CacheLimits::default()) else { continue };
        for (len, (way, change, may_be_short)) in
            [2_000, 60_000, 300_000].into_iter().flat_map(|len| WAYS.map(|way| (len, way)))
        {
            // Another file for each: the last one's state may be served for a second.
            let name = &format!("{}-{len}", way.replace(' ', "-"));
            let file = VersionedFile { path: site.at(name), len, form: 0 };
            file.replace(1).expect("a file");
            let mut versions = 2..;
            let change = || change(&file, versions.next().expect("endless")).expect("changed");
            while_changing(change, || {
                for _ in 0..100 {
                    expect_one_version(&site, name, way, may_be_short);
                }
            });
        }
    }
}
