//! What is served: a folder, `./public`, or the welcome page.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::folder::Temporary;
use crate::process::{Serving, program};

#[test]
fn without_a_folder_there_is_a_welcome_page() {
    let folder = Temporary::new();
    folder.file("secret.txt", "not served");
    let serving = Serving::start(folder.path(), &[]);
    assert!(serving.line("serves").expect("a line").starts_with("a welcome page"));
    let mut client = serving.connect();
    let page = client.request("GET", "/", &[]);
    assert_eq!((page.status, page.field("Content-Type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().starts_with("<!doctype html>") && page.text().contains("Shearwater is serving"));
    let len = page.body.len().to_string();
    assert_eq!(client.request("HEAD", "/", &[]).field("Content-Length"), Some(len.as_str()));
    for (method, target, status) in [
        ("GET", "/?query", 200),
        ("GET", "/secret.txt", 404),
        ("GET", "/index.html", 404),
        ("OPTIONS", "/", 204),
        ("POST", "/", 405),
        ("POST", "/none", 405),
    ] {
        let answer = client.request(method, target, &["Content-Length: 0"]);
        assert_eq!(answer.status, status, "{method} {target}");
        let allow = matches!(status, 204 | 405).then_some("GET, HEAD, OPTIONS");
        assert_eq!(answer.field("Allow"), allow, "{method} {target}");
    }
}

#[test]
fn a_folder_called_public_is_picked_up() {
    let folder = Temporary::new();
    folder.file("public/index.html", "public index").file("index.html", "not this one");
    let serving = Serving::start(folder.path(), &[]);
    assert_eq!(serving.line("serves"), folder.path().join("public").to_str());
    assert_eq!(serving.connect().request("GET", "/", &[]).text(), "public index");
}

#[test]
fn a_file_called_public_is_none() {
    let folder = Temporary::new();
    folder.file("public", "a file");
    let serving = Serving::start(folder.path(), &[]);
    assert!(serving.line("serves").expect("a line").starts_with("a welcome page"));
}

#[test]
fn a_folder_that_was_named_comes_before_public() {
    let folder = Temporary::new();
    folder.file("public/index.html", "public").file("a site/index.html", "named");
    for named in ["a site", "./a site/", "public/../a site"] {
        let serving = Serving::start(folder.path(), &[named]);
        assert_eq!(serving.line("serves"), folder.path().join("a site").to_str());
        assert_eq!(serving.connect().request("GET", "/", &[]).text(), "named");
    }
}

#[test]
fn every_worker_serves_the_same() {
    let folder = Temporary::new();
    folder.file("public/f.txt", "content");
    let serving = Serving::start(folder.path(), &["--workers", "4", "--pin"]);
    for _ in 0..40 {
        assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "content");
    }
}

/// As the user `nobody` where this is the superuser, who may read everything.
#[test]
fn what_its_user_may_not_read_is_forbidden() {
    const NOBODY: u32 = 65_534;
    let folder = Temporary::new();
    folder.file("site/locked.txt", "locked").file("site/open.txt", "open").file("site/shut/f.txt", "shut");
    let set = |name: &str, mode| {
        fs::set_permissions(folder.path().join(name), Permissions::from_mode(mode)).expect("a mode");
    };
    let is_superuser = rustix::process::geteuid().is_root();
    for (name, mode) in
        [("site/locked.txt", 0), ("site/shut", 0), ("site/open.txt", 0o644), ("site", 0o755), ("", 0o755)]
    {
        set(name, mode);
    }
    // The folder that the program was built in may be shut to others: a copy can be run by all.
    fs::copy(env!("CARGO_BIN_EXE_shearwater"), folder.path().join("program")).expect("a copy");
    set("program", 0o755);
    let mut command = Command::new(folder.path().join("program"));
    let ordinary = program(folder.path(), &["site", "--listen", "127.0.0.1:0"]);
    command.args(ordinary.get_args()).current_dir(folder.path()).stdout(std::process::Stdio::piped());
    if is_superuser {
        command.uid(NOBODY).gid(NOBODY);
    }
    let serving = Serving::of(&mut command);
    let mut client = serving.connect();
    for (target, status, body) in
        [("/locked.txt", 403, "Forbidden\n"), ("/shut/f.txt", 403, "Forbidden\n"), ("/open.txt", 200, "open")]
    {
        let answer = client.request("GET", target, &[]);
        assert_eq!((answer.status, answer.text()), (status, body), "{target}");
    }
    set("site/shut", 0o755);
    assert_eq!(client.request("GET", "/shut/f.txt", &[]).text(), "shut");
}
