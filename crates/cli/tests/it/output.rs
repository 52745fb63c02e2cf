//! Standard output that nobody reads is no reason not to serve.

use std::net::TcpListener;

use rustix::process::Signal;

use crate::folder::Temporary;
use crate::process::{Serving, program};

#[test]
fn it_serves_on_when_its_output_is_closed() {
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
fn it_starts_with_nobody_to_tell() {
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
