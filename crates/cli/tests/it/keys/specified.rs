//! The specified configuration file, which every version must load unchanged.

use rustix::process::{Resource, Signal, getrlimit};

use super::{SITE, folder};
use crate::process::{Serving, Temporary, drivers, just};
use crate::system;

const SPECIFIED: &str = include_str!("specified.toml");

#[test]
fn loads_the_specified_file() {
    let folder = Temporary::new();
    folder.file("public/f.txt", "content").file("specified.toml", SPECIFIED);
    for driver in drivers() {
        let mut command = just(folder.path(), &["--config", "specified.toml", "--driver", driver]);
        match Serving::try_start(&mut command) {
            Ok(serving) => {
                let mut client = crate::client::Client::connect(([127, 0, 0, 1], 8080).into());
                assert_eq!(client.request("GET", "/f.txt", &[]).text(), "content");
                assert_eq!(serving.line("workers"), Some("32"));
            }
            Err((code, said)) => {
                let taken = "8080 is taken by another program: choose another port, or end that program";
                assert!(code == Some(2) && said.contains(taken), "{said}");
                println!("skipped: port 8080 is taken");
            }
        }
    }
}

/// All that can be seen at once; what each key alone does is shown elsewhere.
#[test]
fn the_specified_file_takes_effect() {
    let folder = folder(&format!("{SPECIFIED}{SITE}"));
    for driver in drivers() {
        let arguments = ["--config", "site.toml", "--listen", "127.0.0.1:0", "--driver", driver];
        let serving = Serving::of(&mut just(folder.path(), &arguments));
        assert_eq!(serving.line("workers"), Some("32"));
        let overrides = |at: &str| format!("--listen 127.0.0.1:0 overrides the address {at}:8080\n");
        let banner = &serving.banner;
        assert!(banner.contains(&overrides("[::]")) || banner.contains(&overrides("0.0.0.0")), "{banner}");
        // The kernel allows fewer descriptors than connections, and a shorter accept queue.
        let limited = |what: &str| banner.lines().any(|line| line.contains("limited") && line.contains(what));
        assert!(limited("connections: 2") || descriptors() > 2_300_000, "{banner}");
        assert!(limited("accept queue: 65") || somaxconn() >= 65_535, "{banner}");
        if system::tells() {
            let workers = system::threads(serving.pid())
                .iter()
                .filter(|thread| thread.name.starts_with("worker-"))
                .count();
            assert_eq!(workers, 32);
        }
        let mut client = serving.connect();
        assert_eq!(client.request("GET", "/f.txt", &[]).text(), "content");
        serving.signal(Signal::TERM);
        let (code, _, stderr) = serving.end();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "what it does is not said at level error");
    }
}

fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

fn somaxconn() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    text.trim().parse().unwrap_or(u64::MAX)
}
