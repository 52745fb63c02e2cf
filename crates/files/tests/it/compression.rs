//! Files compressed on the fly: what each request gets before and after, and which files are left as they are.

use std::fs;
use std::io::Read;

use shearwater_compress::decode;
use shearwater_files::{
    CacheLimits, CacheRule, Coding, FileMatch, FolderOptions, MediaTypeOptions, compression_figures,
};
use testkit::{ClientResponse, TestClient};

use crate::site::{TestSite, wait_until};

/// Lines of a file that is cached, of one that isn't, and of one whose result isn't either.
const LINES: [usize; 3] = [100, 5_000, 20_000];

fn options() -> FolderOptions {
    FolderOptions { compress: true, ..FolderOptions::default() }
}

/// Returns text of so many different lines.
fn text(lines: usize) -> String {
    (0..lines).map(|line| format!("line {line} {:x}\n", line * line * 7919 % 65_521)).collect()
}

/// Writes a file of each length.
fn write(site: &TestSite) {
    for lines in LINES {
        site.file(format!("{lines}.css"), text(lines));
    }
}

fn get(client: &mut TestClient, target: &str, fields: &[&str]) -> ClientResponse {
    client.request("GET", target, fields)
}

fn tag(response: &ClientResponse) -> String {
    response.field("ETag").expect("a tag").to_owned()
}

fn coding(response: &ClientResponse) -> Option<&str> {
    response.field("Content-Encoding")
}

/// Requests a file until it is compressed: a file that has just changed isn't for two seconds.
fn wait_for(client: &mut TestClient, target: &str, accepted: &str) -> ClientResponse {
    let accepted = format!("Accept-Encoding: {accepted}");
    wait_until("the compressed file", || coding(&get(client, target, &[&accepted])).is_some());
    get(client, target, &[&accepted])
}

fn decoded(response: &ClientResponse) -> Vec<u8> {
    let coding = Coding::ALL.into_iter().find(|known| Some(known.name()) == coding(response));
    let mut content = Vec::new();
    let mut from = decode(coding.expect("a coding"), &response.body[..]).expect("a decoder");
    from.read_to_end(&mut content).expect("valid");
    content
}

/// Removes what differs between responses of the same version.
fn fields(response: &ClientResponse) -> Vec<(String, String)> {
    response.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("date")).cloned().collect()
}

#[test]
fn sends_the_clients_coding_once_it_is_there() {
    for cache in [CacheLimits::default(), CacheLimits::none()] {
        let site = TestSite::of(&options(), cache, |files| files);
        write(&site);
        let mut client = site.connect();
        for lines in LINES {
            let (target, content) = (format!("/{lines}.css"), text(lines));
            let first = get(&mut client, &target, &["Accept-Encoding: br"]);
            assert_eq!((first.status, coding(&first), first.text()), (200, None, &content[..]));
            let mut tags = Vec::new();
            for coding in Coding::ALL {
                let response = wait_for(&mut client, &target, coding.name());
                assert_eq!(self::coding(&response), Some(coding.name()));
                assert!(decoded(&response) == content.as_bytes() && response.body.len() < content.len() / 2);
                assert!(tag(&response).ends_with(&format!("-{}\"", coding.name())), "strong: {response:?}");
                tags.push(tag(&response));
            }
            for (accepted, sent) in [
                ("br, zstd, gzip", Some("br")),
                ("gzip, zstd", Some("zstd")),
                ("gzip;q=0.5, br;q=0.4", Some("gzip")),
                ("*", Some("br")),
                ("br;q=0", None),
                ("br;q=0, zstd;q=0, gzip;q=0", None),
                ("br;q=0, *", Some("zstd")),
                ("identity, gzip;q=0.5", None),
                ("identity;q=0, gzip", Some("gzip")),
                ("deflate", None),
                ("", None),
            ] {
                let response = get(&mut client, &target, &[&format!("Accept-Encoding: {accepted}")]);
                assert_eq!((response.status, coding(&response)), (200, sent), "{accepted}");
                assert_eq!(response.field("Vary"), Some("Accept-Encoding"), "{accepted}");
            }
            wait_until("the tag", || get(&mut client, &target, &[]).field("ETag").is_some());
            let plain = get(&mut client, &target, &[]);
            tags.push(tag(&plain));
            tags.sort_unstable();
            tags.dedup();
            assert_eq!(tags.len(), 4, "each representation has a tag of its own");
            assert_eq!((coding(&plain), plain.field("Vary")), (None, Some("Accept-Encoding")));
            assert!(plain.text() == content);
        }
    }
}

