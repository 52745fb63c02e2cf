//! Precompressed siblings: selection and headers (RFC 9110 sections 8.4, 12.5.3 and 12.5.5).

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use shearwater::DriverChoice;
use shearwater_files::CacheLimits;
use testkit::{ClientResponse, TestClient};

use crate::site::{TestSite, dated, wait_until};

/// Lengths of a cached and of an uncached file.
const SIZES: [usize; 2] = [1_000, 100_000];

const CODINGS: [(&str, &str); 3] = [("br", "br"), ("zstd", "zst"), ("gzip", "gz")];

/// Returns the content of a file or sibling; it isn't compressed.
fn content(of: &str, len: usize) -> Vec<u8> {
    of.bytes().cycle().take(len).collect()
}

fn get(client: &mut TestClient, target: &str, fields: &[&str]) -> ClientResponse {
    client.request("GET", target, fields)
}

fn tag(response: &ClientResponse) -> String {
    response.field("ETag").expect("a tag").to_owned()
}

/// Returns a sibling of `packed_len` bytes of a file of `len` bytes.
fn sibling(coding: &str, len: usize, packed_len: usize) -> Vec<u8> {
    let extension = CODINGS.iter().find(|(name, _)| *name == coding).expect("a coding").1;
    let around = testkit::coded(extension, "", len).len();
    testkit::coded(extension, content(coding, packed_len - around), len)
}

/// Writes `f.css` and siblings of another size.
fn packed(site: &TestSite, len: usize, packed_len: usize) {
    site.file("f.css", content("plain", len));
    for (coding, extension) in CODINGS {
        site.file(format!("f.css.{extension}"), sibling(coding, len, packed_len));
    }
}

#[test]
fn sends_siblings_by_accept_encoding_from_memory_and_disk() {
    for site in [TestSite::new(), TestSite::cached()] {
        for (len, packed_len) in SIZES.into_iter().flat_map(|len| SIZES.map(|packed| (len, packed))) {
            packed(&site, len, packed_len);
            let mut client = site.connect();
            let mut tags = HashSet::new();
            // Three times: read, cached, cached. Another size may still be cached.
            wait_until("the change", || {
                get(&mut client, "/f.css", &[]).body.len() == len
                    && get(&mut client, "/f.css", &["Accept-Encoding: br"]).body.len() == packed_len
            });
            for _ in 0..3 {
                for (accepted, coding) in [
                    ("br, zstd, gzip", Some("br")),
                    ("gzip, zstd", Some("zstd")),
                    ("gzip", Some("gzip")),
                    ("gzip;q=0.5, br;q=0.4", Some("gzip")),
                    ("identity, gzip;q=0.5", None),
                    ("deflate", None),
                    ("", None),
                ] {
                    let response = get(&mut client, "/f.css", &[&format!("Accept-Encoding: {accepted}")]);
                    let wanted =
                        coding.map_or(content("plain", len), |coding| sibling(coding, len, packed_len));
                    assert!(response.status == 200 && response.body == wanted, "{accepted}");
                    assert_eq!(response.field("Content-Encoding"), coding, "{accepted}");
                    assert_eq!(response.field("Vary"), Some("Accept-Encoding"), "{accepted}");
                    assert_eq!(response.field("Content-Type"), Some("text/css; charset=utf-8"));
                    tags.insert((coding, tag(&response)));
                }
            }
            let distinct: HashSet<_> = tags.iter().map(|(_, tag)| tag).collect();
            assert!(
                tags.len() >= 4 && distinct.len() == tags.len(),
                "each form has tags of its own: {tags:?}"
            );
        }
    }
}

