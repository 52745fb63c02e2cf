//! Cached files: the same responses as for others, each of one version, at most a second old, and without free
//! descriptors.

use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use shearwater_files::FolderOptions;
use testkit::{ClientResponse, TestClient};

use crate::site::{TestSite, wait_until};

/// Returns a response without its variable parts: the date and the boundary between parts.
fn stable(response: &ClientResponse) -> (u16, Vec<String>, Vec<u8>) {
    let boundary = response.field("Content-Type").and_then(|value| value.split_once("boundary="));
    let boundary = boundary.map_or("no boundary", |(_, boundary)| boundary);
    let fields = response.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("date"));
    let fields = fields.map(|(name, value)| format!("{name}: {value}").replace(boundary, "BOUNDARY"));
    let mut body = response.body.clone();
    while let Some(at) = body.windows(boundary.len()).position(|window| window == boundary.as_bytes()) {
        body.splice(at..at + boundary.len(), *b"BOUNDARY");
    }
    (response.status, fields.collect(), body)
}

/// Requests until the response is as wanted. All responses before must be as they were.
fn until(site: &TestSite, target: &str, was: &[u8], wanted: impl Fn(u16, &[u8]) -> bool) {
    let mut client = site.connect();
    wait_until("the change", || {
        let response = client.get(target);
        let is_done = wanted(response.status, &response.body);
        let is_old = response.status == 200 && response.body == was;
        assert!(is_done || is_old, "{} with content that was never written", response.status);
        is_done
    });
}

#[test]
fn cached_responses_equal_uncached_ones() {
    let sites = [TestSite::new(), TestSite::cached()];
    let written = std::time::UNIX_EPOCH + Duration::new(1_000_000_000, 500);
    for site in &sites {
        site.file("a/index.html", "<p>index")
            .file("a.css", "p {}")
            .file("empty", "")
            .file("64k", vec![7; 65_536]);
        site.file("64k+1", vec![8; 65_537]).file("a.css.br", "\u{c}packed");
        for name in ["a/index.html", "a.css", "a.css.br", "empty", "64k", "64k+1"] {
            site.modified(name, written);
        }
    }
    let mut clients = sites.each_ref().map(TestSite::connect);
    let since = "If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT";
    let before = "If-Unmodified-Since: Sun, 09 Sep 2001 01:46:39 GMT";
    for target in ["/a/", "/a", "/a.css", "/empty", "/64k", "/64k+1", "/none", "/a.css/", "/a.css?q"] {
        for method in ["GET", "HEAD", "OPTIONS", "POST"] {
            for fields in [
                &[][..],
                &[since],
                &[before],
                &["If-None-Match: *"],
                &["If-Match: \"x\""],
                &["Accept-Encoding: br"],
                &["Range: bytes=1-2"],
                &["Range: bytes=3-3,0-1,-1"],
                &["Range: bytes=3-3,0-1,-1", "Accept-Encoding: br"],
                &["Range: bytes=70000-"],
            ] {
                // Three times: read, cached, cached.
                for _ in 0..3 {
                    let [plain, cached] =
                        clients.each_mut().map(|client| client.request(method, target, fields));
                    let ([mut plain, mut cached], what) =
                        ([&plain, &cached].map(stable), format!("{method} {target} {fields:?}"));
                    // Cached files have a tag of their content, others one of length and time.
                    for fields in [&mut plain.1, &mut cached.1] {
                        fields.retain(|field| !field.to_ascii_lowercase().starts_with("etag: "));
                    }
                    assert_eq!(plain, cached, "{what}");
                }
            }
        }
    }
}

