//! Ranges of files: the same response from memory and disk, and their preconditions (RFC 9110 sections 13.1.5 and 14).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater::DriverChoice;
use shearwater_files::CacheLimits;
use shearwater_files::limits::RANGES_MAX;

use crate::client::{Client, ClientResponse};
use crate::site::Site;

/// Lengths of a cached and of an uncached file.
const SMALL: usize = 1_000;
const LARGE: usize = 1_500_000;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8 ^ (index / 65_536) as u8).collect()
}

/// Returns Sun, 06 Nov 1994 08:49:37.5 GMT.
fn modified() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(784_111_777_500)
}

fn filled(site: Site) -> Site {
    for (name, len) in [("small.txt", SMALL), ("large.bin", LARGE), ("empty.txt", 0)] {
        site.file(name, bytes(len)).modified(name, modified());
    }
    site
}

/// Ranges as `first-last` with their bytes.
type Parts = Vec<(String, Vec<u8>)>;

/// Parses a response's parts and checks their form (RFC 2046 section 5.1).
fn parts(response: &ClientResponse) -> Parts {
    let content_type = response.field("Content-Type").expect("a type");
    let Some(boundary) = content_type.strip_prefix("multipart/byteranges; boundary=") else {
        let range = response.field("Content-Range").expect("a range").strip_prefix("bytes ").expect("bytes");
        return vec![(range.to_owned(), response.body.clone())];
    };
    assert_eq!(response.field("Content-Range"), None, "each part has its own");
    let (mut rest, mut parts) = (&response.body[..], Vec::new());
    let end = format!("--{boundary}--\r\n");
    while rest != end.as_bytes() {
        let head_len = rest.windows(4).position(|window| window == b"\r\n\r\n").expect("a part's head") + 4;
        let head = std::str::from_utf8(&rest[..head_len]).expect("text");
        let fields = head.strip_prefix(&format!("--{boundary}\r\nContent-Type: ")).expect("a delimiter");
        let (_, range) = fields.split_once("\r\nContent-Range: bytes ").expect("a range");
        let range = range.trim_end();
        let (first, last) = range.split_once('/').expect("a length").0.split_once('-').expect("two numbers");
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let body = &rest[head_len..][..number(last) + 1 - number(first)];
        parts.push((range.to_owned(), body.to_vec()));
        rest = rest[head_len + body.len()..].strip_prefix(b"\r\n").expect("a line end after a part");
    }
    parts
}

fn ranged(client: &mut Client, target: &str, range: &str) -> ClientResponse {
    client.request("GET", target, &[&format!("Range: {range}")])
}

/// Requested ranges and the expected parts of a file of a hundred bytes.
const FORMS: &[(&str, &[&str])] = &[
    ("bytes=0-0", &["0-0/LEN"]),
    ("bytes=10-19", &["10-19/LEN"]),
    ("bytes=990-", &["990-999/LEN"]),
    ("bytes=0-9, 20-29", &["0-9/LEN", "20-29/LEN"]),
    ("bytes=20-29,0-9,40-49", &["20-29/LEN", "0-9/LEN", "40-49/LEN"]),
    ("bytes=0-9,5-14", &["0-14/LEN"]),
    ("bytes=0-9,99999999-,20-20", &["0-9/LEN", "20-20/LEN"]),
    ("bytes=300-301,0-0,500-999", &["300-301/LEN", "0-0/LEN", "500-999/LEN"]),
];

