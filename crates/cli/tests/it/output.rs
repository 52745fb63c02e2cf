//! Closed standard output doesn't stop the server. A result that can't be written is an error.

use std::fs::File;
use std::net::TcpListener;
use std::process::{Output, Stdio};

use rustix::process::Signal;

use crate::folder::Temporary;
use crate::process::{Serving, just, program};

#[test]
fn serves_with_closed_output() {
    let folder = Temporary::new();
    folder.file("public/f.txt", "content");
    let mut serving = Serving::start(folder.path(), &[]);
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
    let mut child = program(folder.path(), &["--listen", &free.to_string()]).spawn().expect("it starts");
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
        let mut command = just(folder.path(), arguments);
        let output = command.stdout(full.try_clone().expect("a descriptor")).output().expect("it runs");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.code() == Some(1) && stderr.starts_with(said), "{arguments:?}: {stderr}");
    }
    // A closed pipe is no error.
    let mut child =
        just(folder.path(), &["config", "default"]).stdout(Stdio::piped()).spawn().expect("it runs");
    drop(child.stdout.take());
    let Output { status, stderr, .. } = child.wait_with_output().expect("it ends");
    assert_eq!((status.code(), stderr), (Some(0), Vec::new()));
}