/// As nginx with `gzip_static`, h2o and browsers expect: one representation, with its own tag, decides everything.
#[test]
fn conditions_ranges_and_head_are_those_of_the_sent_representation() {
    let site = TestSite::cached_with(&options());
    write(&site);
    let mut client = site.connect();
    for lines in LINES {
        let target = format!("/{lines}.css");
        wait_for(&mut client, &target, "br");
        let [plain, br] = ["identity", "br"].map(|coding| format!("Accept-Encoding: {coding}"));
        let [whole, packed] = [&plain, &br].map(|accepted| get(&mut client, &target, &[accepted]));
        let date = whole.field("Last-Modified").expect("a date");
        assert_eq!(packed.field("Last-Modified"), Some(date));
        for (accepted, own, other) in [(&plain, &whole, &packed), (&br, &packed, &whole)] {
            let (len, sent) = (own.body.len(), coding(own));
            let range = format!("bytes 10-20/{len}");
            for (conditions, status) in [
                (vec![format!("If-None-Match: {}", tag(own))], 304),
                (vec![format!("If-None-Match: W/{}", tag(own))], 304),
                (vec![format!("If-None-Match: {}", tag(other))], 200),
                (vec!["If-None-Match: *".to_owned()], 304),
                (vec![format!("If-Modified-Since: {date}")], 304),
                (vec![format!("If-Match: {}", tag(own))], 200),
                (vec![format!("If-Match: {}", tag(other))], 412),
                (vec!["Range: bytes=10-20".to_owned()], 206),
                (vec!["Range: bytes=10-20".to_owned(), format!("If-Range: {}", tag(own))], 206),
                // Parts of two representations never meet.
                (vec!["Range: bytes=10-20".to_owned(), format!("If-Range: {}", tag(other))], 200),
                (vec!["Range: bytes=10-20".to_owned(), format!("If-Range: {date}")], 200),
                (vec![format!("Range: bytes={len}-")], 416),
                (vec!["Range: bytes=0-1,4-5".to_owned()], if sent.is_some() { 200 } else { 206 }),
            ] {
                let mut lines = vec![&accepted[..]];
                lines.extend(conditions.iter().map(String::as_str));
                let response = get(&mut client, &target, &lines);
                assert_eq!(response.status, status, "{lines:?}");
                assert_eq!(response.field("ETag"), own.field("ETag"), "{lines:?}");
                assert_eq!(response.field("Vary"), Some("Accept-Encoding"), "{lines:?}");
                let has_content = matches!(status, 200 | 206);
                assert_eq!(coding(&response), sent.filter(|_| has_content), "{lines:?}");
                if response.field("Content-Range") == Some(&range) {
                    assert!(response.body == own.body[10..=20], "{lines:?}");
                }
                let is_modified = !matches!(status, 200 | 206 | 416);
                let head = client.request("HEAD", &target, &lines);
                // A range applies to `GET` only (RFC 9110 section 14.2).
                if is_modified || status == 200 && !lines.iter().any(|line| line.starts_with("Range")) {
                    assert_eq!((head.status, fields(&head)), (status, fields(&response)), "{lines:?}");
                }
            }
            let head = client.request("HEAD", &target, &[accepted]);
            assert_eq!(fields(&head), fields(own), "{accepted}");
        }
    }
}

#[test]
fn files_that_gain_nothing_stay_as_they_are() {
    let types = MediaTypeOptions {
        by_extension: vec![("br".to_owned(), "text/plain".to_owned())],
        ..Default::default()
    };
    let rule = |path: &str, value: &str| CacheRule {
        files: FileMatch::Path(path.to_owned()),
        value: value.to_owned(),
    };
    let cache_control = vec![rule("/kept.css", "public, No-Transform"), rule("/*", "no-cache")];
    let site = TestSite::cached_with(&FolderOptions { media_types: types, cache_control, ..options() });
    let content = text(100);
    let left = ["a.png", "a.zip", "a.woff2", "a.svgz", "a.unknown", "a.css.gz", "a.txt.br", "kept.css"];
    for name in left {
        site.file(name, &content);
    }
    site.file("short.css", &content[..1023]).file("empty.css", "").file("large.css", text(600_000));
    site.file("least.css", &content[..1024]);
    assert!(fs::metadata(site.at("large.css")).expect("a file").len() > 8 * 1024 * 1024);
    let mut client = site.connect();
    // The others would be, too, by then.
    wait_for(&mut client, "/least.css", "br, zstd, gzip");
    for name in left.iter().chain(&["short.css", "empty.css", "large.css"]) {
        for _ in 0..3 {
            let response = get(&mut client, &format!("/{name}"), &["Accept-Encoding: br, zstd, gzip"]);
            let own = (*name == "a.svgz").then_some("gzip");
            assert_eq!(
                (response.status, coding(&response), response.field("Vary")),
                (200, own, None),
                "{name}"
            );
        }
    }
    // Text by its type, which nothing makes shorter.
    let mut random = 1_u64;
    let noise = |_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    };
    site.file("noise.css", (0..5_000).map(noise).collect::<Vec<_>>());
    let before = compression_figures().compressions;
    wait_until("the attempt", || {
        let response = get(&mut client, "/noise.css", &["Accept-Encoding: br"]);
        assert_eq!((coding(&response), response.field("Vary")), (None, Some("Accept-Encoding")));
        compression_figures().compressions > before
    });
    assert_eq!(coding(&get(&mut client, "/noise.css", &["Accept-Encoding: br"])), None);
    let without = TestSite::cached();
    without.file("a.css", &content);
    let response = get(&mut without.connect(), "/a.css", &["Accept-Encoding: br"]);
    assert_eq!((coding(&response), response.field("Vary")), (None, None), "it is off by default");
}

