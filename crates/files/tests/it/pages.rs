//! Files as pages of other statuses, such as error pages.

use std::fs;
use std::io::Write;

use shearwater::{Request, Response, Service};
use shearwater_files::{CacheLimits, CacheRule, FileMatch, Files, FolderOptions};

use crate::site::Site;

/// Responds to `/STATUS/PATH` with `/PATH` as the page of `STATUS`.
struct Pages(Files);

impl Service for Pages {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let (status, path) = request.path()[1..].split_once('/').expect("a status and a path");
        let status = status.parse().expect("a status");
        if !self.0.respond_page(&format!("/{path}"), status, request, response) {
            response.status(500).text("no page\n");
        }
    }
}

fn sites() -> [Site; 2] {
    let rule = CacheRule { files: FileMatch::Path("/*".into()), value: "immutable".into() };
    let options = FolderOptions { cache_control: vec![rule], ..FolderOptions::default() };
    [CacheLimits::none(), CacheLimits::default()].map(|cache| Site::responding(&options, cache, Pages))
}

#[test]
fn a_page_has_the_status_and_nothing_of_the_file() {
    for site in sites() {
        site.file("404.html", "missing").file("404.html.gz", "packed").file(".pages/500", "hidden");
        site.file("large.html", vec![b'x'; 100_000]);
        let mut client = site.connect();
        let tag = "If-None-Match: *";
        for _ in 0..3 {
            for (target, fields, status, body, coding) in [
                ("/404/404.html", &[][..], 404, "missing", None),
                ("/410/404.html", &["Accept-Encoding: gzip"], 410, "packed", Some("gzip")),
                ("/404/404.html", &["Range: bytes=0-1", tag, "If-Match: \"x\""], 404, "missing", None),
                ("/503/.pages/500", &[], 503, "hidden", None),
            ] {
                let response = client.request("GET", target, fields);
                assert_eq!((response.status, response.text()), (status, body), "{target} {fields:?}");
                assert_eq!(response.field("Content-Encoding"), coding);
                for name in ["ETag", "Last-Modified", "Accept-Ranges", "Cache-Control", "Content-Range"] {
                    assert_eq!(response.field(name), None, "{target} {name}");
                }
                let varies = target.ends_with("404.html").then_some("Accept-Encoding");
                assert_eq!(response.field("Vary"), varies);
            }
            let response = client.request("HEAD", "/404/404.html", &[]);
            assert_eq!((response.status, response.field("Content-Length")), (404, Some("7")));
            assert_eq!(client.request("POST", "/405/404.html", &[]).text(), "missing");
            let response = client.request("GET", "/404/large.html", &[]);
            assert_eq!((response.status, response.body.len()), (404, 100_000));
            assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
        }
    }
}

#[test]
fn where_there_is_no_page_nothing_is_said() {
    for site in sites() {
        site.file("dir/x", "x").link("out", site.outside("canary"));
        for target in
            ["/404/none.html", "/404/dir", "/404/dir/", "/404/", "/404/out", "/404/../outside/canary"]
        {
            let response = site.connect().request("GET", target, &[]);
            assert_eq!(
                (response.status, response.text(), response.fields.len()),
                (500, "no page\n", 4),
                "{target}"
            );
        }
    }
}

#[test]
fn a_page_that_is_replaced_shows() {
    let [site, _] = sites();
    site.file("404.html", "one");
    let mut client = site.connect();
    assert_eq!(client.request("GET", "/404/404.html", &[]).text(), "one");
    let mut file = fs::File::create(site.at("new")).expect("a file");
    file.write_all(b"two").expect("written");
    fs::rename(site.at("new"), site.at("404.html")).expect("renamed");
    assert_eq!(client.request("GET", "/404/404.html", &[]).text(), "two");
}