#[test]
fn serves_a_changed_file_within_a_second() {
    let site = TestSite::cached();
    site.file("f", "one");
    until(&site, "/f", b"", |_, body| body == b"one");
    site.file("f", "two");
    until(&site, "/f", b"one", |_, body| body == b"two");
    let (before, mut client) = (site.get("/f"), site.connect());
    let etag = client.get("/f").field("etag").expect("a tag").to_owned();
    assert_eq!(client.request("GET", "/f", &[&format!("If-None-Match: {etag}")]).status, 304);
    site.replace("f", "six");
    until(&site, "/f", &before.1, |_, body| body == b"six");
    assert_eq!(client.request("GET", "/f", &[&format!("If-None-Match: {etag}")]).status, 200);
}

#[test]
fn notices_removed_files_and_their_replacements() {
    let site = TestSite::cached();
    site.file("f", "one");
    until(&site, "/f", b"", |_, body| body == b"one");
    fs::remove_file(site.at("f")).expect("removed");
    until(&site, "/f", b"one", |status, _| status == 404);
    fs::create_dir(site.at("f")).expect("a folder");
    assert_eq!(site.status("/f"), 301);
    fs::remove_dir(site.at("f")).expect("removed");
    site.link("f", site.outside("canary"));
    assert_eq!(site.status("/f"), 403);
    fs::remove_file(site.at("f")).expect("removed");
    site.file("f", "again");
    assert_eq!(site.get("/f").1, b"again");
}

#[test]
fn sends_a_file_that_outgrows_the_cache() {
    let site = TestSite::cached();
    site.file("f", "small");
    until(&site, "/f", b"", |_, body| body == b"small");
    site.file("f", vec![9; 1_000_000]);
    until(&site, "/f", b"small", |_, body| body.len() == 1_000_000 && body.iter().all(|&byte| byte == 9));
    site.file("f", "small again");
    assert_eq!(site.get("/f").1, b"small again", "a change of an uncached file shows at once");
}

/// Marks the child process that runs out of descriptors.
const CHILD: &str = "SHEARWATER_FILES_TEST_CHILD";

/// A time after which a file must be checked again.
const BEYOND_FRESH: Duration = Duration::from_millis(1000);

#[test]
fn serves_cached_files_without_free_descriptors() {
    in_own_process(serve_without_descriptors);
}

#[test]
fn list_without_a_free_descriptor_gets_503() {
    in_own_process(|| {
        let site = TestSite::with(&FolderOptions { listing: true, ..FolderOptions::default() });
        site.file("dir/f", "f");
        let mut client = site.connect();
        assert_eq!(client.get("/dir/").status, 200);
        let mut used = use_all();
        assert_eq!(client.get("/dir/").status, 503, "the folder can't be opened");
        used.pop();
        let response = client.get("/dir/");
        assert_eq!(response.status, 503, "the folder can be opened but not read");
        assert_eq!(response.field("Retry-After"), Some("1"));
        used.pop();
        assert_eq!(client.get("/dir/").status, 200);
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

fn serve_without_descriptors() {
    let site = TestSite::cached();
    site.file("index.html", "<p>index").file("a.css", "p {}").file("a.css.br", "\u{c}packed");
    let mut client = site.connect();
    let asked = [
        ("/", &[][..], "<p>index"),
        ("/a.css", &[], "p {}"),
        ("/a.css", &["Accept-Encoding: br"], "\u{c}packed"),
    ];
    let all_are_sent = |client: &mut TestClient, when: &str| {
        for (target, fields, body) in asked {
            let response = client.request("GET", target, fields);
            assert_eq!(
                (response.status, &response.body[..]),
                (200, body.as_bytes()),
                "{target} {fields:?} {when}"
            );
        }
        client.get("/none").status
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
    wait_until("the other folder", || client.get("/").status != 200);
    std::fs::remove_dir(&served).expect("removed");
    std::fs::rename(&away, &served).expect("moved back");
    wait_until("the folder", || client.get("/").status == 200);
    assert_eq!(all_are_sent(&mut client, "behind"), 404);
    std::fs::remove_file(site.at("a.css")).expect("removed");
    wait_until("the removal", || client.get("/a.css").status != 200);
}
