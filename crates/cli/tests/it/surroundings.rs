//! Surroundings that a parent or a sandbox makes: refused system calls, limits, blocked and ignored signals.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use testkit::TestFolder;

use crate::process::{Server, drivers, program_after, program_under};

/// Starts a program under a seccomp filter.
const SANDBOX: &str = include_str!("sandbox.py");

/// Calls that the server can do without, each alone.
const REFUSED: &str = "sched_getaffinity statx openat2 io_uring_setup membarrier getrandom prctl inotify_init1 timerfd_create \
                       sysinfo rt_sigprocmask preadv2 fchmod mremap fstatfs close_range getsockopt sigaltstack uname";

/// Returns a server in a sandbox that refuses these calls with this error, or `None` if there is no sandbox here.
fn sandboxed(folder: &TestFolder, errno: i32, refused: &str, arguments: &[&str]) -> Option<Server> {
    folder.file("sandbox.py", SANDBOX);
    let errno = errno.to_string();
    let launcher = ["python3", "sandbox.py", &errno, refused];
    match Server::try_start(&mut program_under(&launcher, folder, arguments)) {
        Ok(server) => Some(server),
        Err((Some(77 | 126 | 127), _)) => {
            println!("skipped: there is no Python, or no seccomp");
            None
        }
        Err(ended) => panic!("{refused} refused with {errno}: {ended:?}"),
    }
}

/// Returns whether a program can be started.
fn has(program: &str, argument: &str) -> bool {
    let is_there = Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: there is no {program} {argument}");
    }
    is_there
}

/// Returns the children of a process, also those that nobody has waited for.
fn children(process: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    list.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

fn site() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("site/index.html", "index");
    folder
}

#[test]
fn a_hidden_descriptor_limit_is_assumed() {
    let folder = site();
    if !has("python3", "--version") {
        return;
    }
    for errno in [1, 38] {
        for driver in drivers() {
            let arguments =
                ["site", "--listen", "127.0.0.1:0", "--driver", driver, "--admin", "127.0.0.1:0", "-v"];
            let Some(server) = sandboxed(&folder, errno, "prlimit64", &arguments) else { return };
            let limit = server.line("descriptors").expect("a line");
            assert!(limit.starts_with("limit hidden by the system, 1,024 assumed: up to "), "{limit}");
            let admin = server.line("admin").expect("a line");
            let address = admin.trim_start_matches("http://").trim_end_matches("/status");
            let metrics = testkit::TestClient::connect_in_clear(address.parse().expect("an address"))
                .request("GET", "/metrics", &[])
                .body;
            let metrics = String::from_utf8(metrics).expect("text");
            assert!(metrics.contains("\nprocess_open_fds "), "{metrics}");
            assert!(!metrics.contains("\nprocess_max_fds "), "{metrics}");
            server.stop();
        }
    }
}

#[test]
fn serves_without_each_call_that_it_can_do_without() {
    let folder = site();
    if !has("python3", "--version") {
        return;
    }
    for refused in REFUSED.split_whitespace() {
        let arguments = ["site", "--listen", "127.0.0.1:0", "--access-log", "log", "--workers", "1"];
        let Some(server) = sandboxed(&folder, 1, refused, &arguments) else { return };
        assert_eq!(server.connect().request("GET", "/", &[]).body, b"index", "{refused}");
        server.stop();
    }
}

#[test]
fn a_limit_of_file_sizes_fails_the_log_and_not_the_server() {
    let folder = site();
    for driver in drivers() {
        let arguments = ["site", "--listen", "127.0.0.1:0", "--driver", driver, "--access-log", "log"];
        drop(fs::remove_file(folder.at("log")));
        // One block of 512 bytes, or of 1 KiB.
        let mut server = Server::of(&mut program_after("ulimit -f 1", &folder, &arguments));
        let mut client = server.connect();
        for _ in 0..40 {
            assert_eq!(client.request("GET", "/", &[]).status, 200);
        }
        let line = server.next_line();
        assert!(line.contains("can't write the access log log: ") && line.contains("ulimit -f"), "{line}");
        // A rotation makes room.
        fs::rename(folder.at("log"), folder.at("log.1")).expect("renamed");
        server.signal(Signal::USR1);
        assert_eq!(client.request("GET", "/", &[]).status, 200);
        while !server.next_line().contains("is written again") {}
        server.signal(Signal::TERM);
        assert_eq!(server.end().0, Some(0));
    }
}

#[test]
fn handles_signals_that_its_parent_blocks_or_ignores() {
    let folder = site();
    if !has("env", "--block-signal=TERM") {
        return;
    }
    for set in ["--block-signal", "--ignore-signal=CHLD,PIPE,TERM,INT,USR1"] {
        for signal in [Signal::TERM, Signal::INT] {
            let arguments = ["site", "--listen", "127.0.0.1:0"];
            let server = Server::of(&mut program_under(&["env", set], &folder, &arguments));
            assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
            server.signal(signal);
            assert_eq!(server.end().0, Some(0), "{set}");
        }
    }
}

/// Starts the server as process 1, and lets it adopt processes that end.
#[test]
fn reaps_orphans_as_process_1() {
    let folder = site();
    let unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];
    if !Command::new(unshare[0]).args(&unshare[1..]).arg("true").status().is_ok_and(|status| status.success())
    {
        println!("skipped: there are no namespaces here");
        return;
    }
    // The shell becomes the server and leaves it a child, whose own child ends later as an orphan.
    let script = "(sleep 0 & exec true) & exec \"$0\" \"$@\"";
    let launcher = [&unshare[..], &["sh", "-c", script]].concat();
    let server = Server::of(&mut program_under(&launcher, &folder, &["site", "--listen", "127.0.0.1:0"]));
    let start = std::time::Instant::now();
    let own = children(server.pid().as_raw_nonzero().get());
    let orphans = || own.iter().copied().flat_map(children).collect::<Vec<_>>();
    assert_eq!(own.len(), 1, "the server");
    while !orphans().is_empty() {
        assert!(start.elapsed() < testkit::TIMEOUT, "zombies remain: {:?}", orphans());
        std::thread::yield_now();
    }
}
