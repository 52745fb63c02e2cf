//! tower-http's `ServeDir` under a prefix, with the application's own 404 page.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tower_http::services::{ServeDir, ServeFile};

use crate::client::{Client, ask, get as ask_get};
use crate::folder::Folder;
use crate::serve::{Served, serve};

const LARGE_BYTES: usize = 2 * 1024 * 1024 + 5;

fn large() -> Vec<u8> {
    (0..LARGE_BYTES).map(|at| u8::try_from(at * 7 % 256).unwrap()).collect()
}

fn served(name: &str) -> (Served, Folder) {
    let folder = Folder::new(name);
    folder.write("index.html", "<h1>home</h1>");
    folder.write("assets/app.js", "let a = 1;");
    folder.write("assets/app.js.gz", "packed");
    folder.write("large.bin", large());
    folder.write("not-found.html", "<h1>nothing here</h1>");
    let files = ServeDir::new(folder.path("")).precompressed_gzip();
    let app = Router::new()
        .route("/api/time", get(async || "noon"))
        .nest_service("/site", files.not_found_service(ServeFile::new(folder.path("not-found.html"))))
        .fallback(async || (StatusCode::NOT_FOUND, "the application knows no such page"));
    (serve(app), folder)
}

#[test]
fn a_file_comes_with_its_type_and_length() {
    let (server, _folder) = served("static-whole");
    let home = ask_get(server.addr, "/site/");
    assert_eq!((home.status(), home.text()), (200, "<h1>home</h1>"));
    assert_eq!(home.head.field("content-type"), Some("text/html"));
    let got = ask_get(server.addr, "/site/large.bin");
    assert_eq!(got.head.content_length(), Some(LARGE_BYTES));
    assert!(got.body == large(), "the file differs");
    assert_eq!(ask_get(server.addr, "/api/time").text(), "noon");
}

#[test]
fn head_says_the_length_and_sends_nothing() {
    let (server, _folder) = served("static-head");
    let mut client = Client::connect(server.addr);
    let response = client.ask("HEAD", "/site/large.bin", &[], b"");
    assert_eq!((response.status(), response.head.content_length()), (200, Some(LARGE_BYTES)));
    assert_eq!(client.ask("GET", "/api/time", &[], b"").text(), "noon", "no byte of a body in between");
}

#[test]
fn a_range_is_that_part() {
    let (server, _folder) = served("static-range");
    let part = ask(server.addr, "GET", "/site/large.bin", &["Range: bytes=1000-2999"], b"");
    assert_eq!(part.status(), 206);
    assert_eq!(part.head.field("content-range"), Some(format!("bytes 1000-2999/{LARGE_BYTES}").as_str()));
    assert!(part.body == large()[1000..3000], "the part differs");
    let beyond = ask(server.addr, "GET", "/site/large.bin", &["Range: bytes=9999999-"], b"");
    assert_eq!(beyond.status(), 416);
}

#[test]
fn an_unchanged_file_is_not_sent_again() {
    let (server, _folder) = served("static-conditional");
    let mut client = Client::connect(server.addr);
    let first = client.ask("GET", "/site/assets/app.js", &[], b"");
    let since = format!("If-Modified-Since: {}", first.head.field("last-modified").unwrap());
    let again = client.ask("GET", "/site/assets/app.js", &[&since], b"");
    assert_eq!((again.status(), again.body.len()), (304, 0));
    assert_eq!(client.ask("GET", "/api/time", &[], b"").text(), "noon");
}

#[test]
fn a_packed_sibling_goes_to_who_takes_it() {
    let (server, _folder) = served("static-packed");
    let packed = ask(server.addr, "GET", "/site/assets/app.js", &["Accept-Encoding: gzip"], b"");
    assert_eq!((packed.head.field("content-encoding"), packed.text()), (Some("gzip"), "packed"));
    assert_eq!(ask_get(server.addr, "/site/assets/app.js").text(), "let a = 1;");
}

#[test]
fn what_is_missing_gets_the_page_for_it() {
    let (server, _folder) = served("static-missing");
    let missing = ask_get(server.addr, "/site/none");
    assert_eq!((missing.status(), missing.text()), (404, "<h1>nothing here</h1>"));
    assert_eq!(ask_get(server.addr, "/none").text(), "the application knows no such page");
    for path in ["/site/../Cargo.toml", "/site/%2e%2e/%2e%2e/Cargo.toml", "/site/..%2fCargo.toml"] {
        let status = ask_get(server.addr, path).status();
        assert!(matches!(status, 400 | 404), "{path}: {status}");
    }
}

#[test]
fn a_folder_without_its_slash_is_redirected() {
    let (server, folder) = served("static-folder");
    folder.write("docs/index.html", "docs");
    let moved = ask_get(server.addr, "/site/docs");
    assert_eq!(moved.status(), 307);
    // The service doesn't know its prefix.
    assert_eq!(moved.head.field("location"), Some("/docs/"));
}
