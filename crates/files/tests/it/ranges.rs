//! Ranges of files: the same response from memory and disk, and their preconditions (RFC 9110 sections 13.1.5 and 14).
//! The selection is compared with a model that marks the requested bytes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater::DriverChoice;
use shearwater_files::CacheLimits;
use shearwater_files::limits::RANGES_MAX;
use shearwater_files::range::{ByteRange, Selection, select};
use testkit::random::{self, Rng};
use testkit::{ClientResponse, TestClient};

use crate::site::TestSite;

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

fn filled(site: TestSite) -> TestSite {
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
    // Some clients find the first delimiter only after a line end, as the others.
    let mut rest = response.body.strip_prefix(b"\r\n").expect("a line end before the first part");
    let mut parts = Vec::new();
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

fn ranged(client: &mut TestClient, target: &str, range: &str) -> ClientResponse {
    client.request("GET", target, &[&format!("Range: {range}")])
}

/// Requested ranges and the expected parts.
const FORMS: &[(&str, &[&str])] = &[
    ("bytes=0-0", &["0-0/LEN"]),
    ("bytes=10-19", &["10-19/LEN"]),
    ("bytes=990-", &["990-LAST/LEN"]),
    ("bytes=-900", &["FROM-LAST/LEN"]),
    ("bytes=-99999999", &["0-LAST/LEN"]),
    ("bytes=0-9, 20-29", &["0-9/LEN", "20-29/LEN"]),
    ("bytes=20-29,0-9,40-49", &["20-29/LEN", "0-9/LEN", "40-49/LEN"]),
    ("bytes=0-9,5-14", &["0-14/LEN"]),
    ("bytes=0-9,99999999-,20-20", &["0-9/LEN", "20-20/LEN"]),
    ("bytes=300-301,0-0,500-999", &["300-301/LEN", "0-0/LEN", "500-999/LEN"]),
];

#[test]
fn sends_ranges_from_memory_and_disk() {
    for site in [filled(TestSite::new()), filled(TestSite::cached())] {
        for (target, len) in [("/small.txt", SMALL), ("/large.bin", LARGE)] {
            let (content, mut client) = (bytes(len), site.connect());
            for (asked, wanted) in FORMS {
                // Twice: the first response may have cached the file.
                for _ in 0..2 {
                    let response = ranged(&mut client, target, asked);
                    assert_eq!(response.status, 206, "{target} {asked}");
                    assert_eq!(response.field("Accept-Ranges"), Some("bytes"));
                    assert!(response.field("ETag").is_some() && response.field("Last-Modified").is_some());
                    let got = parts(&response);
                    let ranges: Vec<_> = got.iter().map(|(range, _)| range.clone()).collect();
                    let numbers = [("LEN", len), ("LAST", len - 1), ("FROM", len - 900)];
                    let number = |range: &str| {
                        let replace = |text: String, (name, number): (&str, usize)| {
                            text.replace(name, &number.to_string())
                        };
                        numbers.into_iter().fold(range.to_owned(), replace)
                    };
                    let wanted: Vec<_> = wanted.iter().map(|range| number(range)).collect();
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
fn parts_have_the_media_type_of_the_file() {
    let site = filled(TestSite::new());
    let mut client = site.connect();
    let single = ranged(&mut client, "/small.txt", "bytes=0-1");
    assert_eq!(single.field("Content-Type"), Some("text/plain; charset=utf-8"));
    let response = ranged(&mut client, "/small.txt", "bytes=0-1,4-5");
    let text = String::from_utf8_lossy(&response.body);
    assert_eq!(text.matches("\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: ").count(), 2);
}

#[test]
fn unsatisfiable_ranges_get_416_with_the_length() {
    let site = filled(TestSite::new());
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
fn ignores_ranges_that_do_not_apply() {
    let site = filled(TestSite::new());
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
fn sends_at_most_64_ranges() {
    let site = filled(TestSite::new());
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
        let Some(site) = TestSite::driven(driver, CacheLimits::default()) else { continue };
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
fn pipelined_ranges_get_their_own_bytes() {
    let site = filled(TestSite::new());
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
fn if_range_requires_the_same_version() {
    let site = filled(TestSite::new());
    let mut client = site.connect();
    let tag = client.get("/small.txt").field("ETag").expect("a tag").to_owned();
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

/// Returns a valid range and the bytes that it requests of a file of `len`.
fn range(random: &mut Rng, len: u64) -> (String, Vec<u64>) {
    let first = random.u64(..len + 4);
    match random.u8(..3) {
        0 => (format!("-{first}"), (len.saturating_sub(first)..len).collect()),
        1 => (format!("{first}-"), (first..len).collect()),
        _ => {
            let last = first + random.u64(..8);
            (format!("{first}-{last}"), (first..len.min(last + 1)).collect())
        }
    }
}

fn assert_sound(spans: &[ByteRange], len: u64, shown: &str) {
    assert!((1..=RANGES_MAX).contains(&spans.len()), "{shown}");
    assert!(spans.iter().all(|span| span.first <= span.last && span.last < len), "{shown}");
    assert!(spans.iter().map(|span| u128::from(span.bytes())).sum::<u128>() <= u128::from(len), "{shown}");
    for (index, span) in spans.iter().enumerate() {
        let apart = |other: &ByteRange| span.last < other.first || other.last < span.first;
        assert!(spans[index + 1..].iter().all(apart), "{shown}");
    }
}

#[test]
fn selects_the_requested_bytes_in_their_order() {
    let mut random = random::part(0x5eed, 0);
    let mut seen = [0; 3];
    for _ in 0..200_000 {
        let len = random.u64(1..=40);
        let count = random.u8(1..=6);
        let ranges: Vec<_> = (0..count).map(|_| range(&mut random, len)).collect();
        let mut value = String::from("bytes=");
        for (text, _) in &ranges {
            value += text;
            value += [",", ", ", "\t,", ",,", " , ,"][random.usize(..5)];
        }
        let mut wanted = vec![false; len as usize];
        for &byte in ranges.iter().flat_map(|(_, bytes)| bytes) {
            wanted[byte as usize] = true;
        }
        match select(value.as_bytes(), len) {
            Selection::Whole => panic!("{value:?} is valid"),
            Selection::Unsatisfiable => {
                seen[0] += 1;
                assert!(!wanted.contains(&true), "{value:?} of {len}");
            }
            Selection::Ranges(spans) => {
                seen[1] += 1;
                assert_sound(&spans, len, &value);
                let is_in = |byte: u64| spans.iter().any(|span| (span.first..=span.last).contains(&byte));
                let got: Vec<_> = (0..len).map(is_in).collect();
                assert_eq!(got, wanted, "{value:?} of {len}");
                // Position of the first request for each span.
                let place = |span: &ByteRange| {
                    ranges.iter().position(|(_, bytes)| {
                        bytes.iter().any(|byte| (span.first..=span.last).contains(byte))
                    })
                };
                assert!(spans.is_sorted_by_key(place), "{value:?} of {len}");
                seen[2] += usize::from(spans.len() > 1);
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 1_000), "{seen:?}");
}

#[test]
fn selection_of_any_value_is_sound() {
    const ALPHABET: &[&str] =
        &["bytes=", "0", "1", "9", "18446744073709551615", "-", ",", " ", "x", "=", "\0"];
    let mut random = random::part(0x5eed, 1);
    let mut spans_seen = 0;
    for _ in 0..200_000 {
        let mut value = String::from(["bytes=", "Bytes=", ""][random.usize(..3)]);
        for _ in 0..random.u8(..12) {
            value += ALPHABET[random.usize(..ALPHABET.len())];
        }
        for len in [0, 1, 2, 100, u64::MAX] {
            if let Selection::Ranges(spans) = select(value.as_bytes(), len) {
                assert_sound(&spans, len, &value);
                spans_seen += 1;
            }
        }
    }
    assert!(spans_seen > 1_000, "{spans_seen}");
}
