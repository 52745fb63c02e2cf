//! Memory: the default limit of unfinished requests, a share of the machine's memory, and what is kept of a configuration.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use crate::process::{Serving, Summary, Temporary, drivers, program, run};
use crate::system;

/// Returns the most address space that a process has had, in KiB.
fn mapped_kib(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).expect("its size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Starts the program under `ulimit -v`.
fn limited(folder: &Temporary, arguments: &[&str], kib: u64) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {kib}; exec \"$0\" \"$@\"")]);
    command.arg(program(folder.path(), arguments).get_program()).args(arguments);
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Parses the number in the line about memory.
fn bytes_of(line: Option<&str>) -> u64 {
    let line = line.expect("a line about memory");
    let number = line.strip_prefix("up to ").and_then(|rest| rest.split(' ').next()).expect(line);
    number.replace(',', "").parse().expect(line)
}

#[test]
fn refuses_partial_heads_beyond_the_memory_limit() {
    const LEFT_KIB: u64 = 128 * 1024;
    const CLIENTS: usize = 2600;
    if !system::tells() {
        return;
    }
    let folder = Temporary::new();
    for driver in drivers() {
        let arguments = ["--driver", driver, "--workers", "1", "--listen", "127.0.0.1:0"];
        let unlimited = Serving::of(&mut program(folder.path(), &arguments));
        let kib = mapped_kib(unlimited.pid()) + LEFT_KIB;
        drop(unlimited);
        let mut serving = Serving::of(&mut limited(&folder, &arguments, kib));
        let bytes = bytes_of(serving.line("memory"));
        assert!((1 << 20..LEFT_KIB * 512).contains(&bytes), "{bytes}");
        // Together they need more than the process can map.
        let part = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(59_000));
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| serving.connect()).collect();
        for client in &mut clients {
            client.send(&part);
        }
        let all = (CLIENTS * part.len()) as u64;
        let so_far = Summary::until(&mut serving, |so_far| so_far.count("bytes received") >= all);
        let refused = so_far.reached("buffered_bytes_max");
        assert!(refused > 500, "{refused} refused");
        assert_eq!(serving.connect().request("GET", "/", &[]).status, 200);
    }
}

#[test]
fn the_limit_is_reported_and_can_be_set() {
    let folder = Temporary::new();
    folder.file("site.toml", "[limits]\nbuffered_bytes_max = 1000000\n[server]\nworkers = 1\n");
    folder.file("default.toml", "[server]\nworkers = 1\n");
    let serving = Serving::start(folder.path(), &["--config", "site.toml"]);
    assert_eq!(bytes_of(serving.line("memory")), 1_000_000);
    for (file, wanted) in [("site.toml", "1,000,000"), ("default.toml", "")] {
        let (code, text, _) = run(folder.path(), &["check", file]);
        let line = text.lines().find(|line| line.trim_start().starts_with("memory ")).expect("a line");
        assert!(code == 0 && line.contains(&format!("up to {wanted}")), "{text}");
    }
}

#[test]
fn keeps_no_memory_of_the_parsed_configuration() {
    const ROUTES: u64 = 20_000;
    let folder = Temporary::new();
    folder.file("www/index.html", "index");
    let mut config = String::new();
    for site in 0..ROUTES / 100 {
        config += &format!("[[site]]\nhosts = [\"{site}.test\"]\nroot = \"www\"\n");
        (0..100).for_each(|route| config += &format!("[[site.route]]\npath = \"/part-{route}/*\"\n"));
    }
    folder.file("site.toml", config);
    let rss_kib = |arguments: &[&str]| {
        let serving = Serving::start(folder.path(), arguments);
        assert_eq!(serving.connect().request("GET", "/", &[]).status, 200);
        testkit::process::rss_kib(serving.pid().as_raw_nonzero().get().unsigned_abs())
    };
    let (Some(plain), Some(configured)) = (rss_kib(&["www"]), rss_kib(&["--config", "site.toml"])) else {
        return;
    };
    // Parsed, a route takes 2 KiB.
    assert!(configured < plain + ROUTES / 2, "{plain} KiB, {configured} KiB with {ROUTES} routes");
}
