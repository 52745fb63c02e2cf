//! Lists of folders: entries, order and formats.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::time::{Duration, UNIX_EPOCH};

use shearwater_files::limits::{LISTING_ENTRIES_MAX, LISTING_NAMES_MAX};
use shearwater_files::{FolderOptions, Hidden, Links};
use testkit::TestClient;

use crate::finding::{both, check, strings};
use crate::site::{TestSite, wait_until};

pub(crate) const JSON: &str = "Accept: application/json";

pub(crate) fn listing() -> FolderOptions {
    FolderOptions { listing: true, ..FolderOptions::default() }
}

fn text(client: &mut TestClient, target: &str, fields: &[&str]) -> String {
    let response = client.request("GET", target, fields);
    assert_eq!(response.status, 200, "{target}");
    response.text().to_owned()
}

/// Returns each text between these two.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.split(start).skip(1).map(|rest| rest.split(end).next().expect("a text")).collect()
}

/// Returns the references of the list's entries.
fn entries(page: &str) -> Vec<&str> {
    let hrefs = between(page, "<td class=\"", "</td>");
    hrefs
        .into_iter()
        .filter(|cell| !cell.starts_with("up"))
        .flat_map(|cell| between(cell, "href=\"", "\""))
        .collect()
}

#[test]
fn lists_folders_without_an_index() {
    for site in both(&listing()) {
        site.file("a/index.html", "index").file("b/f.txt", "file").file("b/sub/x", "x").file("f.txt", "file");
        site.file("b/sub/a:b", "x");
        check(&site, &[("/a/", "index"), ("/b", "301 /b/"), ("/none/", "404"), ("/f.txt/", "404")]);
        let mut client = site.connect();
        for (target, expected) in
            [("/", &["a/", "b/", "f.txt"][..]), ("/b/", &["sub/", "f.txt"]), ("/b//sub/?x", &["a%3Ab", "x"])]
        {
            let page = text(&mut client, target, &[]);
            assert_eq!(entries(&page), expected, "{target}");
            assert_eq!(page.contains("class=\"up\""), target != "/", "{target}");
            assert_eq!(page.matches("<script").count(), 1, "the filter only");
            let path = target.split('?').next().expect("a path").replace("//", "/");
            assert!(page.contains(&format!("<title>Index of {path}</title>")), "{page}");
            assert!(page.contains("<link rel=\"icon\" href=\"data:,\">"), "{page}");
        }
    }
    let site = TestSite::new();
    site.file("b/f.txt", "file");
    assert_eq!(site.status("/b/"), 404, "only if enabled");
}

#[test]
fn omits_names_that_are_not_served() {
    let fill = |site: &TestSite| {
        site.file(".env", "secret").file(".well-known/x", "x").file("dir/.x", "x").file("dir/f", "f");
        site.file("dir/.well-known/x", "x")
            .link("to_f", "dir/f")
            .link("to_dir", "dir")
            .link("out", "../outside");
        site.link("dir/up", "../dir").link("gone", "none");
    };
    for (options, top, dir) in [
        (listing(), ".well-known/ dir/ to_dir/ to_f", "up/ f"),
        (
            FolderOptions { hidden: Hidden::Serve, ..listing() },
            ".well-known/ dir/ to_dir/ .env to_f",
            ".well-known/ up/ .x f",
        ),
        (FolderOptions { symlinks: Links::Never, ..listing() }, ".well-known/ dir/", "f"),
    ] {
        let site = TestSite::with(&options);
        fill(&site);
        let _socket = UnixListener::bind(site.at("socket")).expect("a socket");
        let mut client = site.connect();
        assert_eq!(entries(&text(&mut client, "/", &[])).join(" "), top);
        assert_eq!(entries(&text(&mut client, "/dir/", &[])).join(" "), dir);
    }
}

