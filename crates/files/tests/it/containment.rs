//! No path leads out of the folder; links, pipes, sockets and unreadable files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

use shearwater_files::{FolderOptions, Links};
use testkit::hostile_targets;

use crate::site::{CANARY, TestSite};

#[test]
fn follows_links_inside() {
    let site = TestSite::new();
    site.file("a/f.txt", "file").file("a/index.html", "index");
    site.link("to_file", "a/f.txt").link("a/up", "../a/f.txt").link("to_dir", "a").link("twice", "to_dir/up");
    site.link("and_back", "../served/a/f.txt")
        .link("absolute", site.at("a/f.txt"))
        .link("absolute_dir", site.at("a"));
    for (target, body) in [
        ("/to_file", "file"),
        ("/a/up", "file"),
        ("/to_dir/", "index"),
        ("/to_dir/f.txt", "file"),
        ("/twice", "file"),
        ("/and_back", "file"),
        ("/absolute", "file"),
        ("/absolute_dir/", "index"),
        ("/absolute_dir/up", "file"),
    ] {
        assert_eq!(site.get(target), (200, body.as_bytes().to_vec()), "{target}");
    }
}

#[test]
fn forbids_links_that_lead_out() {
    let site = TestSite::new();
    site.file("f.txt", "file").file("index.html", "index");
    site.link("out", "../outside/canary").link("out_dir", "../outside").link("up", "..");
    site.link("absolute", site.outside("canary")).link("slash", "/");
    fs::create_dir(site.at("dir")).expect("a folder");
    site.link("dir/index.html", "../../outside/canary").link("chain", "out");
    for target in [
        "/out",
        "/out_dir/canary",
        "/out_dir",
        "/out_dir/",
        "/up/served/f.txt",
        "/absolute",
        "/slash/etc/passwd",
        "/slash",
        "/dir/",
        "/chain",
    ] {
        assert_eq!(site.get(target), (403, b"Forbidden\n".to_vec()), "{target}");
    }
}

#[test]
fn dangling_and_circular_links_are_not_found() {
    let site = TestSite::new();
    site.link("dangling", "none").link("a", "b").link("b", "a").link("own", "own");
    for target in ["/dangling", "/a", "/b/x", "/own", "/own/"] {
        assert_eq!(site.status(target), 404, "{target}");
    }
}

#[test]
fn forbids_pipes_sockets_and_devices_without_blocking() {
    for symlinks in [Links::default(), Links::Follow] {
        let site = TestSite::with(&FolderOptions { symlinks, ..FolderOptions::default() });
        let made = Command::new("mkfifo").arg(site.at("fifo")).status().expect("mkfifo");
        assert!(made.success());
        let _socket = UnixListener::bind(site.at("socket")).expect("a socket");
        site.link("to_fifo", "fifo").link("to_null", "/dev/null").link("to_zero", "/dev/zero");
        // Only root may create a device.
        let made = Command::new("mknod").arg(site.at("null")).args(["c", "1", "3"]).output().expect("mknod");
        let device = made.status.success().then_some("/null");
        for target in ["/fifo", "/socket", "/to_fifo", "/to_null", "/to_zero"].into_iter().chain(device) {
            assert_eq!(site.status(target), 403, "{target}, {symlinks:?}");
        }
    }
}

#[test]
fn forbids_unreadable_files() {
    let site = TestSite::new();
    site.file("locked.txt", "locked").file("shut/f.txt", "shut").file("index.html", "index");
    let set =
        |name: &str, mode| fs::set_permissions(site.at(name), Permissions::from_mode(mode)).expect("a mode");
    set("locked.txt", 0o000);
    set("shut", 0o000);
    // Root may read it anyway. The program's own tests check this as another user then.
    let expected = if fs::read(site.at("locked.txt")).is_ok() { 200 } else { 403 };
    assert_eq!([site.status("/locked.txt"), site.status("/shut/f.txt")], [expected; 2]);
    assert_eq!(site.status("/"), 200);
    set("shut", 0o700);
}

#[test]
fn follow_allows_any_link_but_no_dot_segments() {
    let site =
        TestSite::with(&FolderOptions { symlinks: Links::Follow, listing: true, ..FolderOptions::default() });
    site.file("dir/f.txt", "file");
    site.link("dir/out", site.outside("canary"))
        .link("dir/out_dir", "../../outside")
        .link("dir/gone", "none");
    for target in ["/dir/out", "/dir/out_dir/canary"] {
        assert_eq!(site.get(target), (200, CANARY.as_bytes().to_vec()), "{target}");
    }
    let (_, list) = site.get("/dir/");
    let list = String::from_utf8(list).expect("UTF-8");
    assert!(["f.txt", "out", "out_dir/"].iter().all(|href| list.contains(&format!("\"{href}\""))));
    assert!(!list.contains("gone"));
    for (target, status) in [
        ("/../outside/canary", 400),
        ("/dir/%2e%2e/%2e%2e/outside/canary", 400),
        ("/..%2foutside%2fcanary", 404),
    ] {
        assert_eq!(site.status(target), status, "{target}");
    }
}

#[test]
fn never_follows_links_when_disabled() {
    let site = TestSite::with(&FolderOptions { symlinks: Links::Never, ..FolderOptions::default() });
    site.file("a/f.txt", "file")
        .file("a/index.html", "index")
        .file("f.css", "plain")
        .file("packed", "packed");
    site.link("to_file", "a/f.txt").link("to_dir", "a").link("out", "../outside/canary").link("gone", "none");
    site.link("f.css.gz", "packed");
    for target in ["/to_file", "/to_dir", "/to_dir/", "/to_dir/f.txt", "/out", "/gone"] {
        assert_eq!(site.get(target), (404, b"Not Found\n".to_vec()), "{target}");
    }
    assert_eq!([site.status("/a/f.txt"), site.status("/a/"), site.status("/none")], [200, 200, 404]);
    let response = site.connect().request("GET", "/f.css", &["Accept-Encoding: gzip"]);
    assert_eq!((response.text(), response.field("Vary")), ("plain", None), "a link isn't a sibling either");
}

#[test]
fn no_target_reaches_files_outside() {
    let site = TestSite::new();
    let folder = site.folder.path();
    hostile_targets::lay_out(folder).expect("files and links");
    let targets = hostile_targets::all(folder);
    assert!(targets.len() > 150, "{} targets", targets.len());
    for target in targets {
        for method in ["GET", "HEAD", "POST"] {
            target.attack(site.address, method).expect("a refusal");
        }
    }
}

#[test]
fn canary_is_detected_when_served() {
    let site = TestSite::of_all();
    hostile_targets::lay_out(site.folder.path()).expect("files and links");
    for target in ["/outside/canary.txt", "/served/relative-link"] {
        assert_eq!(site.get(target), (200, CANARY.as_bytes().to_vec()));
    }
    // Paths to the canary from the root are right here.
    let found = hostile_targets::all(site.folder.path());
    let errors = found.iter().filter_map(|target| target.attack(site.address, "GET").err());
    assert!(errors.filter(|error| error.contains("leaks")).count() > 0);
}