#[test]
fn each_form_is_responded_wherever_the_file_is() {
    for site in [filled(Site::new()), filled(Site::cached())] {
        for (target, len) in [("/small.txt", SMALL), ("/large.bin", LARGE)] {
            let (content, mut client) = (bytes(len), site.connect());
            for (asked, wanted) in FORMS {
                let asked = asked.replace("990-", "990-999");
                // Twice: the first response may have cached the file.
                for _ in 0..2 {
                    let response = ranged(&mut client, target, &asked);
                    assert_eq!(response.status, 206, "{target} {asked}");
                    assert_eq!(response.field("Accept-Ranges"), Some("bytes"));
                    assert!(response.field("ETag").is_some() && response.field("Last-Modified").is_some());
                    let got = parts(&response);
                    let ranges: Vec<_> = got.iter().map(|(range, _)| range.clone()).collect();
                    let wanted: Vec<_> =
                        wanted.iter().map(|range| range.replace("LEN", &len.to_string())).collect();
                    assert_eq!(ranges, wanted, "{target} {asked}");
                    for (range, body) in got {
                        let (first, last) =
                            range.split_once('/').expect("a length").0.split_once('-').expect("two");
                        let (first, last) =
                            (first.parse::<usize>().expect("one"), last.parse::<usize>().expect("one"));
                        assert!(
                            body == content[first..=last],
                            "{target} {asked}: the bytes of {range} differ"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn suffixes_and_open_ends_reach_the_end() {
    let site = filled(Site::new());
    let mut client = site.connect();
    for (target, len) in [("/small.txt", SMALL), ("/large.bin", LARGE)] {
        let content = bytes(len);
        for (asked, first) in
            [("-1", len - 1), ("-900", len - 900), ("999-", 999), ("0-", 0), ("-99999999", 0)]
        {
            let response = ranged(&mut client, target, &format!("bytes={asked}"));
            assert_eq!(response.status, 206, "{target} {asked}");
            let range = format!("bytes {first}-{}/{len}", len - 1);
            assert_eq!(response.field("Content-Range"), Some(range.as_str()), "{asked}");
            assert!(response.body == content[first..], "{target} {asked}");
        }
    }
}

#[test]
fn the_type_of_the_file_is_that_of_its_parts() {
    let site = filled(Site::new());
    let mut client = site.connect();
    let single = ranged(&mut client, "/small.txt", "bytes=0-1");
    assert_eq!(single.field("Content-Type"), Some("text/plain; charset=utf-8"));
    let response = ranged(&mut client, "/small.txt", "bytes=0-1,4-5");
    let text = String::from_utf8_lossy(&response.body);
    assert_eq!(text.matches("\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: ").count(), 2);
}

#[test]
fn each_response_in_parts_has_a_boundary_of_its_own() {
    let site = filled(Site::cached());
    let mut client = site.connect();
    let types: Vec<_> = (0..10)
        .map(|_| {
            ranged(&mut client, "/small.txt", "bytes=0-1,4-5")
                .field("Content-Type")
                .expect("a type")
                .to_owned()
        })
        .collect();
    let distinct: std::collections::HashSet<_> = types.iter().collect();
    assert_eq!(distinct.len(), 10, "{types:?}");
}

#[test]
fn what_can_not_be_had_is_told_with_the_length() {
    let site = filled(Site::new());
    let mut client = site.connect();
    for (target, len) in [("/small.txt", SMALL), ("/large.bin", LARGE)] {
        for range in [format!("bytes={len}-"), "bytes=-0".to_owned(), format!("bytes={len}-{len},9999999-")] {
            let response = ranged(&mut client, target, &range);
            assert_eq!(response.status, 416, "{target} {range}");
            let told = format!("bytes */{len}");
            assert_eq!(response.field("Content-Range"), Some(told.as_str()));
            assert!(response.field("ETag").is_some());
        }
    }
    let asked = &["Range: bytes=5-"];
    let response = client.request("GET", "/empty.txt", asked);
    assert_eq!((response.status, response.field("Content-Range"), response.text()), (200, None, ""));
}

#[test]
fn what_is_no_range_of_a_file_is_ignored() {
    let site = filled(Site::new());
    site.file("dir/index.html", "index");
    let mut client = site.connect();
    for range in ["lines=0-1", "bytes=", "bytes=2-1", "bytes=0-1,x", "bytes=0 -1", "0-1", ""] {
        let response = ranged(&mut client, "/small.txt", range);
        assert_eq!((response.status, response.field("Content-Range")), (200, None), "{range}");
        assert_eq!(response.field("Accept-Ranges"), Some("bytes"));
        assert!(response.body == bytes(SMALL));
    }
    let two = client.request("GET", "/small.txt", &["Range: bytes=0-1", "Range: bytes=4-5"]);
    assert_eq!(two.status, 200, "a repeated field");
    // Only responses with a file have parts, and only for GET.
    for (method, target, status) in [
        ("GET", "/none", 404),
        ("GET", "/dir", 301),
        ("OPTIONS", "/small.txt", 204),
        ("POST", "/small.txt", 405),
    ] {
        let response = client.request(method, target, &["Range: bytes=0-1"]);
        assert_eq!((response.status, response.field("Content-Range")), (status, None), "{method} {target}");
    }
    for range in ["bytes=0-1", "bytes=0-1,4-5", "bytes=5000-"] {
        let response = client.request("HEAD", "/small.txt", &[&format!("Range: {range}")]);
        assert_eq!((response.status, response.field("Content-Length")), (200, Some("1000")), "{range}");
    }
    assert_eq!(ranged(&mut client, "/dir/", "bytes=1-2").text(), "nd");
}

#[test]
fn so_many_ranges_are_responded() {
    let site = filled(Site::new());
    let mut client = site.connect();
    let ranges = |count: usize| {
        let texts: Vec<_> = (0..count).map(|number| format!("{0}-{0}", number * 2)).collect();
        format!("bytes={}", texts.join(","))
    };
    for target in ["/small.txt", "/large.bin"] {
        let response = ranged(&mut client, target, &ranges(RANGES_MAX));
        assert_eq!((response.status, parts(&response).len()), (206, RANGES_MAX));
        assert!(response.body.len() < RANGES_MAX * 200, "more than the limit: {}", response.body.len());
        assert_eq!(ranged(&mut client, target, &ranges(RANGES_MAX + 1)).status, 200);
        // As many as fit in a head, all of the whole file: merged, or skipped.
        let greedy = format!("bytes={}", "0-,".repeat(RANGES_MAX));
        let response = ranged(&mut client, target, &greedy);
        assert_eq!((response.status, parts(&response).len()), (206, 1));
    }
}

/// Parts that exceed a turn's budget, to a slow client.
#[test]
fn every_driver_sends_large_parts() {
    let len = 20 * LARGE;
    let content = bytes(len);
    let mut driven = 0;
    for driver in [DriverChoice::Epoll, DriverChoice::Uring, DriverChoice::Kqueue] {
        let Some(site) = Site::driven(driver, "served", CacheLimits::default()) else { continue };
        driven += 1;
        site.file("large.bin", &content);
        let mut client = site.connect();
        let asked = format!("bytes=10000000-19999999,5-9,{}-,2000000-9000000", len - 5_000_000);
        client.ask("GET", "/large.bin", &[&format!("Range: {asked}")]).ask(
            "GET",
            "/large.bin",
            &["Range: bytes=7-7"],
        );
        let got = parts(&client.response("GET"));
        let wanted = [10_000_000..20_000_000, 5..10, len - 5_000_000..len, 2_000_000..9_000_001];
        assert_eq!(got.len(), wanted.len());
        assert!(got.iter().zip(wanted).all(|((_, body), wanted)| *body == content[wanted]), "{driver:?}");
        assert_eq!(client.response("GET").body, content[7..8]);
    }
    assert!(driven > 0);
}

#[test]
fn other_requests_of_the_same_turn_get_their_own() {
    let site = filled(Site::new());
    let mut client = site.connect();
    let request = |range: &str| format!("GET /large.bin HTTP/1.1\r\nHost: a\r\n{range}\r\n");
    let (one, two) = ("Range: bytes=5-6\r\n", "Range: bytes=1000000-1200000,3-3\r\n");
    client.send([request(one), request(two), request("Range: bytes=-1\r\n"), request(one)].concat());
    let content = bytes(LARGE);
    assert!(client.response("GET").body == content[5..7]);
    let response = parts(&client.response("GET"));
    assert!(response[0].1 == content[1_000_000..=1_200_000] && response[1].1 == content[3..4]);
    assert!(client.response("GET").body == content[LARGE - 1..]);
    assert!(client.response("GET").body == content[5..7]);
    // After the whole file, which then stays open.
    client.send([request(""), request(two)].concat());
    assert!(client.response("GET").body == content);
    assert_eq!(parts(&client.response("GET")).len(), 2);
}

#[test]
fn conditions_come_first() {
    let site = filled(Site::new());
    let mut client = site.connect();
    let tag = client.request("GET", "/small.txt", &[]).field("ETag").expect("a tag").to_owned();
    for (condition, range, status) in [
        ("If-None-Match: TAG", "bytes=0-1", 304),
        ("If-None-Match: TAG", "bytes=5000-", 304),
        ("If-None-Match: \"a\"", "bytes=0-1", 206),
        ("If-Match: \"a\"", "bytes=0-1", 412),
        ("If-Match: TAG", "bytes=0-1", 206),
        ("If-Match: TAG", "bytes=5000-", 416),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "bytes=0-1", 304),
        ("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT", "bytes=0-1", 412),
        ("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "bytes=0-1", 206),
        // If-Range is evaluated last.
        ("If-Range: TAG\r\nIf-None-Match: TAG", "bytes=0-1", 304),
        ("If-Range: \"a\"\r\nIf-Match: \"a\"", "bytes=0-1", 412),
        ("If-Range: \"a\"\r\nIf-Match: TAG", "bytes=0-1", 200),
    ] {
        let lines = [condition.replace("TAG", &tag), format!("Range: {range}")];
        let response = client.request("GET", "/small.txt", &lines.each_ref().map(String::as_str));
        assert_eq!(response.status, status, "{condition} {range}");
    }
}

#[test]
fn if_range_asks_for_this_very_version() {
    let site = filled(Site::new());
    let mut client = site.connect();
    let tag = client.request("GET", "/small.txt", &[]).field("ETag").expect("a tag").to_owned();
    for (condition, status) in [
        ("TAG", 206),
        ("W/TAG", 200),
        ("\"a\"", 200),
        ("TAG, \"a\"", 200),
        ("*", 200),
        ("", 200),
        ("yesterday", 200),
        // A time that was set proves nothing: builds give it to every version.
        ("Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 200),
    ] {
        for range in ["bytes=0-1", "bytes=0-1,4-5"] {
            let lines = [format!("If-Range: {}", condition.replace("TAG", &tag)), format!("Range: {range}")];
            let response = client.request("GET", "/small.txt", &lines.each_ref().map(String::as_str));
            assert_eq!(response.status, status, "{condition}");
        }
    }
    let twice = [format!("If-Range: {tag}"), format!("If-Range: {tag}"), "Range: bytes=0-1".to_owned()];
    assert_eq!(client.request("GET", "/small.txt", &twice.each_ref().map(String::as_str)).status, 200);
    let without_range = client.request("GET", "/small.txt", &["If-Range: \"a\""]);
    assert_eq!(without_range.status, 200);
    site.file("small.txt", "changed").modified("small.txt", modified());
    let line = format!("If-Range: {tag}");
    let response = client.request("GET", "/small.txt", &["Range: bytes=0-1", &line]);
    assert_eq!((response.status, response.text()), (200, "changed"));
}
