//! Cached files: the same responses as for others, each of one version, at most a second old.

use std::fs;
use std::time::{Duration, Instant};

use crate::client::ClientResponse;
use crate::site::Site;

/// Time limit of a wait for a change, which must show within a second.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Returns a response without its variable parts: the date and the boundary between parts.
fn stable(response: &ClientResponse) -> (u16, Vec<String>, Vec<u8>) {
    let boundary = response.field("Content-Type").and_then(|value| value.split_once("boundary="));
    let boundary = boundary.map_or("no boundary", |(_, boundary)| boundary);
    let fields = response.fields.iter().filter(|(name, _)| name != "Date");
    let fields = fields.map(|(name, value)| format!("{name}: {value}").replace(boundary, "BOUNDARY"));
    let mut body = response.body.clone();
    while let Some(at) = body.windows(boundary.len()).position(|window| window == boundary.as_bytes()) {
        body.splice(at..at + boundary.len(), *b"BOUNDARY");
    }
    (response.status, fields.collect(), body)
}

/// Requests until the response is as wanted. All responses before must be as they were.
fn until(site: &Site, target: &str, was: &[u8], wanted: impl Fn(u16, &[u8]) -> bool) {
    let start = Instant::now();
    let mut client = site.connect();
    loop {
        let response = client.request("GET", target, &[]);
        if wanted(response.status, &response.body) {
            return;
        }
        assert!(
            response.status == 200 && response.body == was,
            "{} with content that was never written",
            response.status
        );
        assert!(start.elapsed() < WAIT_MAX, "the change does not show");
    }
}

#[test]
fn responses_are_those_of_the_file_byte_for_byte() {
    let sites = [Site::new(), Site::cached()];
    let written = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for site in &sites {
        site.file("a/index.html", "<p>index")
            .file("a.css", "p {}")
            .file("empty", "")
            .file("64k", vec![7; 65_536]);
        site.file("64k+1", vec![8; 65_537]).file("a.css.gz", "packed");
        for name in ["a/index.html", "a.css", "a.css.gz", "empty", "64k", "64k+1"] {
            site.modified(name, written);
        }
    }
    let mut clients = sites.each_ref().map(Site::connect);
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
                &["Accept-Encoding: gzip"],
                &["Range: bytes=1-2"],
                &["Range: bytes=3-3,0-1,-1"],
                &["Range: bytes=3-3,0-1,-1", "Accept-Encoding: gzip"],
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
                        fields.retain(|field| !field.starts_with("ETag: "));
                    }
                    assert_eq!(plain, cached, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_changed_file_shows() {
    let site = Site::cached();
    site.file("f", "one");
    until(&site, "/f", b"", |_, body| body == b"one");
    site.file("f", "two");
    until(&site, "/f", b"one", |_, body| body == b"two");
    let (before, mut client) = (site.get("/f"), site.connect());
    let etag = client.request("GET", "/f", &[]).field("etag").expect("a tag").to_owned();
    assert_eq!(client.request("GET", "/f", &[&format!("If-None-Match: {etag}")]).status, 304);
    site.file("new", "six");
    fs::rename(site.at("new"), site.at("f")).expect("renamed");
    until(&site, "/f", &before.1, |_, body| body == b"six");
    assert_eq!(client.request("GET", "/f", &[&format!("If-None-Match: {etag}")]).status, 200);
}

#[test]
fn a_removed_file_is_gone_and_one_in_its_place_is_seen() {
    let site = Site::cached();
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
fn a_file_that_outgrows_the_cache_is_sent_all_the_same() {
    let site = Site::cached();
    site.file("f", "small");
    until(&site, "/f", b"", |_, body| body == b"small");
    site.file("f", vec![9; 1_000_000]);
    until(&site, "/f", b"small", |_, body| body.len() == 1_000_000 && body.iter().all(|&byte| byte == 9));
    site.file("f", "small again");
    assert_eq!(site.get("/f").1, b"small again", "a change of an uncached file shows at once");
}