#[test]
fn every_response_of_a_file_with_siblings_varies() {
    let site = TestSite::new();
    packed(&site, 1_000, 500);
    site.file("alone.css", "alone");
    let mut client = site.connect();
    for accepted in ["Accept-Encoding: br", "Accept-Encoding: identity"] {
        let full = get(&mut client, "/f.css", &[accepted]);
        let own = format!("If-None-Match: {}", tag(&full));
        for (field, status) in [
            (own.as_str(), 304),
            ("If-Match: \"a\"", 412),
            ("Range: bytes=0-1", 206),
            ("Range: bytes=0-1,4-5", if accepted.ends_with("br") { 200 } else { 206 }),
            ("Range: bytes=9999-", 416),
        ] {
            let response = get(&mut client, "/f.css", &[accepted, field]);
            assert_eq!(response.status, status, "{accepted} {field}");
            assert_eq!(response.field("Vary"), Some("Accept-Encoding"), "{accepted} {field}");
            assert_eq!(response.field("ETag"), full.field("ETag"), "{accepted} {field}");
            let is_content = matches!(status, 200 | 206) && accepted.ends_with("br");
            assert_eq!(response.field("Content-Encoding"), is_content.then_some("br"), "{accepted} {field}");
        }
        let mut head = client.request("HEAD", "/f.css", &[accepted]);
        head.body.clone_from(&full.body);
        head.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
        assert!(
            full.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("date")).eq(&head.fields),
            "{head:?}"
        );
    }
    let alone = get(&mut client, "/alone.css", &["Accept-Encoding: br"]);
    assert_eq!((alone.field("Vary"), alone.field("Content-Encoding")), (None, None));
}

/// Two variants of a file with the same metadata.
#[test]
fn tags_differ_despite_equal_times_and_lengths() {
    let site = TestSite::new();
    // A valid start of Brotli, by accident.
    site.file("f.css", "\u{c}12345");
    fs::hard_link(site.at("f.css"), site.at("f.css.br")).expect("a link");
    let mut client = site.connect();
    let (plain, br) = (get(&mut client, "/f.css", &[]), get(&mut client, "/f.css", &["Accept-Encoding: br"]));
    assert_eq!(br.field("Content-Encoding"), Some("br"));
    assert_ne!(tag(&plain), tag(&br));
}

#[test]
fn ranges_apply_to_the_sent_coding() {
    for site in [TestSite::new(), TestSite::cached()] {
        for len in SIZES {
            packed(&site, 2_000, len);
            let mut client = site.connect();
            let mut ranged = || get(&mut client, "/f.css", &["Accept-Encoding: br", "Range: bytes=10-20"]);
            let range = format!("bytes 10-20/{len}");
            wait_until("the change", || ranged().field("Content-Range") == Some(&range));
            let response = ranged();
            assert_eq!((response.status, response.field("Content-Encoding")), (206, Some("br")));
            assert!(response.body == sibling("br", 2_000, len)[10..=20]);
            let response = get(&mut client, "/f.css", &["Accept-Encoding: br", "Range: bytes=0-1,4-5"]);
            assert_eq!(
                (response.status, response.body.len()),
                (200, len),
                "several parts can't be in a coding"
            );
        }
    }
}

#[test]
fn siblings_requested_by_name_are_plain_files() {
    let site = TestSite::cached();
    packed(&site, 1_000, 500);
    site.file("f.css.gz.br", "packed twice");
    let mut client = site.connect();
    get(&mut client, "/f.css", &["Accept-Encoding: gzip"]);
    for (target, media_type) in [("/f.css.gz", "application/gzip"), ("/f.css.br", "application/x-brotli")] {
        let response = get(&mut client, target, &["Accept-Encoding: br, gzip"]);
        assert_eq!((response.status, response.field("Content-Type")), (200, Some(media_type)));
        assert_eq!((response.field("Content-Encoding"), response.field("Vary")), (None, None));
        assert_eq!(response.body.len(), 500);
    }
    for target in ["/f.css%00", "/f.css.br%00"] {
        assert_eq!(get(&mut client, target, &[]).status, 404, "a name can't be an internal key");
    }
}

#[test]
fn sends_siblings_of_an_index() {
    let site = TestSite::new();
    site.file("a/index.html", "<p>index").file("a/index.html.br", "\u{c}packed");
    let response = get(&mut site.connect(), "/a/", &["Accept-Encoding: br"]);
    assert_eq!((response.text(), response.field("Content-Encoding")), ("\u{c}packed", Some("br")));
    assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
    site.file("b.css.gz", "\u{c}packed");
    assert_eq!(site.status("/b.css"), 404, "a sibling without its file is not found");
}