#[test]
fn siblings_come_before_what_is_compressed_on_the_fly() {
    let options = FolderOptions { precompressed: vec![Coding::Gzip], ..options() };
    for site in [TestSite::cached_with(&options), TestSite::with(&options)] {
        write(&site);
        let sibling = |lines| testkit::coded("gz", "made before", text(lines).len());
        for lines in LINES {
            site.file(format!("{lines}.css.gz"), sibling(lines));
            // Its coding isn't one to look for.
            site.file(format!("{lines}.css.br"), testkit::coded("br", "ignored", text(lines).len()));
        }
        let mut client = site.connect();
        for lines in LINES {
            let (target, content, sibling) = (format!("/{lines}.css"), text(lines), sibling(lines));
            for accepted in ["gzip", "gzip, br;q=0.9", "br, gzip"] {
                let response = get(&mut client, &target, &[&format!("Accept-Encoding: {accepted}")]);
                assert_eq!((coding(&response), &response.body), (Some("gzip"), &sibling), "{accepted}");
            }
            // In place of a coding that isn't there yet.
            let first = get(&mut client, &target, &["Accept-Encoding: gzip;q=0.5, zstd"]);
            assert_eq!((coding(&first), &first.body), (Some("gzip"), &sibling));
            wait_until("the compressed file", || {
                coding(&get(&mut client, &target, &["Accept-Encoding: gzip;q=0.5, zstd"])) == Some("zstd")
            });
            assert!(decoded(&wait_for(&mut client, &target, "br")) == content.as_bytes());
            let dated = format!("If-Range: {}", first.field("Last-Modified").expect("a date"));
            let lines = ["Accept-Encoding: gzip", "Range: bytes=0-1", &dated];
            assert_eq!(
                get(&mut client, &target, &lines).status,
                200,
                "the coding may change, the date doesn't"
            );
        }
    }
}

#[test]
fn a_new_version_is_never_sent_with_old_content() {
    let sites = [TestSite::cached_with(&options()), TestSite::with(&options())];
    sites.iter().for_each(write);
    let each = || sites.iter().flat_map(|site| LINES.map(|lines| (site, lines, format!("/{lines}.css"))));
    let new = |lines| text(lines).replace("line", "LINE");
    let accepted = ["Accept-Encoding: br"];
    let mut old = Vec::new();
    for (site, lines, target) in each() {
        let mut client = site.connect();
        old.push(tag(&wait_for(&mut client, &target, "br")));
        site.replace(&target[1..], new(lines));
        wait_until("the change", || coding(&get(&mut client, &target, &accepted)).is_none());
    }
    for ((site, lines, target), old) in each().zip(&old) {
        // Once the new version was sent, the old one never is.
        let mut client = site.connect();
        let next = wait_for(&mut client, &target, "br");
        assert!(decoded(&next) == new(lines).as_bytes() && tag(&next) != *old);
        fs::remove_file(site.at(&target[1..])).expect("removed");
        wait_until("its removal", || get(&mut client, &target, &accepted).status == 404);
    }
    sites.iter().for_each(write);
    for ((site, _, target), old) in each().zip(&old) {
        let mut client = site.connect();
        wait_until("the file", || get(&mut client, &target, &accepted).status == 200);
        assert_eq!(tag(&wait_for(&mut client, &target, "br")), *old, "the same content has the same tag");
    }
}

/// Pages of statuses and fallbacks are files as well.
#[test]
fn an_index_and_a_fallback_are_compressed() {
    let mut options = options();
    options.find.spa = Some("/index.html".to_owned());
    let site = TestSite::cached_with(&options);
    site.file("index.html", text(100));
    let mut client = site.connect();
    wait_for(&mut client, "/", "zstd");
    let page = get(&mut client, "/some/view", &["Accept-Encoding: zstd"]);
    assert_eq!((page.status, coding(&page)), (200, Some("zstd")));
    assert!(decoded(&page) == text(100).as_bytes());
}
