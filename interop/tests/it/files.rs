//! tower-http's `ServeDir` under a prefix, with the application's own 404 page.

use axum::Router;
use axum::routing::get;
use testkit::TestFolder;
use tower_http::services::{ServeDir, ServeFile};

use crate::serve::{serve, uri};

const LARGE_BYTES: usize = 2 * 1024 * 1024 + 5;

/// A response: the request, a header of it, its status, a header of the response, and its body.
type Case<'a> = (&'a str, &'a str, u16, (&'a str, &'a str), &'a [u8]);

#[test]
fn serves_files_ranges_and_siblings_on_one_connection() {
    let folder = TestFolder::new();
    let large: Vec<u8> = (0..LARGE_BYTES).map(|at| u8::try_from(at * 7 % 256).unwrap()).collect();
    folder.file("index.html", "<h1>home</h1>").file("docs/index.html", "docs").file("large.bin", &large);
    folder.file("app.js", "let a = 1;").file("app.js.gz", "packed").file("none.html", "nothing here");
    let app = || {
        let files = ServeDir::new(folder.path()).precompressed_gzip();
        let files = files.not_found_service(ServeFile::new(folder.at("none.html")));
        Router::new().route("/api/time", get(async || "noon")).nest_service("/site", files)
    };
    let length = LARGE_BYTES.to_string();
    let part = format!("bytes 1000-2999/{LARGE_BYTES}");
    #[rustfmt::skip]
    let cases: [Case<'_>; 9] = [
        ("GET /site/", "X: y", 200, ("content-type", "text/html"), b"<h1>home</h1>"),
        ("GET /site/large.bin", "X: y", 200, ("content-length", &length), &large),
        ("HEAD /site/large.bin", "X: y", 200, ("content-length", &length), b""),
        ("GET /site/large.bin", "Range: bytes=1000-2999", 206, ("content-range", &part), &large[1000..3000]),
        ("GET /site/large.bin", "Range: bytes=9999999-", 416, ("content-length", "0"), b""),
        ("GET /site/app.js", "Accept-Encoding: gzip", 200, ("content-encoding", "gzip"), b"packed"),
        ("GET /site/none", "X: y", 404, ("content-type", "text/html"), b"nothing here"),
        // The service doesn't know its prefix.
        ("GET /site/docs", "X: y", 307, ("location", &*uri("/docs/")), b""),
        ("GET /api/time", "X: y", 200, ("content-length", "4"), b"noon"),
    ];
    for server in serve(app) {
        let mut client = server.connect();
        for (request, header, status, (name, value), body) in cases {
            let (method, target) = request.split_once(' ').unwrap();
            let response = client.request(method, target, &[header]);
            assert_eq!((response.status, response.field(name)), (status, Some(value)), "{request} {header}");
            assert!(response.body == body, "{request} {header}: another body");
        }
        let since = client
            .get("/site/app.js")
            .field("last-modified")
            .map(|time| format!("If-Modified-Since: {time}"));
        let again = client.request("GET", "/site/app.js", &[&since.unwrap()]);
        assert_eq!((again.status, again.body.len()), (304, 0));
        for path in ["/site/../Cargo.toml", "/site/%2e%2e/%2e%2e/Cargo.toml", "/site/..%2fCargo.toml"] {
            let status = server.get(path).status;
            assert!(matches!(status, 400 | 404), "{path}: {status}");
        }
    }
}