#[test]
fn ignores_older_siblings() {
    let site = TestSite::new();
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(784_111_777_500);
    site.file("f.css", "plain").file("f.css.br", "\u{c}packed");
    let mut client = site.connect();
    for (packed_at, is_sent) in [
        (time, true),
        (time + Duration::from_nanos(1), true),
        (time - Duration::from_nanos(1), false),
        (time - Duration::from_secs(1), false),
        // A compressor that preserves only whole seconds.
        (time - Duration::from_millis(500), true),
    ] {
        site.modified("f.css", time);
        site.modified("f.css.br", packed_at);
        let response = get(&mut client, "/f.css", &["Accept-Encoding: br"]);
        assert_eq!(response.text(), if is_sent { "\u{c}packed" } else { "plain" }, "{packed_at:?}");
        assert_eq!(response.field("Vary").is_some(), is_sent, "{packed_at:?}");
    }
}

#[test]
fn ignores_siblings_that_are_no_files_of_the_folder() {
    let site = TestSite::new();
    site.file("f.css", "plain").file("f.css.gz/index.html", "a folder");
    site.link("f.css.br", site.outside("canary")).link("f.css.zst", "none");
    let longest = "n".repeat(253);
    site.file(&longest, "long");
    let mut client = site.connect();
    for (target, text) in [("/f.css".to_owned(), "plain"), (format!("/{longest}"), "long")] {
        let response = get(&mut client, &target, &["Accept-Encoding: gzip, br, zstd"]);
        assert_eq!((response.status, response.text(), response.field("Vary")), (200, text, None));
    }
    fs::remove_file(site.at("f.css.br")).expect("removed");
    site.file("packed", "\u{c}packed").link("f.css.br", "packed");
    assert_eq!(
        get(&mut client, "/f.css", &["Accept-Encoding: br"]).text(),
        "\u{c}packed",
        "a link inside is followed"
    );
}

/// Reproducible builds, `cp -p` and `tar --mtime` replace a file by another with the same `mtime`.
#[test]
fn file_replaced_with_its_old_time_loses_its_siblings() {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    for driver in [DriverChoice::Epoll, DriverChoice::Uring] {
        for (len, new_len) in [(1_000, 1_000), (1_000, 900), (100_000, 100_000), (100_000, 1_000)] {
            // A warm cache, and a server without one, as after its start.
            let (kept, anew) = (CacheLimits::default(), CacheLimits::none());
            for cache in [kept, anew] {
                let Some(site) = TestSite::driven(driver, dated(cache)) else { continue };
                packed(&site, len, 500);
                for name in ["f.css", "f.css.br", "f.css.zst", "f.css.gz"] {
                    site.modified(name, time);
                }
                let mut client = site.connect();
                let old = get(&mut client, "/f.css", &["Accept-Encoding: br"]);
                assert_eq!(old.field("Content-Encoding"), Some("br"));
                site.tick();
                site.file("new", content("other", new_len)).modified("new", time);
                fs::rename(site.at("new"), site.at("f.css")).expect("replaced");
                let has = format!("If-None-Match: {}", tag(&old));
                wait_until(&format!("{driver:?}: the change of {len} bytes"), || {
                    let response = get(&mut client, "/f.css", &["Accept-Encoding: br, gzip, zstd", &has]);
                    response.body == content("other", new_len)
                });
                let response = get(&mut client, "/f.css", &["Accept-Encoding: br"]);
                assert_eq!((response.field("Content-Encoding"), response.field("Vary")), (None, None));
            }
        }
    }
}

/// Returns a sibling that records the length of its content as its coding does; it isn't compressed.
fn stating(coding: &str, of: usize, packed_len: usize) -> Vec<u8> {
    let len = (of as u64).to_le_bytes();
    let head = match coding {
        "gzip" => vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff],
        "zstd" => [&[0x28, 0xb5, 0x2f, 0xfd, 0b1110_0000][..], &len].concat(),
        _ => [
            &[0x6b, 0x05, 0, 0xe1, 0x97, 0x80, 1][..],
            &[of as u8 | 0x80, (of >> 7) as u8 | 0x80, (of >> 14) as u8],
        ]
        .concat(),
    };
    let mut packed = [head, content(coding, packed_len)].concat();
    packed.extend_from_slice(&len[..4]);
    packed
}

