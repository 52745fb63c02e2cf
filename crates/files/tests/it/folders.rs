//! Folders: their index and their trailing slash.

use crate::site::Site;

#[test]
fn a_folder_is_responded_with_its_index() {
    let site = Site::new();
    site.file("index.html", "top").file("a/index.html", "a").file("a/b c/index.html", "b c");
    for (target, body) in [
        ("/", "top"),
        ("/?query", "top"),
        ("/index.html", "top"),
        ("/a/", "a"),
        ("/a/?x=/y", "a"),
        ("/a/index.html", "a"),
        ("//", "top"),
        ("//a//", "a"),
        ("/a/b%20c/", "b c"),
    ] {
        assert_eq!(site.get(target), (200, body.as_bytes().to_vec()), "{target}");
    }
}

#[test]
fn a_folder_without_its_slash_redirects_to_it() {
    let site = Site::new();
    site.file("a/b c/index.html", "there").file("back\\slash/index.html", "there").link("link", "a/b c");
    for (target, location) in [
        ("/a", "/a/"),
        ("/a?x=1&y=/z?", "/a/?x=1&y=/z?"),
        ("/a?", "/a/?"),
        ("/a/b%20c", "/a/b%20c/"),
        ("/%61", "/%61/"),
        ("//a", "/a/"),
        ("////a", "/a/"),
        ("/link", "/link/"),
        ("/back%5Cslash", "/back%5Cslash/"),
        ("http://elsewhere/a", "/a/"),
    ] {
        let response = site.connect().request("GET", target, &[]);
        assert_eq!((response.status, response.field("Location")), (301, Some(location)), "{target}");
    }
    let response = site.connect().request("GET", "/link/", &[]);
    assert_eq!((response.status, response.text()), (200, "there"));
}

#[test]
fn a_file_with_a_slash_at_its_end_is_not_found() {
    let site = Site::new();
    site.file("f.txt", "file").file("a/index.html", "index");
    for target in ["/f.txt/", "/f.txt//", "/f.txt/x", "/a/index.html/", "/f.txt/?x"] {
        assert_eq!(site.status(target), 404, "{target}");
    }
}

#[test]
fn a_folder_without_an_index_is_not_found() {
    let site = Site::new();
    site.file("a/f.txt", "file");
    for target in ["/", "/a/", "/none/"] {
        assert_eq!(site.get(target), (404, b"Not Found\n".to_vec()), "{target}");
    }
    assert_eq!(site.status("/a/f.txt"), 200);
}

#[test]
fn an_index_that_is_a_folder_itself_is_not_found() {
    let site = Site::new();
    site.file("a/index.html/index.html", "deep").file("index.html/f", "file");
    for target in ["/", "/a/"] {
        let response = site.connect().request("GET", target, &[]);
        assert_eq!((response.status, response.field("Location")), (404, None), "{target}");
    }
    assert_eq!(site.get("/a/index.html/"), (200, b"deep".to_vec()));
    assert_eq!(site.status("/a/index.html"), 301);
}
