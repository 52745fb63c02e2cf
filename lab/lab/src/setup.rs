//! What the lab needs besides itself: what is there, and how to get what is not.

use std::path::{Path, PathBuf};

use crate::machine;
use crate::peers::{self, lock, static_web_server};
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

const BUILD: &str = "cargo lab setup --build-peers";

/// Programs of the system, and the one that is installed from its crate.
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
        program: "valgrind",
        version_argument: "--version",
        about: "instructions per request, by `lab sites`",
        how: "apt-get install valgrind",
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
        about: "peer `lighttpd`",
        how: "apt-get install lighttpd",
        needed: false,
    },
    Tool {
        program: "h2o",
        version_argument: "--version",
        about: "peer `h2o`",
        how: "apt-get install h2o",
        needed: false,
    },
    Tool {
        program: "static-web-server",
        version_argument: "-V",
        about: "peer `static-web-server`",
        how: BUILD,
        needed: false,
    },
];

/// Programs of the peers' workspace: name, what each is for, and the packages that make it.
const BUILT: &[(&str, &str, &[&str])] = &[
    ("peer-hyper", "peer `hyper`", &["hyper", "tokio"]),
    ("peer-axum", "peer `axum`", &["axum", "hyper", "tokio"]),
    ("peer-ours-axum", "`shearwater-axum`", &["axum", "tokio"]),
    ("peer-servedir", "peer `servedir`", &["tower-http", "axum", "hyper", "tokio"]),
];

/// The table of tools, and whether all that is needed is there.
pub fn check() -> (String, bool) {
    let mut rows = vec![["program", "for", "state"].map(str::to_owned)];
    let mut ready = true;
    for tool in TOOLS {
        let found = machine::lookup(&path_of(tool));
        ready &= found.is_some() || !tool.needed;
        let state = match found {
            Some(path) => machine::version(&path, tool.version_argument),
            None => format!("MISSING: {}", tool.how),
        };
        rows.push([tool.program.to_owned(), tool.about.to_owned(), state]);
    }
    for (program, about, packages) in BUILT {
        let found = machine::lookup(&peers::built(program)).is_some();
        let state = if found { lock::versions(packages) } else { format!("MISSING: {BUILD}") };
        rows.push([(*program).to_owned(), (*about).to_owned(), state]);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    ready &= cores > 1;
    let commands = peers::build_commands().map(|arguments| format!("  cargo {}\n", arguments.join(" ")));
    let text = format!(
        "\n{cores} cores; two are needed, one for the server and one for the client\n\n`{BUILD}` runs\n{}",
        commands.concat()
    );
    (align(&rows) + &text, ready)
}

fn path_of(tool: &Tool) -> PathBuf {
    if tool.program == "static-web-server" { static_web_server::program() } else { tool.program.into() }
}

/// The version of a peer, asked as its line in the table says.
pub fn version_of(program: &Path) -> String {
    let name = program.file_name().map_or(program, Path::new);
    let tool = TOOLS.iter().find(|tool| Path::new(tool.program) == name);
    let said = machine::lookup(program)
        .map(|path| machine::version(&path, tool.map_or("--version", |tool| tool.version_argument)));
    said.unwrap_or_else(|| "not found".to_owned())
}