/// `chmod -R` and `cp -a` may visit a file before its siblings. Then all times are in order, whatever the siblings
/// contain.
#[test]
fn ignores_siblings_that_state_another_length() {
    const NAMES: [&str; 4] = ["f.css", "f.css.br", "f.css.zst", "f.css.gz"];
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let chmod: fn(&TestSite, &str) = |site, name| {
        fs::set_permissions(site.at(name), fs::Permissions::from_mode(0o640)).expect("a mode");
    };
    let copy: fn(&TestSite, &str) = |site, name| {
        fs::copy(site.at(name), site.at("new")).expect("copied");
        site.modified("new", SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777));
        fs::rename(site.at("new"), site.at(name)).expect("replaced");
    };
    for driver in [DriverChoice::Epoll, DriverChoice::Uring] {
        for (len, new_len, packed_len) in
            [(1_000, 900, 500), (100_000, 1_000, 500), (1_000, 100_000, 500), (100_000, 99_999, 80_000)]
        {
            for (change, cache) in [chmod, copy]
                .into_iter()
                .flat_map(|change| [(change, CacheLimits::default()), (change, CacheLimits::none())])
            {
                let Some(site) = TestSite::driven(driver, cache) else { continue };
                site.file("f.css", content("plain", len));
                for (coding, extension) in CODINGS {
                    site.file(format!("f.css.{extension}"), stating(coding, len, packed_len));
                }
                NAMES.iter().for_each(|name| site.modified(name, time));
                let mut client = site.connect();
                for (coding, _) in CODINGS {
                    let response = get(&mut client, "/f.css", &[&format!("Accept-Encoding: {coding}")]);
                    assert_eq!(response.field("Content-Encoding"), Some(coding), "records the file's length");
                }
                site.tick();
                site.file("new", content("other", new_len)).modified("new", time);
                fs::rename(site.at("new"), site.at("f.css")).expect("replaced");
                site.tick();
                NAMES.iter().for_each(|name| change(&site, name));
                for (coding, _) in CODINGS {
                    let accepted = format!("Accept-Encoding: {coding}");
                    wait_until(&format!("{driver:?}: the change of {len} bytes, {coding}"), || {
                        get(&mut client, "/f.css", &[&accepted]).body == content("other", new_len)
                    });
                }
                let response = get(&mut client, "/f.css", &["Accept-Encoding: br, gzip, zstd"]);
                assert_eq!((response.field("Content-Encoding"), response.field("Vary")), (None, None));
            }
        }
    }
}

/// Only `shearwater precompress` finds these: it compares the content.
#[test]
fn sibling_of_the_same_length_is_current_after_a_metadata_change() {
    let site = TestSite::new();
    site.file("f.css", content("plain", 1_000)).file("f.css.gz", stating("gzip", 1_000, 500));
    site.tick();
    site.file("f.css", content("other", 1_000)).modified("f.css", SystemTime::UNIX_EPOCH);
    let mut client = site.connect();
    for is_sent in [false, true] {
        let response = get(&mut client, "/f.css", &["Accept-Encoding: gzip"]);
        assert_eq!(response.field("Content-Encoding").is_some(), is_sent);
        fs::set_permissions(site.at("f.css.gz"), fs::Permissions::from_mode(0o640)).expect("a mode");
    }
}

/// Requests until the response is as wanted. All responses before must be one of these.
fn until(client: &mut TestClient, before: &[&str], wanted: &str, vary: Option<&str>) {
    wait_until(wanted, || {
        let response = get(client, "/f.css", &["Accept-Encoding: gzip, br"]);
        let text = String::from_utf8_lossy(&response.body);
        let text = text.trim_matches(|other: char| !other.is_ascii_lowercase());
        let is_done = text == wanted && response.field("Vary") == vary;
        assert!(is_done || before.contains(&text), "{text:?} while waiting for {wanted:?}");
        is_done
    });
}

