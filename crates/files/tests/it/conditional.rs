//! Validators and conditional requests (RFC 9110 sections 8.8 and 13).

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::{ClientResponse, TestClient};

use crate::site::{TestSite, wait_until};

/// Returns Sun, 06 Nov 1994 08:49:37.5 GMT.
fn modified() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(784_111_777_500)
}

fn site() -> (TestSite, TestClient) {
    let site = TestSite::new();
    site.file("f.txt", "content").modified("f.txt", modified());
    let client = site.connect();
    (site, client)
}

fn etag(response: &ClientResponse) -> String {
    response.field("ETag").expect("an ETag").to_owned()
}

#[test]
fn etag_is_strong_and_changes_with_the_file() {
    let (site, mut client) = site();
    let first = etag(&client.get("/f.txt"));
    assert!(first.len() > 2 && first.starts_with('"') && first.ends_with('"'), "{first}");
    assert!(!first[1..first.len() - 1].contains('"'), "{first}");
    assert_eq!(etag(&client.get("/f.txt")), first);
    let mut seen = vec![first];
    // Another time, another length, both; a nanosecond is enough.
    for (content, time) in [
        ("content", modified() + Duration::from_nanos(1)),
        ("CONTENT", modified() + Duration::from_secs(1)),
        ("content, longer", modified()),
        ("", modified()),
    ] {
        site.file("f.txt", content).modified("f.txt", time);
        let next = etag(&client.get("/f.txt"));
        assert!(!seen.contains(&next), "{next} is the tag of another version");
        seen.push(next);
    }
}

/// Reproducible builds give every file the same time. Only the tags of cached files differ then.
#[test]
fn cached_file_of_the_same_time_and_length_is_another_version() {
    let site = TestSite::cached();
    site.file("f.txt", "content").modified("f.txt", modified());
    let mut client = site.connect();
    let first = etag(&client.get("/f.txt"));
    site.file("new", "CONTENT").modified("new", modified());
    fs::rename(site.at("new"), site.at("f.txt")).expect("replaced");
    let known = format!("If-None-Match: {first}");
    let mut ask = || client.request("GET", "/f.txt", &[&known]);
    wait_until("the change", || ask().status != 304);
    let response = ask();
    assert_eq!((response.status, response.text()), (200, "CONTENT"));
    assert_ne!(etag(&response), first);
}

