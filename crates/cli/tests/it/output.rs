//! Standard output and standard error: the start report, closed outputs, messages about files.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;

use crate::process::{Serving, Temporary, program};

#[test]
fn prints_the_start_report() {
    let folder = Temporary::new();
    folder.file("site/index.html", "index");
    let serving = Serving::start(&folder, &["site", "--workers", "2"]);
    let title = format!("Shearwater {}\n", env!("CARGO_PKG_VERSION"));
    assert!(serving.banner.starts_with(&title), "{}", serving.banner);
    assert_ne!(serving.address().port(), 0);
    assert_eq!(serving.line("serves"), folder.path().join("site").to_str());
    assert_eq!(serving.line("workers"), Some("2"));
    let driver = serving.line("driver").expect("a driver");
    let (name, reason) = driver.split_once(" (").expect("a reason");
    assert!(
        ["epoll", "kqueue", "uring"].contains(&name) && reason.len() > 5 && reason.ends_with(')'),
        "{driver}"
    );
    let descriptors = serving.line("descriptors").expect("descriptors");
    assert!(descriptors.starts_with("limit ") && descriptors.ends_with(" connections"), "{descriptors}");
    assert!(serving.banner.contains("Ctrl-C"), "{}", serving.banner);
    assert_eq!(serving.connect().request("GET", "/", &[]).text(), "index");
}

#[test]
fn prints_no_colours_to_a_pipe() {
    let folder = Temporary::new();
    for no_color in [None, Some(""), Some("1")] {
        let mut command = program(&folder, &["--listen", "127.0.0.1:0"]);
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let serving = Serving::of(&mut command);
        assert!(!serving.banner.contains('\x1b'), "NO_COLOR={no_color:?}: {:?}", serving.banner);
    }
}

#[test]
fn serves_with_closed_output() {
    let folder = Temporary::new();
    folder.file("public/f.txt", "content");
    let mut serving = Serving::start(&folder, &[]);
    serving.close_stdout();
    for _ in 0..3 {
        assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "content");
    }
    serving.signal(Signal::TERM);
    let (code, _, stderr) = serving.end();
    assert_eq!((code, stderr.contains("panic")), (Some(0), false), "{stderr}");
}

#[test]
fn starts_with_closed_output() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let folder = Temporary::new();
    let mut child = program(&folder, &["--listen", &free.to_string()]).spawn().expect("it starts");
    drop(child.stdout.take());
    let serving = Serving::silent(child, free);
    assert_eq!(serving.connect().request("GET", "/", &[]).status, 200);
    serving.signal(Signal::TERM);
    let (code, _, stderr) = serving.end();
    assert_eq!((code, stderr.contains("panic")), (Some(0), false), "{stderr}");
}

#[test]
fn fails_if_output_cannot_be_written() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        println!("skipped: there is no /dev/full");
        return;
    };
    let folder = Temporary::new();
    folder.file("site.toml", "").file("wrong.toml", "x = 1").file("public/f.txt", "content");
    let said = "error: can't write to standard output: ";
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
        assert!(output.status.code() == Some(1) && stderr.starts_with(said), "{arguments:?}: {stderr}");
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
        let folder = Temporary::new();
        folder.file("public/index.html", "index").file("public/dir/x", "x");
        let public = folder.path().join("public");
        let made = Command::new("mkfifo").arg(public.join("pipe")).status().expect("mkfifo is of POSIX");
        assert!(made.success());
        symlink("/", public.join("out\nshearwater: forged")).expect("a link");
        symlink("../../../etc/passwd", public.join("dir/index.html")).expect("a link");
        let mut serving = Serving::start(&folder, &["--workers", "1", "--driver", driver]);
        let mut client = serving.connect();
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
            assert_eq!(client.request("GET", target, &[]).status, status, "{target}");
        }
        let public = public.display();
        let line = |path: &str, error: &str, more: &str| {
            format!(
                "shearwater: worker 0: can't send \"{public}/{path}\": {error}; its client got a 403{more}\n"
            )
        };
        let not_plain = "neither a file nor a directory";
        assert_eq!(serving.hear(), line("pipe", not_plain, ""));
        let out = line("out\\nshearwater: forged/etc/passwd", "leaves the root", "");
        assert_eq!(serving.hear(), out);
        let later =
            [line("pipe", not_plain, " (1 more like it)"), line("dir/index.html", "leaves the root", "")];
        assert_eq!([serving.hear(), serving.hear()], later);
    }
}
