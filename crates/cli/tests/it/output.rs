//! Standard output and standard error: the start report, closed outputs, messages about files.

use std::fs::File;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use testkit::TestFolder;

use crate::process::{Server, program};

#[test]
fn prints_the_start_report() {
    let folder = TestFolder::new();
    folder.file("site/index.html", "index");
    let server = Server::start(&folder, &["site", "--workers", "2", "--verbose"]);
    assert_ne!(server.address().port(), 0);
    assert_eq!(server.line("serves"), folder.at("site").to_str());
    assert_eq!(server.line("workers"), Some("2"));
    let driver = server.line("driver").expect("a driver");
    let (name, reason) = driver.split_once(" (").expect("a reason");
    assert!(
        ["epoll", "kqueue", "uring"].contains(&name) && reason.len() > 5 && reason.ends_with(')'),
        "{driver}"
    );
    let title = format!("Shearwater {}, {name}, 2 workers\n", env!("CARGO_PKG_VERSION"));
    assert!(server.banner.starts_with(&title), "{}", server.banner);
    let descriptors = server.line("descriptors").expect("descriptors");
    assert!(descriptors.starts_with("limit ") && descriptors.ends_with(" connections"), "{descriptors}");
    assert!(server.banner.contains("Ctrl-C"), "{}", server.banner);
    // A pipe gets no colours.
    assert!(!server.banner.contains('\x1b'), "{:?}", server.banner);
    assert_eq!(server.connect().request("GET", "/", &[]).text(), "index");
}

#[test]
fn serves_with_closed_output() {
    let folder = TestFolder::new();
    folder.file("public/f.txt", "content");
    let mut server = Server::start(&folder, &[]);
    server.close_stdout();
    for _ in 0..3 {
        assert_eq!(server.connect().request("GET", "/f.txt", &[]).text(), "content");
    }
    let (_, stderr) = server.stop();
    assert!(!stderr.contains("panic"), "{stderr}");
}

#[test]
fn starts_with_closed_output() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let folder = TestFolder::new();
    let mut child = program(&folder, &["--listen", &free.to_string()]).spawn().expect("it starts");
    drop(child.stdout.take());
    let server = Server::silent(child, free);
    assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
    let (_, stderr) = server.stop();
    assert!(!stderr.contains("panic"), "{stderr}");
}

#[test]
fn fails_if_output_cannot_be_written() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        println!("skipped: there is no /dev/full");
        return;
    };
    let folder = TestFolder::new();
    folder.file("site.toml", "").file("wrong.toml", "x = 1").file("public/f.txt", "content");
    let error = "error: can't write to standard output: ";
    for arguments in [
        &["config", "default"][..],
        &["config", "show", "site.toml"],
        &["check", "site.toml"],
        &["check", "--json", "site.toml"],
        &["check", "--json", "wrong.toml"],
        &["precompress", "public"],
        &["--help"],
        &["--version"],
    ] {
        let mut command = program(&folder, arguments);
        let output = command.stdout(full.try_clone().expect("a descriptor")).output().expect("it runs");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.code() == Some(1) && stderr.starts_with(error), "{arguments:?}: {stderr}");
    }
    // A closed pipe is no error.
    let mut child = program(&folder, &["config", "default"]).stdout(Stdio::piped()).spawn().expect("it runs");
    drop(child.stdout.take());
    let Output { status, stderr, .. } = child.wait_with_output().expect("it ends");
    assert_eq!((status.code(), stderr), (Some(0), Vec::new()));
}

#[test]
fn reports_files_that_cant_be_sent() {
    for driver in ["epoll", "uring"] {
        let folder = TestFolder::new();
        folder.file("public/index.html", "index").file("public/dir/x", "x");
        let public = folder.at("public");
        let made = Command::new("mkfifo").arg(public.join("pipe")).status().expect("mkfifo is of POSIX");
        assert!(made.success());
        folder
            .link("public/out\nshearwater: forged", "/")
            .link("public/dir/index.html", "../../../etc/passwd");
        let mut server = Server::start(&folder, &["--workers", "1", "--driver", driver]);
        let mut client = server.connect();
        for (target, status) in [
            ("/none", 404),
            ("/pipe", 403),
            ("/pipe", 403),
            ("/pipe?query", 403),
            ("/.hidden", 404),
            ("/out%0Ashearwater:%20forged/etc/passwd", 403),
            ("/dir/", 403),
            ("/", 200),
        ] {
            let response = client.request("GET", target, &["Accept: text/html"]);
            assert_eq!(response.status, status, "{target}");
            assert!(!response.text().contains("passwd"), "a client sees no target: {}", response.text());
        }
        let public = public.display();
        let line = |path: &str, error: &str, more: &str| {
            format!(
                "shearwater: worker 0: can't send \"{public}/{path}\": {error}; its client got a 403{more}\n"
            )
        };
        let not_plain = "neither a file nor a directory";
        assert_eq!(server.next_line(), line("pipe", not_plain, ""));
        let leaves = |link: &str, target: &str| {
            format!(
                "the link \"{link}\" leads out of the root, to \"{target}\" (`symlinks = \"follow\"` would serve it)"
            )
        };
        let out = line("out\\nshearwater: forged/etc/passwd", &leaves("out\\nshearwater: forged", "/"), "");
        assert_eq!(server.next_line(), out);
        let index = line("dir/index.html", &leaves("dir/index.html", "../../../etc/passwd"), "");
        assert_eq!(server.next_line(), index);
        let later = [line("pipe", not_plain, " (1 more like it)")];
        assert_eq!([server.next_line()], later);
    }
}
