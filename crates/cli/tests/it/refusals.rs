//! What it can't start with: one sentence on standard error, nothing on standard output, exit code 2.

use std::net::TcpListener;

use crate::folder::Temporary;
use crate::process::{Serving, run};

/// The sentence of a refusal.
#[track_caller]
fn refused(folder: &Temporary, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = run(folder.path(), arguments);
    assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
    let sentence = stderr.strip_prefix("shearwater: ").and_then(|rest| rest.strip_suffix('\n'));
    let sentence = sentence.unwrap_or_else(|| panic!("{arguments:?}: no sentence: {stderr:?}"));
    assert!(!sentence.contains('\n') && !sentence.contains("Error"), "{arguments:?}: {sentence}");
    sentence.to_owned()
}

/// What the reader of arguments says.
#[track_caller]
fn misread(folder: &Temporary, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = run(folder.path(), arguments);
    assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains("--help"), "{stderr}");
    assert!(!stderr.contains('\x1b'), "{stderr:?}");
    stderr
}

#[test]
fn a_taken_port() {
    let folder = Temporary::new();
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = Serving::start(folder.path(), &["--workers", "1"]);
    let several = Serving::start(folder.path(), &["--workers", "4"]);
    for address in [held.local_addr().expect("an address"), one.address(), several.address()] {
        for workers in ["1", "3"] {
            let sentence = refused(&folder, &["--listen", &address.to_string(), "--workers", workers]);
            assert_eq!(
                sentence,
                format!("{address} is taken by another program: choose another port, or end that program")
            );
        }
    }
    for serving in [one, several] {
        assert_eq!(serving.connect().request("GET", "/", &[]).status, 200);
    }
}

#[test]
fn a_folder_that_can_not_be_served() {
    let folder = Temporary::new();
    folder.file("f.txt", "a file");
    assert_eq!(refused(&folder, &["none"]), "there is no folder none: name one that exists");
    assert!(refused(&folder, &["f.txt/x"]).contains("f.txt/x"));
}

#[test]
fn an_address_that_is_none() {
    let folder = Temporary::new();
    for address in ["127.0.0.1:99999", "127.0.0.1:http"] {
        let sentence = refused(&folder, &["--listen", address]);
        assert!(
            sentence.contains(&format!("{address:?}")) && sentence.contains("127.0.0.1:8080"),
            "{sentence}"
        );
    }
    let sentence = refused(&folder, &["--listen", "192.0.2.1:0"]);
    assert!(sentence.starts_with("can't listen on 192.0.2.1:0: "), "{sentence}");
}

#[test]
fn a_driver_that_is_not_there() {
    let folder = Temporary::new();
    let serving = Serving::start(folder.path(), &["--driver", "auto"]);
    let driver = serving.line("driver").expect("a driver");
    let (found, reason) = driver.split_once(' ').expect("a reason");
    let is_there = |name: &str| name == found || reason.contains(&format!("--driver {name}"));
    for driver in ["epoll", "kqueue", "uring"].into_iter().filter(|name| !is_there(name)) {
        let sentence = refused(&folder, &["--driver", driver]);
        assert!(sentence.starts_with(&format!("driver {driver} isn't there: ")), "{sentence}");
        assert!(sentence.contains("--driver auto"), "{sentence}");
    }
    let said = misread(&folder, &["--driver", "epol"]);
    assert!(said.contains("epoll") && said.contains("uring") && said.contains("auto"), "{said}");
}

#[test]
fn numbers_that_are_none() {
    let folder = Temporary::new();
    for workers in ["-1", "1025", "many", "", "1.5", "99999999999999999999"] {
        let said = misread(&folder, &[&format!("--workers={workers}")]);
        assert!(said.contains("--workers"), "{said}");
    }
    for drain in ["-1", "4294967296", "long"] {
        assert!(misread(&folder, &[&format!("--drain={drain}")]).contains("--drain"));
    }
}

#[test]
fn flags_that_are_unknown_or_incomplete() {
    let folder = Temporary::new();
    for (given, meant) in [("--listne", "--listen"), ("--worker", "--workers"), ("--drian", "--drain")] {
        let said = misread(&folder, &[given, "1"]);
        assert!(said.contains(given) && said.contains(meant), "{said}");
    }
    assert!(misread(&folder, &["--listen"]).contains("--listen"));
    assert!(misread(&folder, &["--pin=yes"]).contains("--pin"));
}
