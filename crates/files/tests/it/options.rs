//! Options: invalid ones are rejected before anything is served; those of headers show in responses.

use std::path::Path;

use shearwater_files::limits::{INDEX_NAMES_MAX, TRY_FILES_MAX};
use shearwater_files::{CacheRule, Coding, FileMatch, Folder, FolderError, FolderOptions, MediaTypeOptions};

use crate::finding::{both, strings};

fn refusal(change: impl Fn(&mut FolderOptions)) -> String {
    let mut options = FolderOptions::default();
    change(&mut options);
    let bad = options.check().expect_err("it is refused");
    let folder = Folder::open_with(Path::new("/none"), &options);
    assert!(matches!(&folder, Err(FolderError::Option(same)) if *same == bad), "options are checked first");
    bad.to_string()
}

#[test]
fn default_options_are_valid() {
    assert_eq!(FolderOptions::default().check(), Ok(()));
    let opened = Folder::open_with(Path::new("/none/such"), &FolderOptions::default());
    assert!(matches!(opened, Err(FolderError::Open(_))));
}

#[test]
fn rejects_candidates_that_can_never_be_files() {
    for (text, why) in [
        ("", "begins with a slash"),
        ("index.html", "begins with a slash"),
        ("path}.html", "begins with a slash"),
        ("/a//b", "empty"),
        ("/dir/", "empty"),
        ("/", "empty"),
        ("{path}//x", "empty"),
        ("/a//{path}", "empty"),
        ("/../x", ".."),
        ("/a/./b", ".."),
        ("{path}/../x", ".."),
        ("/a\0", "NUL"),
        ("/{file}.html", "{path}"),
        ("{path}{query}", "{path}"),
        ("{path}{path}", "{path}"),
        ("a{path}", "begins with a slash"),
        ("=200", "status"),
        ("=401", "except 401"),
        ("=405", "except 401"),
        ("=600", "status"),
        ("=04", "status"),
        ("=+44", "status"),
        ("=", "status"),
    ] {
        let refused = refusal(|options| options.find.try_files = strings(&["{path}", text]));
        assert!(refused.starts_with(&format!("try_files {text:?}: ")) && refused.contains(why), "{refused}");
    }
    let refused = refusal(|options| options.find.try_files = strings(&["=404", "{path}"]));
    assert!(refused.contains("must be the last"), "{refused}");
}

#[test]
fn limits_the_entries_of_lists() {
    let mut options = FolderOptions::default();
    options.find.try_files = vec!["{path}".to_owned(); TRY_FILES_MAX];
    options.find.index = vec!["i".to_owned(); INDEX_NAMES_MAX];
    assert_eq!(options.check(), Ok(()));
    let refused = refusal(|options| options.find.try_files = vec!["{path}".to_owned(); TRY_FILES_MAX + 1]);
    assert!(refused.contains("too many"), "{refused}");
    let refused = refusal(|options| options.find.index = vec!["i".to_owned(); INDEX_NAMES_MAX + 1]);
    assert!(refused.contains("too many"), "{refused}");
}

#[test]
fn rejects_other_invalid_values() {
    for index in ["", "a/b", ".", "..", "{path}", "/index.html"] {
        let refused = refusal(|options| options.find.index = strings(&[index]));
        assert!(refused.starts_with("index "), "{refused}");
    }
    for spa in ["index.html", "/", "/a/../b"] {
        let refused = refusal(|options| options.find.spa = Some(spa.to_owned()));
        assert!(refused.starts_with("spa "), "{refused}");
    }
    let refused = refusal(|options| options.precompressed = vec![Coding::Br, Coding::Gzip, Coding::Br]);
    assert_eq!(refused, "precompressed \"br\": listed twice");
}

fn rule(files: FileMatch, value: &str) -> CacheRule {
    CacheRule { files, value: value.to_owned() }
}