#[test]
fn escapes_names_and_links_to_their_files() {
    let site = TestSite::with(&listing());
    let names: [&[u8]; 8] = [
        b"<script>alert(1)<script>",
        b"a&b \"c\" 'd'",
        b"a:b?c#d%41",
        "\u{202e}gpj.exe".as_bytes(),
        "ü 你.txt".as_bytes(),
        b"\xff\xfe",
        b"back\\slash",
        b"new\nline",
    ];
    for name in names {
        site.file(OsStr::from_bytes(name), name);
    }
    let mut client = site.connect();
    let page = text(&mut client, "/", &[]);
    assert!(
        page.matches("<script").count() == 1 && !page.contains('\u{202e}') && !page.contains("new\nline"),
        "{page}"
    );
    assert!(page.contains("<i>U+202E</i>gpj.exe") && page.contains("<i>FF</i><i>FE</i>"), "{page}");
    let list = text(&mut client, "/", &[JSON]);
    for hrefs in [
        entries(&page).iter().map(|href| href.replace("&amp;", "&")).collect::<Vec<_>>(),
        strings(&between(&list, "\"href\":\"", "\"")),
    ] {
        assert!(hrefs.iter().all(|href| !href.starts_with(['/', '.']) && !href.contains(':')), "{hrefs:?}");
        let contents: Vec<_> = hrefs.iter().map(|href| client.get(&format!("/{href}")).body).collect();
        assert_eq!(contents.len(), names.len());
        assert!(names.iter().all(|name| contents.iter().any(|content| content == name)), "{contents:?}");
    }
}

#[test]
fn sorts_lists_as_requested() {
    let site = TestSite::with(&listing());
    for (name, len, seconds) in [("b", 30, 1), ("C", 10, 3), ("a", 20, 2), ("A", 20, 2)] {
        site.file(name, vec![b'x'; len]).modified(name, UNIX_EPOCH + Duration::from_secs(seconds));
    }
    site.file("dir/x", "x");
    let mut client = site.connect();
    for (query, expected) in [
        ("", "dir/ A a b C"),
        ("?sort=name&order=desc", "dir/ C b a A"),
        ("?sort=size", "dir/ b A a C"),
        ("?sort=size&order=asc", "dir/ C A a b"),
        ("?sort=size&sort=name", "dir/ b A a C"),
        ("?x=1&order=asc&sort=time", "dir/ b A a C"),
        ("?sort=time", "dir/ C A a b"),
        ("?sort=%00&order=<", "dir/ A a b C"),
    ] {
        let page = text(&mut client, &format!("/{query}"), &[]);
        assert_eq!(entries(&page).join(" "), expected, "{query}");
        // Each heading links to a list, and the sorted one is marked.
        assert_eq!(page.matches("aria-sort=").count(), 1);
        for link in between(&page, "<a href=\"?", "\"") {
            assert_eq!(client.request("GET", &format!("/?{}", link.replace("&amp;", "&")), &[]).status, 200);
        }
    }
    let page = text(&mut client, "/", &[]);
    assert!(
        page.contains("title=\"1970-01-01 00:00:03 UTC\"") && page.contains("title=\"20 bytes\">20 B<"),
        "{page}"
    );
}

