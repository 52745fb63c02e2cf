//! What the lab needs besides itself: what is there, and how to get what is not.

use std::path::Path;

use crate::machine;
use crate::report::align;

/// A program that the lab runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub program: &'static str,
    /// What asks it for its version.
    pub version_argument: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// How to get it.
    pub how: &'static str,
    /// Whether nothing can be compared without it.
    pub needed: bool,
}

/// All of them.
pub const TOOLS: &[Tool] = &[
    Tool {
        program: "taskset",
        version_argument: "--version",
        about: "server and client on cores of their own",
        how: "apt-get install util-linux",
        needed: true,
    },
    Tool {
        program: "wrk",
        version_argument: "-v",
        about: "the load, but for churn and varied",
        how: "apt-get install wrk",
        needed: true,
    },
    Tool {
        program: "perf",
        version_argument: "--version",
        about: "system calls per response",
        how: "apt-get install linux-perf, as root or with kernel.perf_event_paranoid at -1",
        needed: false,
    },
    Tool {
        program: "nginx",
        version_argument: "-v",
        about: "peer `nginx`",
        how: "apt-get install nginx-light",
        needed: false,
    },
    Tool {
        program: "lighttpd",
        version_argument: "-v",
        about: "peer of the bar's table",
        how: "apt-get install lighttpd",
        needed: false,
    },
    Tool {
        program: "h2o",
        version_argument: "--version",
        about: "peer of the bar's table",
        how: "apt-get install h2o",
        needed: false,
    },
    Tool {
        program: "static-web-server",
        version_argument: "--version",
        about: "peer of the bar's table",
        how: "cargo install --locked static-web-server",
        needed: false,
    },
];

/// The table of tools, and whether all that is needed is there.
pub fn check() -> (String, bool) {
    let mut rows = vec![["program", "for", "state"].map(str::to_owned)];
    let mut ready = true;
    for tool in TOOLS {
        let found = machine::lookup(Path::new(tool.program));
        ready &= found.is_some() || !tool.needed;
        let state = match found {
            Some(path) => machine::version(&path, tool.version_argument),
            None => format!("MISSING: {}", tool.how),
        };
        rows.push([tool.program.to_owned(), tool.about.to_owned(), state]);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    ready &= cores > 1;
    let cores = format!("\n{cores} cores; two are needed, one for the server and one for the client\n");
    (align(&rows) + &cores, ready)
}

/// The version of a peer, asked as its line in the table says.
pub fn version_of(program: &Path) -> String {
    let tool = TOOLS.iter().find(|tool| Path::new(tool.program) == program);
    machine::version(program, tool.map_or("--version", |tool| tool.version_argument))
}
