//! tower-http's `ServeDir` under a prefix, with the application's own 404 page.

use std::path::{Path, PathBuf};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tower_http::services::{ServeDir, ServeFile};

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
fn serves_files_with_type_and_length() {
    let (server, _folder) = served("static-whole");
    let home = server.get("/site/");
    assert_eq!((home.status, home.text()), (200, "<h1>home</h1>"));
    assert_eq!(home.field("content-type"), Some("text/html"));
    let got = server.get("/site/large.bin");
    assert_eq!(got.content_length(), Some(LARGE_BYTES));
    assert!(got.body == large(), "the file differs");
    assert_eq!(server.get("/api/time").text(), "noon");
}

#[test]
fn responds_to_head_with_the_length() {
    let (server, _folder) = served("static-head");
    let mut client = server.connect();
    let response = client.request("HEAD", "/site/large.bin", &[]);
    assert_eq!((response.status, response.content_length()), (200, Some(LARGE_BYTES)));
    assert_eq!(client.get("/api/time").text(), "noon", "no byte of a body in between");
}

#[test]
fn serves_ranges() {
    let (server, _folder) = served("static-range");
    let part = server.ask("GET", "/site/large.bin", &["Range: bytes=1000-2999"], b"");
    assert_eq!(part.status, 206);
    assert_eq!(part.field("content-range"), Some(format!("bytes 1000-2999/{LARGE_BYTES}").as_str()));
    assert!(part.body == large()[1000..3000], "the part differs");
    let beyond = server.ask("GET", "/site/large.bin", &["Range: bytes=9999999-"], b"");
    assert_eq!(beyond.status, 416);
}

#[test]
fn responds_304_for_unchanged_files() {
    let (server, _folder) = served("static-conditional");
    let mut client = server.connect();
    let first = client.get("/site/assets/app.js");
    let since = format!("If-Modified-Since: {}", first.field("last-modified").unwrap());
    let again = client.request("GET", "/site/assets/app.js", &[&since]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(client.get("/api/time").text(), "noon");
}

#[test]
fn serves_precompressed_siblings() {
    let (server, _folder) = served("static-packed");
    let packed = server.ask("GET", "/site/assets/app.js", &["Accept-Encoding: gzip"], b"");
    assert_eq!((packed.field("content-encoding"), packed.text()), (Some("gzip"), "packed"));
    assert_eq!(server.get("/site/assets/app.js").text(), "let a = 1;");
}

#[test]
fn serves_the_page_for_missing_files() {
    let (server, _folder) = served("static-missing");
    let missing = server.get("/site/none");
    assert_eq!((missing.status, missing.text()), (404, "<h1>nothing here</h1>"));
    assert_eq!(server.get("/none").text(), "the application knows no such page");
    for path in ["/site/../Cargo.toml", "/site/%2e%2e/%2e%2e/Cargo.toml", "/site/..%2fCargo.toml"] {
        let status = server.get(path).status;
        assert!(matches!(status, 400 | 404), "{path}: {status}");
    }
}

#[test]
fn redirects_a_folder_without_its_slash() {
    let (server, folder) = served("static-folder");
    folder.write("docs/index.html", "docs");
    let moved = server.get("/site/docs");
    assert_eq!(moved.status, 307);
    // The service doesn't know its prefix.
    assert_eq!(moved.field("location"), Some("/docs/"));
}

/// An empty folder in the build's scratch folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder. `name` must be unique.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and creates its parent folders.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