#[test]
fn last_modified_is_never_in_the_future() {
    let (site, mut client) = site();
    let response = client.get("/f.txt");
    assert_eq!(response.field("Last-Modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    site.modified("f.txt", SystemTime::now() + Duration::from_secs(1_000_000));
    let response = client.get("/f.txt");
    assert_eq!(response.field("Last-Modified"), response.field("Date"));
    site.modified("f.txt", UNIX_EPOCH - Duration::from_secs(1_000));
    let response = client.get("/f.txt");
    assert_eq!(response.field("Last-Modified"), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
}

#[test]
fn not_modified_has_validators_and_no_body() {
    let (_site, mut client) = site();
    let full = client.get("/f.txt");
    for method in ["GET", "HEAD"] {
        let response = client.request(method, "/f.txt", &[&format!("If-None-Match: {}", etag(&full))]);
        assert_eq!(response.status, 304);
        let names: Vec<_> = response.fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        assert_eq!(names, ["server", "date", "etag", "last-modified"]);
        assert_eq!(response.field("ETag"), full.field("ETag"));
        assert_eq!(response.field("Last-Modified"), full.field("Last-Modified"));
    }
    assert_eq!(client.get("/f.txt").text(), "content");
}

/// Headers and the expected status. `TAG` is the file's entity tag.
const TABLE: &[(&[&str], u16)] = &[
    // The client has the file, or not.
    (&["If-None-Match: TAG"], 304),
    (&["If-None-Match: W/TAG"], 304),
    (&["If-None-Match: *"], 304),
    (&["If-None-Match: \"a\", TAG, \"b\""], 304),
    (&["If-None-Match: \"a\",W/TAG"], 304),
    (&["If-None-Match: \"a\"", "If-None-Match: TAG"], 304),
    (&["If-None-Match: \"a\""], 200),
    (&["If-None-Match: W/\"a\""], 200),
    (&["If-None-Match: "], 200),
    (&["If-None-Match: none"], 200),
    (&["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"], 304),
    (&["If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"], 304),
    (&["If-Modified-Since: Sun Nov  6 08:49:37 1994"], 304),
    (&["If-Modified-Since: Sun, 06 Nov 1994 08:49:38 GMT"], 304),
    (&["If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"], 304),
    (&["If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT"], 200),
    (&["If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"], 200),
    (&["If-Modified-Since: yesterday"], 200),
    (&["If-Modified-Since: "], 200),
    (&["If-Modified-Since: 784111777"], 200),
    // The entity tag takes precedence over the date.
    (&["If-None-Match: \"a\"", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"], 200),
    (&["If-None-Match: TAG", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"], 304),
    // The client requires this version.
    (&["If-Match: TAG"], 200),
    (&["If-Match: *"], 200),
    (&["If-Match: \"a\", TAG"], 200),
    (&["If-Match: \"a\"", "If-Match: TAG"], 200),
    (&["If-Match: \"a\""], 412),
    (&["If-Match: W/TAG"], 412),
    (&["If-Match: "], 412),
    (&["If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT"], 200),
    (&["If-Unmodified-Since: Fri, 01 Jan 2100 00:00:00 GMT"], 200),
    (&["If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT"], 412),
    (&["If-Unmodified-Since: yesterday"], 200),
    (&["If-Match: TAG", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT"], 200),
];

#[test]
fn evaluates_each_precondition() {
    let (_site, mut client) = site();
    let tag = etag(&client.get("/f.txt"));
    for (fields, status) in TABLE {
        let lines: Vec<_> = fields.iter().map(|field| field.replace("TAG", &tag)).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        for method in ["GET", "HEAD"] {
            let response = client.request(method, "/f.txt", &lines);
            assert_eq!(response.status, *status, "{method} {fields:?}");
            assert_eq!(etag(&response), tag, "{method} {fields:?}");
        }
    }
}

/// Headers, and the status for `GET` and for `HEAD`, of a file of ten bytes.
///
/// `TAG` and `NOW` are its validators. Each step of RFC 9110 section 13.2.2 takes precedence over those below it.
const ORDER: &[(&[&str], u16, u16)] = &[
    // 1. If-Match, whatever follows it.
    (&["If-Match: \"x\"", "If-None-Match: TAG", "Range: bytes=2-3", "If-Range: TAG"], 412, 412),
    (&["If-Match: \"x\"", "If-None-Match: *"], 412, 412),
    (&["If-Match: \"x\"", "If-Unmodified-Since: NOW"], 412, 412),
    (&["If-Match: \"x\"", "If-Modified-Since: NOW"], 412, 412),
    (&["If-Match: W/TAG, \"x\"", "Range: bytes=2-3"], 412, 412),
    (&["If-Match: W/TAG, TAG", "Range: bytes=2-3"], 206, 200),
    (&["If-Match: \"x\", *", "Range: bytes=2-3"], 412, 412),
    (&["If-Match: \"x\"", "If-Match: *", "Range: bytes=2-3"], 206, 200),
    // 2. If-Unmodified-Since, without If-Match.
    (&["If-Unmodified-Since: BEFORE", "If-None-Match: TAG", "Range: bytes=2-3"], 412, 412),
    (&["If-Unmodified-Since: BEFORE", "If-Modified-Since: NOW"], 412, 412),
    (&["If-Unmodified-Since: BEFORE", "If-Match: TAG", "Range: bytes=2-3"], 206, 200),
    (&["If-Unmodified-Since: NOW", "Range: bytes=2-3"], 206, 200),
    (&["If-Unmodified-Since: no date", "Range: bytes=2-3"], 206, 200),
    // 3. If-None-Match.
    (&["If-Match: *", "If-None-Match: W/TAG", "Range: bytes=2-3"], 304, 304),
    (&["If-Unmodified-Since: NOW", "If-None-Match: *", "Range: bytes=99-"], 304, 304),
    (&["If-None-Match: TAG", "If-Range: \"x\"", "Range: bytes=2-3"], 304, 304),
    (&["If-None-Match: \"x\"", "If-None-Match: \"y\", W/TAG"], 304, 304),
    // 4. If-Modified-Since, without If-None-Match.
    (&["If-None-Match: \"x\"", "If-Modified-Since: NOW", "Range: bytes=2-3"], 206, 200),
    (&["If-Modified-Since: NOW", "Range: bytes=2-3"], 304, 304),
    (&["If-Modified-Since: BEFORE", "Range: bytes=2-3"], 206, 200),
    (&["If-Modified-Since: no date", "Range: bytes=2-3"], 206, 200),
    (&["If-Match: TAG", "If-Modified-Since: NOW"], 304, 304),
    // 5. Range, with If-Range.
    (&["If-Match: TAG", "If-None-Match: \"x\"", "If-Range: TAG", "Range: bytes=2-3"], 206, 200),
    (&["If-Match: TAG", "If-Range: \"x\"", "Range: bytes=2-3"], 200, 200),
    (&["If-None-Match: \"x\"", "If-Range: W/TAG", "Range: bytes=2-3"], 200, 200),
    (&["If-Modified-Since: BEFORE", "If-Range: BEFORE", "Range: bytes=2-3"], 200, 200),
    (&["If-Match: TAG", "Range: bytes=99-"], 416, 200),
    (&["If-Match: TAG", "If-Range: TAG", "Range: bytes=99-"], 416, 200),
    (&["If-Match: TAG", "If-Range: \"x\"", "Range: bytes=99-"], 200, 200),
    (&["If-Range: TAG"], 200, 200),
];

/// For a file and its sibling, which have different validators, cached and from the disk.
#[test]
fn evaluates_preconditions_in_order_for_each_coding() {
    for site in [TestSite::new(), TestSite::cached()] {
        for name in ["f.txt", "f.txt.gz"] {
            let coding = name.split('.').nth(2).unwrap_or_default();
            site.file(name, testkit::coded(coding, "0123456789", 10)).modified(name, modified());
        }
        let mut client = site.connect();
        for accepted in ["Accept-Encoding: gzip", "Accept-Encoding: identity"] {
            let other =
                if accepted.ends_with("gzip") { "Accept-Encoding: br" } else { "Accept-Encoding: gzip" };
            let [tag, other] =
                [accepted, other].map(|field| etag(&client.request("GET", "/f.txt", &[field])));
            for (fields, get, head) in ORDER {
                for (method, status) in [("GET", get), ("HEAD", head)] {
                    let mut lines = vec![accepted.to_owned()];
                    lines.extend(fields.iter().map(|field| {
                        let field = field.replace("TAG", &tag).replace("\"x\"", &other);
                        let field = field.replace("NOW", "Sun, 06 Nov 1994 08:49:37 GMT");
                        field.replace("BEFORE", "Sun, 06 Nov 1994 08:49:36 GMT")
                    }));
                    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
                    let response = client.request(method, "/f.txt", &lines);
                    assert_eq!(response.status, *status, "{method} {lines:?}");
                    assert_eq!(etag(&response), tag, "{method} {lines:?}");
                    if method == "GET" && *status == 206 {
                        let parts = [&b"23"[..], &[8, b'0']];
                        assert!(parts.contains(&&response.body[..]), "{:?}", response.body);
                    }
                }
            }
        }
    }
}

#[test]
fn ignores_preconditions_without_a_file() {
    let (site, mut client) = site();
    site.file("dir/index.html", "index");
    for (target, status) in [("/none", 404), ("/dir", 301)] {
        for field in
            ["If-None-Match: *", "If-Match: \"a\"", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"]
        {
            assert_eq!(client.request("GET", target, &[field]).status, status, "{target} {field}");
        }
    }
    assert_eq!(client.request("GET", "/dir/", &["If-None-Match: *"]).status, 304);
}