#[test]
fn notices_added_and_removed_siblings() {
    // For a cached file, and for one with only its siblings cached.
    for pad in [0, 100_000] {
        let site = TestSite::cached();
        let mut time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        // Two writes can fall into one tick of the system's clock.
        let mut plain_again = false;
        let mut write = |name: &str, text: &str| {
            plain_again |= text == "plain again";
            time += Duration::from_secs(1);
            let len = pad + "plain".len() + if plain_again { " again".len() } else { 0 };
            let extension = name.split('.').nth(2).unwrap_or_default();
            site.file(name, testkit::coded(extension, text.to_owned() + &" ".repeat(pad), len));
            site.modified(name, time);
        };
        let varies = Some("Accept-Encoding");
        write("f.css", "plain");
        let mut client = site.connect();
        until(&mut client, &[], "plain", None);
        write("f.css.gz", "gzip");
        until(&mut client, &["plain"], "gzip", varies);
        write("f.css.br", "br");
        until(&mut client, &["gzip"], "br", varies);
        write("f.css.br", "br again");
        until(&mut client, &["br"], "br again", varies);
        // New content without new siblings.
        write("f.css", "plain again");
        until(&mut client, &["br again"], "plain again", None);
        write("f.css.gz", "gzip again");
        until(&mut client, &["plain again"], "gzip again", varies);
        fs::remove_file(site.at("f.css.gz")).expect("removed");
        until(&mut client, &["gzip again", "plain again"], "plain again", None);
        fs::remove_file(site.at("f.css")).expect("removed");
        wait_until("the removal", || get(&mut client, "/f.css", &["Accept-Encoding: gzip"]).status == 404);
    }
}

#[test]
fn sends_all_codings_in_one_turn() {
    for site in [TestSite::new(), TestSite::cached()] {
        packed(&site, 100_000, 90_000);
        let mut client = site.connect();
        let forms = ["br", "gzip", "identity", "br", "zstd", "identity", "gzip"];
        let ask = |accepted: &&str| {
            format!("GET /f.css HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\n\r\n")
        };
        client.send(forms.iter().map(ask).collect::<String>());
        for form in forms {
            let response = client.response("GET");
            let wanted =
                if form == "identity" { content("plain", 100_000) } else { sibling(form, 100_000, 90_000) };
            assert!(response.body == wanted, "{form}");
        }
    }
}

/// A compressed image is its only representation: all clients get it, with the same headers.
#[test]
fn sends_svgz_as_an_encoded_image_and_never_compressed_twice() {
    for site in [TestSite::new(), TestSite::cached()] {
        for len in SIZES {
            let image = content("gzip", len);
            site.file("a.svgz", &image);
            for (coding, extension) in CODINGS {
                site.file(format!("a.svgz.{extension}"), content(coding, len / 2));
            }
            let mut client = site.connect();
            wait_until("the change", || get(&mut client, "/a.svgz", &[]).body.len() == len);
            for accepted in ["br, zstd, gzip", "gzip", "br", "identity", "gzip;q=0"] {
                let accepted = format!("Accept-Encoding: {accepted}");
                let response = get(&mut client, "/a.svgz", &[&accepted]);
                let fields = ["Content-Type", "Content-Encoding", "Vary", "Accept-Ranges"]
                    .map(|name| response.field(name));
                let expected = [Some("image/svg+xml; charset=utf-8"), Some("gzip"), None, Some("bytes")];
                assert_eq!(fields, expected, "{accepted}");
                assert!(response.body == image, "{accepted}");
                let known = format!("If-None-Match: {}", tag(&response));
                assert_eq!(get(&mut client, "/a.svgz", &[&accepted, &known]).status, 304);
            }
            let part = get(&mut client, "/a.svgz", &["Range: bytes=0-3"]);
            assert_eq!((part.status, part.field("Content-Encoding")), (206, Some("gzip")));
            assert_eq!(part.body, image[..4]);
        }
    }
}

/// A build that was interrupted leaves an empty file, and other programs give such names to other things.
#[test]
fn ignores_siblings_that_are_not_in_their_coding() {
    for driver in [DriverChoice::Epoll, DriverChoice::Uring] {
        for (len, cache) in
            SIZES.into_iter().flat_map(|len| [(len, CacheLimits::default()), (len, CacheLimits::none())])
        {
            let Some(site) = TestSite::driven(driver, cache) else { continue };
            for (name, bad) in
                [("empty", ""), ("text", "<!DOCTYPE html><p>It is a text."), ("short", "\u{1f}")]
            {
                site.file(name, content("plain", len));
                for (_, extension) in CODINGS {
                    site.file(format!("{name}.{extension}"), bad);
                }
                let mut client = site.connect();
                for (coding, _) in CODINGS {
                    let accepted = format!("Accept-Encoding: {coding}");
                    let response = get(&mut client, &format!("/{name}"), &[&accepted]);
                    let found = (response.field("Content-Encoding"), response.field("Vary"));
                    assert_eq!(found, (None, None), "{driver:?} {name} {coding}");
                    assert!(response.body == content("plain", len), "{driver:?} {name} {coding}");
                }
            }
        }
    }
}