#[test]
fn sorts_numbers_in_names_by_value_on_all_pages() {
    let site = TestSite::with(&listing());
    for number in [10, 2, 1, 11, 9] {
        site.file(format!("IMG_{number}.jpg"), "");
    }
    let mut client = site.connect();
    let mut shown = |query: &str| {
        let page = text(&mut client, &format!("/{query}"), &[]);
        entries(&page)
            .iter()
            .map(|href| href.replace("IMG_", "").replace(".jpg", ""))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(shown(""), "1 2 9 10 11");
    assert_eq!(shown("?order=desc"), "11 10 9 2 1");
    assert_eq!(shown("?sort=size"), "1 2 9 10 11");
    assert_eq!(shown("?after=IMG_9.jpg"), "10 11");
    assert_eq!(shown("?after=IMG_3.jpg"), "9 10 11");
}

#[test]
fn marks_symbolic_links() {
    let site = TestSite::with(&listing());
    site.file("dir/f", "").file("f", "1").link("to_dir", "dir").link("to_f", "f");
    let mut client = site.connect();
    let page = text(&mut client, "/", &[]);
    let marked =
        between(&page, "<bdi>", "</td>").into_iter().filter(|cell| cell.contains("<small>link</small>"));
    let marked: Vec<&str> = marked.map(|cell| cell.split('<').next().expect("a name")).collect();
    assert_eq!(marked, ["to_dir", "to_f"]);
    let list = text(&mut client, "/", &[JSON]);
    assert_eq!(list.matches("\"is_link\":true").count(), 2, "{list}");
    assert!(list.contains("{\"name\":\"to_f\",\"type\":\"file\",\"size\":1,\"is_link\":true,"), "{list}");
}

#[test]
fn sends_json_to_clients_that_prefer_it() {
    for site in both(&listing()) {
        site.file("f\".txt", "content").modified("f\".txt", UNIX_EPOCH + Duration::from_secs(1_795_247_046));
        site.file("dir/x", "x");
        let mut client = site.connect();
        for (accept, is_json) in [
            ("Accept: application/json", true),
            ("Accept: text/html;q=0.5, application/json", true),
            ("Accept: application/*;q=0.9, text/*;q=0.8", true),
            ("Accept: */*", false),
            ("Accept: text/html,application/xhtml+xml,*/*;q=0.8", false),
            ("Accept: image/png", false),
            ("X-None: x", false),
        ] {
            let response = client.request("GET", "/", &[accept]);
            let media_type = if is_json { "application/json" } else { "text/html; charset=utf-8" };
            assert_eq!(response.field("Content-Type"), Some(media_type), "{accept}");
            assert_eq!(response.field("Vary"), Some("Accept"));
        }
        let list = text(&mut client, "/", &[JSON]);
        let dir = list.lines().find(|line| line.contains("\"dir\"")).expect("the folder");
        assert!(dir.starts_with("{\"name\":\"dir\",\"type\":\"folder\",\"modified\":\""), "{dir}");
        assert_eq!(
            list.lines().find(|line| line.contains("txt")),
            Some(
                "{\"name\":\"f\\\".txt\",\"type\":\"file\",\"size\":7,\"modified\":\"2026-11-21T07:44:06Z\",\"href\":\"f%22.txt\"}"
            )
        );
        assert!(
            list.starts_with("{\"path\":\"/\",\"is_whole\":true,\"entries\":[\n") && list.ends_with("\n]}\n")
        );
    }
}

#[test]
fn lists_have_a_tag_and_a_policy() {
    for site in both(&listing()) {
        site.file("dir/f", "f");
        let mut client = site.connect();
        let page = client.get("/dir/");
        let list = client.request("GET", "/dir/", &[JSON]);
        let tag = page.field("ETag").expect("a tag").to_owned();
        assert_ne!(list.field("ETag"), Some(tag.as_str()));
        let policy = page.field("Content-Security-Policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert_eq!(page.field("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!(page.field("X-Frame-Options"), Some("SAMEORIGIN"));
        assert_eq!((page.field("Cache-Control"), page.field("Last-Modified")), (Some("no-cache"), None));
        for (fields, status) in [
            (&[&*format!("If-None-Match: {tag}")][..], 304),
            (&[&format!("If-None-Match: {tag}"), JSON], 200),
            (&["If-Match: \"x\""], 412),
            (&[&format!("If-Match: {tag}")], 200),
            (&["If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"], 200),
            (&["If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT"], 200),
            (&["Range: bytes=0-1"], 200),
        ] {
            assert_eq!(client.request("GET", "/dir/", fields).status, status, "{fields:?}");
        }
        let mut head = client.request("HEAD", "/dir/", &[]);
        head.body.clone_from(&page.body);
        head.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
        assert!(
            page.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("date")).eq(&head.fields),
            "{head:?}"
        );
        let not_modified = client.request("GET", "/dir/", &[&format!("If-None-Match: {tag}")]);
        assert_eq!(not_modified.field("Vary"), Some("Accept"));
        assert_eq!(not_modified.field("Content-Security-Policy"), page.field("Content-Security-Policy"));
    }
}

#[test]
fn cached_lists_show_changes() {
    let site = TestSite::cached_with(&listing());
    site.file("one", "1");
    let mut client = site.connect();
    let mut until = |before: &str, wanted: &str| {
        wait_until(wanted, || {
            let seen = entries(&text(&mut client, "/", &[])).join(" ");
            assert!(seen == before || seen == wanted, "{seen}");
            seen == wanted
        });
    };
    until("", "one");
    site.file("two", "2");
    until("one", "one two");
    fs::remove_file(site.at("one")).expect("removed");
    until("one two", "two");
}

/// Returns the names in a JSON list.
pub(crate) fn names(list: &str) -> Vec<String> {
    between(list, "{\"name\":\"", "\"").into_iter().map(str::to_owned).collect()
}

/// Requests all pages of a list, each by the `next` of the one before.
fn pages(client: &mut TestClient, target: &str, query: &str) -> Vec<String> {
    let mut pages = vec![text(client, &format!("{target}{query}"), &[JSON])];
    while let Some(next) = pages
        .last()
        .and_then(|page| between(page, "\"next\":\"", "\"").first().map(|next| (*next).to_owned()))
    {
        pages.push(text(client, &format!("{target}{next}"), &[JSON]));
        assert!(pages.len() < 100, "endless pages");
    }
    pages
}

#[test]
fn lists_a_large_folder_in_pages_by_name() {
    const FILES: usize = 6_000;
    let site = TestSite::with(&listing());
    // Not in the order of their creation.
    for number in 0..FILES {
        site.file(format!("many/{:05}.txt", number * 7_919 % FILES), "");
    }
    site.file("many/zz folder/x", "").file("many/.hidden", "");
    let sorted: Vec<String> = std::iter::once("zz folder".to_owned())
        .chain((0..FILES).map(|number| format!("{number:05}.txt")))
        .collect();
    let mut client = site.connect();
    let listed = pages(&mut client, "/many/", "");
    assert_eq!(listed.len(), (FILES + 1).div_ceil(LISTING_ENTRIES_MAX));
    assert_eq!(listed.iter().flat_map(|page| names(page)).collect::<Vec<_>>(), sorted);
    for (number, page) in listed.iter().enumerate() {
        let before = number * LISTING_ENTRIES_MAX;
        let head = format!("\"is_whole\":false,\"total\":{},\"before\":{before},", FILES + 1);
        assert!(page.contains(&head), "{}", &page[..200]);
    }
    // Descending, folders still first.
    let listed = pages(&mut client, "/many/", "?order=desc");
    let descending: Vec<String> = sorted[..1].iter().chain(sorted[1..].iter().rev()).cloned().collect();
    assert_eq!(listed.iter().flat_map(|page| names(page)).collect::<Vec<_>>(), descending);
    // By size: pages are selected by name, and each is sorted.
    let listed = pages(&mut client, "/many/", "?sort=size&order=asc");
    assert_eq!(listed.iter().flat_map(|page| names(page)).collect::<Vec<_>>(), sorted);

    let page = text(&mut client, "/many/", &[]);
    assert!(page.contains("<p class=\"more\">Names 1 to 2,000 of 6,001."), "{}", &page[..4_000]);
    let next = between(&page, "<a href=\"?", "\">Next page</a>");
    let next = next.last().map(|next| next.rsplit("<a href=\"?").next().expect("a part")).expect("a link");
    let page = text(&mut client, &format!("/many/?{}", next.replace("&amp;", "&")), &[]);
    assert!(page.contains("<p class=\"more\">Names 2,001 to 4,000 of 6,001."), "{}", &page[..4_000]);
    assert!(page.contains(">First page</a>") && entries(&page)[0] == "01999.txt", "{}", &page[..4_000]);
}

#[test]
fn pages_begin_after_any_name() {
    let site = TestSite::with(&listing());
    let odd: [&[u8]; 6] = [b"A", b"a", b"b&c=d+e", b"c%41", "ü".as_bytes(), b"\xff"];
    for name in odd {
        site.file(OsStr::from_bytes(name), "");
    }
    site.file("dir/x", "").file("folder/x", "");
    let mut client = site.connect();
    let shown =
        |client: &mut TestClient, query: &str| entries(&text(client, &format!("/{query}"), &[])).join(" ");
    let all = "dir/ folder/ A a b%26c%3Dd%2Be c%2541 %C3%BC %FF";
    assert_eq!(shown(&mut client, ""), all);
    for (after, skipped) in [
        ("dir/", 1),
        ("dir%2F", 1),
        ("folder/", 2),
        // Names of files follow those of all folders.
        ("0", 2),
        ("A", 3),
        ("a", 4),
        ("b%26c%3Dd%2Be", 5),
        ("b", 4),
        ("c%2541", 6),
        ("%C3%BC", 7),
        ("%FF", 8),
        ("%zz%", 2),
        ("", 0),
    ] {
        let rest: Vec<&str> = all.split(' ').skip(skipped).collect();
        assert_eq!(shown(&mut client, &format!("?after={after}")), rest.join(" "), "{after}");
    }
    assert_eq!(shown(&mut client, "?order=desc&after=b"), "a A");
    let page = text(&mut client, "/?after=%FF", &[]);
    assert!(page.contains("Nothing is here to be shown.") && page.contains(">First page</a>"), "{page}");
}

#[test]
fn reads_a_bounded_number_of_names() {
    let site = TestSite::with(&listing());
    for number in 0..LISTING_NAMES_MAX {
        site.file(format!("hidden/.{number}"), "");
    }
    let mut client = site.connect();
    let more = "not all of them are listed";
    assert!(!text(&mut client, "/hidden/", &[]).contains(more));
    site.file("hidden/.one-more", "");
    let page = text(&mut client, "/hidden/", &[]);
    assert!(entries(&page).is_empty() && page.contains(more), "{page}");
    let list = text(&mut client, "/hidden/", &[JSON]);
    assert!(
        list.starts_with(
            "{\"path\":\"/hidden/\",\"is_whole\":false,\"total\":null,\"before\":0,\"entries\":["
        ),
        "{list}"
    );
}

#[test]
fn bounds_the_entries_of_a_page() {
    let site = TestSite::with(&listing());
    let mut client = site.connect();
    for (count, shown, is_whole) in [
        (LISTING_ENTRIES_MAX, LISTING_ENTRIES_MAX, true),
        (LISTING_ENTRIES_MAX + 1, LISTING_ENTRIES_MAX, false),
    ] {
        for number in 0..count {
            site.file(format!("many/{number}"), "");
        }
        let page = text(&mut client, "/many/", &[]);
        assert_eq!((entries(&page).len(), page.contains("class=\"more\"")), (shown, !is_whole));
        // Before the table, so that readers see first that entries are missing.
        assert_eq!(
            page.find("class=\"more\"").is_some_and(|at| at < page.find("<table").expect("a table")),
            !is_whole
        );
        let list = text(&mut client, "/many/", &[JSON]);
        assert_eq!(list.matches("\"href\"").count(), shown);
        assert!(list.contains(&format!("\"is_whole\":{is_whole}")));
    }
}

#[test]
fn lists_an_empty_folder() {
    let site = TestSite::with(&listing());
    fs::create_dir(site.at("empty")).expect("a folder");
    let page = text(&mut site.connect(), "/empty/", &[]);
    assert!(page.contains("Nothing is here to be shown.") && !page.contains("class=\"more\""), "{page}");
}

#[test]
fn lists_count_entries_and_mark_the_current_folder() {
    let site = TestSite::with(&listing());
    site.file("files/a", "1")
        .file("files/b", "22")
        .file("folders/x/y", "")
        .file("both/x/y", "")
        .file("both/f", "1");
    let mut client = site.connect();
    for (target, count) in [
        ("/files/", "2 files of <span title=\"3 bytes\">3 B</span>. "),
        ("/folders/", "1 folder. "),
        ("/both/", "1 folder, 1 file of <span title=\"1 bytes\">1 B</span>. "),
    ] {
        let page = text(&mut client, target, &[]);
        assert!(page.contains(&format!("<p>{count}Times are UTC.</p>")), "{page}");
    }
    for target in ["/", "/both/", "/both/x/"] {
        let page = text(&mut client, target, &[]);
        assert_eq!(page.matches("aria-current=\"page\"").count(), 1, "{page}");
    }
}