fn options() -> FolderOptions {
    let by_type = |files: &str, value| rule(FileMatch::Type(files.to_owned()), value);
    let by_path = |files: &str, value| rule(FileMatch::Path(files.to_owned()), value);
    let mut options = FolderOptions {
        cache_control: vec![
            by_path("/assets/*", "public, max-age=31536000, immutable"),
            by_type("text/html", "no-cache"),
            by_type("text/x-foo", "max-age=7"),
        ],
        media_types: MediaTypeOptions {
            by_extension: vec![
                ("foo".into(), "text/x-foo".into()),
                ("js".into(), "application/javascript".into()),
            ],
            otherwise: Some("text/plain".into()),
            ..MediaTypeOptions::default()
        },
        ..FolderOptions::default()
    };
    options.find.spa = Some("/index.html".into());
    options
}

#[test]
fn media_type_and_cache_control_are_those_of_the_sent_file() {
    let long = Some("public, max-age=31536000, immutable");
    for site in both(&options()) {
        site.file("index.html", "app")
            .file("assets/a.js", "js")
            .file("assets/p.html", "p")
            .file("b.foo", "foo");
        site.file("README", "text").file("large.foo", vec![b'x'; 100_000]);
        let mut client = site.connect();
        for _ in 0..3 {
            for (target, media_type, cache_control) in [
                ("/", "text/html; charset=utf-8", Some("no-cache")),
                ("/assets/a.js", "application/javascript", long),
                ("/assets/p.html", "text/html; charset=utf-8", long),
                // The fallback is another file, whatever the path.
                ("/assets/none", "text/html; charset=utf-8", Some("no-cache")),
                ("/b.foo", "text/x-foo", Some("max-age=7")),
                ("/large.foo", "text/x-foo", Some("max-age=7")),
                ("/README", "text/plain", None),
            ] {
                let response = client.get(target);
                assert_eq!(response.field("Content-Type"), Some(media_type), "{target}");
                assert_eq!(response.field("Cache-Control"), cache_control, "{target}");
            }
        }
    }
}

/// Caches may store any response with `Cache-Control`, so errors have none.
#[test]
fn only_cacheable_responses_have_cache_control() {
    for site in both(&options()) {
        site.file("b.foo", "0123456789").file("large.foo", vec![b'x'; 100_000]);
        let mut client = site.connect();
        for target in ["/b.foo", "/large.foo"] {
            for (field, status, is_said) in [
                ("Range: bytes=0-1", 206, true),
                ("Range: bytes=0-1,4-5", 206, true),
                ("If-None-Match: *", 304, true),
                ("If-Match: \"x\"", 412, false),
                ("Range: bytes=999999-", 416, false),
            ] {
                let response = client.request("GET", target, &[field]);
                let said = response.field("Cache-Control") == Some("max-age=7");
                assert_eq!((response.status, said), (status, is_said), "{target} {field}");
            }
        }
        assert_eq!(client.get("/none.foo").field("Cache-Control"), None);
    }
}

#[test]
fn sends_the_configured_codings_in_their_order() {
    for (precompressed, table) in [
        (vec![], [("br, gzip", None), ("gzip", None)]),
        (vec![Coding::Gzip], [("br, gzip", Some("gzip")), ("br", None)]),
        (vec![Coding::Gzip, Coding::Br], [("br, gzip", Some("gzip")), ("br, gzip;q=0.5", Some("br"))]),
        (vec![Coding::Br, Coding::Gzip], [("gzip, br", Some("br")), ("*", Some("br"))]),
    ] {
        let options = FolderOptions { precompressed: precompressed.clone(), ..FolderOptions::default() };
        for site in both(&options) {
            for (name, content) in [("f.css", "plain"), ("f.css.br", "br"), ("f.css.gz", "gzip")] {
                let coding = name.split('.').nth(2).unwrap_or_default();
                site.file(name, testkit::coded(coding, content, 5));
            }
            let mut client = site.connect();
            for (accepted, coding) in table {
                let response = client.request("GET", "/f.css", &[&format!("Accept-Encoding: {accepted}")]);
                assert_eq!(response.field("Content-Encoding"), coding, "{precompressed:?} {accepted}");
                assert!(coding.is_some() || response.text() == "plain", "{precompressed:?} {accepted}");
                assert_eq!(response.field("Vary").is_some(), !precompressed.is_empty(), "{precompressed:?}");
            }
        }
    }
}
