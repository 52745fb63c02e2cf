//! Serving with a configuration file: relative paths, flags that override it, environment variables; the specified file, which every
//! version must load unchanged.

use rustix::process::{Resource, Signal, getrlimit};

use crate::client::Client;
use crate::keys::{SITE, folder};
use crate::process::{Serving, Temporary, drivers, has_proc, program, run, threads};

#[test]
fn resolves_roots_against_the_folder_of_the_file() {
    let folder = Temporary::new();
    folder.file("conf/www/f.txt", "content").file("conf/site.toml", SITE);
    let serving = Serving::start(&folder, &["--config", "conf/site.toml"]);
    assert_eq!(serving.line("serves"), folder.path().join("conf/www").to_str());
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "content");
    // Without a site: the folder `public` beside the file, or that of the command line.
    folder.file("conf/public/f.txt", "public").file("conf/none.toml", "").file("other/f.txt", "other");
    let serving = Serving::start(&folder, &["--config", "conf/none.toml"]);
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "public");
    let serving = Serving::start(&folder, &["other", "--config", "conf/none.toml"]);
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "other");
    let (code, _, stderr) = run(&folder, &["other", "--config", "conf/site.toml"]);
    assert_eq!(code, 2);
    let expected =
        "error: both the folder other and the sites of conf/site.toml are given\nhelp: name one of both\n";
    assert_eq!(stderr, expected);
}

#[test]
fn flags_override_the_file_and_are_reported() {
    let folder = folder(&format!("[server]\nworkers = 3\ndrain_timeout = 5\n{SITE}"));
    let serving = Serving::start(&folder, &["--config", "site.toml", "--workers", "2"]);
    assert_eq!(
        (serving.line("workers"), serving.line("flag")),
        (Some("2"), Some("--workers 2 overrides server.workers = 3"))
    );
    // Keys that the file doesn't have, or has with the same value, are not reported.
    let serving =
        Serving::start(&folder, &["--config", "site.toml", "--workers", "3", "--drain", "5", "--pin"]);
    assert_eq!((serving.line("workers"), serving.line("flag")), (Some("3"), None));
}

#[test]
fn substitutes_environment_variables() {
    let folder = folder(
        "[[site]]\nroot = \"${SHEARWATER_TEST_ROOT:-www}\"\n\
         headers = { set = { X-Key = \"a ${SHEARWATER_TEST_KEY} b\", X-Plain = \"$${SHEARWATER_TEST_KEY}\" } }\n",
    );
    folder.file("other/f.txt", "other content");
    let arguments = ["--config", "site.toml", "--listen", "127.0.0.1:0"];
    for (root, content) in [("", "content"), ("other", "other content")] {
        let mut command = program(&folder, &arguments);
        command.env("SHEARWATER_TEST_KEY", "hunter2").env("SHEARWATER_TEST_ROOT", root);
        let serving = Serving::of(&mut command);
        let response = serving.connect().request("GET", "/f.txt", &[]);
        assert_eq!((response.text(), response.field("X-Key")), (content, Some("a hunter2 b")));
        assert_eq!(response.field("X-Plain"), Some("${SHEARWATER_TEST_KEY}"));
        assert!(!serving.banner.contains("hunter2"), "{}", serving.banner);
    }
    let mut command = program(&folder, &["config", "show", "site.toml"]);
    let printed = command.env("SHEARWATER_TEST_KEY", "hunter2").output().expect("it runs");
    let printed = String::from_utf8(printed.stdout).expect("UTF-8");
    assert!(printed.contains("a ${SHEARWATER_TEST_KEY} b") && !printed.contains("hunter2"), "{printed}");
}

const SPECIFIED: &str = include_str!("specified.toml");

#[test]
fn loads_the_specified_file() {
    let folder = Temporary::new();
    folder.file("public/f.txt", "content").file("specified.toml", SPECIFIED);
    for driver in drivers() {
        let mut command = program(&folder, &["--config", "specified.toml", "--driver", driver]);
        match Serving::try_start(&mut command) {
            Ok(serving) => {
                let mut client = Client::connect(([127, 0, 0, 1], 8080).into());
                assert_eq!(client.request("GET", "/f.txt", &[]).text(), "content");
                assert_eq!(serving.line("workers"), Some("32"));
            }
            Err((code, stderr)) => {
                let taken = "8080 is taken by another program: choose another port, or end that program";
                assert!(code == Some(2) && stderr.contains(taken), "{stderr}");
                println!("skipped: port 8080 is taken");
            }
        }
    }
}

#[test]
fn the_specified_file_takes_effect() {
    let folder = folder(&format!("{SPECIFIED}{SITE}"));
    for driver in drivers() {
        let serving = Serving::start(&folder, &["site.toml", "--driver", driver]);
        assert_eq!(serving.line("workers"), Some("32"));
        let overrides = |at: &str| format!("--listen 127.0.0.1:0 overrides the address {at}:8080\n");
        let banner = &serving.banner;
        assert!(banner.contains(&overrides("[::]")) || banner.contains(&overrides("0.0.0.0")), "{banner}");
        // The kernel allows fewer descriptors than connections, and a shorter accept queue.
        let limited =
            |limit: &str| banner.lines().any(|line| line.contains("limited") && line.contains(limit));
        assert!(limited("connections: 2") || descriptors() > 2_300_000, "{banner}");
        assert!(limited("accept queue: 65") || somaxconn() >= 65_535, "{banner}");
        if has_proc() {
            let workers =
                threads(serving.pid()).iter().filter(|thread| thread.name.starts_with("worker-")).count();
            assert_eq!(workers, 32);
        }
        let mut client = serving.connect();
        assert_eq!(client.request("GET", "/f.txt", &[]).text(), "content");
        serving.signal(Signal::TERM);
        let (code, _, stderr) = serving.end();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "level error logs no normal operation");
    }
}

fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

fn somaxconn() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    text.trim().parse().unwrap_or(u64::MAX)
}
