//! The process's panic hook. Has no test harness, which installs a hook too; it runs itself as the process that panics.

use std::env;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::panic;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use shearwater::{App, Request, Response, Server, get};

/// Selects the role of the process.
const ROLE: &str = "SHEARWATER_PANIC_HOOK_ROLE";
const PANICS: usize = 5;

/// Number of calls of the program's own hook.
static CALLS: AtomicUsize = AtomicUsize::new(0);

type Test = (&'static str, fn());

fn main() {
    if let Ok(role) = env::var(ROLE) {
        return serve(&role);
    }
    let tests: [Test; 2] = [
        ("the standard library prints a place once a second", std_prints_once),
        ("a hook of the program is called for each panic", own_hook_is_called),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
    println!("test result: ok. {} passed", tests.len());
}

fn std_prints_once() {
    let (stdout, stderr) = in_role("std");
    assert_eq!(stdout, "0 calls\n", "{stderr}");
    let printed = |text: &str| stderr.lines().filter(|line| *line == text).count();
    assert!((1..PANICS).contains(&printed("asked to")), "{stderr}");
    assert_eq!((printed("asked to elsewhere"), printed("no worker")), (1, 1), "{stderr}");
}

fn own_hook_is_called() {
    let (stdout, stderr) = in_role("own");
    assert_eq!(stdout, format!("{} calls\n", PANICS + 2));
    assert!(!stderr.contains("panicked at"), "{stderr}");
}

/// Runs this program in a role.
fn in_role(role: &str) -> (String, String) {
    let program = env::current_exe().expect("this program is a file");
    let Output { status, stdout, stderr } =
        Command::new(program).env(ROLE, role).output().expect("it can be started again");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(status.success(), "{role}: {stderr}");
    (stdout, stderr)
}

fn serve(role: &str) {
    if role == "own" {
        panic::set_hook(Box::new(|_| {
            CALLS.fetch_add(1, Ordering::Relaxed);
        }));
    }
    let app = App::new()
        .route("/panic", get(|_: &Request, _: &mut Response| panic!("asked to")))
        .route("/elsewhere", get(|_: &Request, _: &mut Response| panic!("asked to elsewhere")));
    let running = Server::bind("127.0.0.1:0").workers(1).start(app).expect("starts");
    for _ in 0..PANICS {
        assert_500(running.address(), "/panic");
    }
    assert_500(running.address(), "/elsewhere");
    let other = thread::spawn(|| panic!("no worker"));
    assert!(other.join().is_err());
    println!("{} calls", CALLS.load(Ordering::Relaxed));
}

fn assert_500(address: SocketAddr, path: &str) {
    let mut stream = TcpStream::connect(address).expect("connects");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").expect("is sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("UTF-8");
    assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
}
