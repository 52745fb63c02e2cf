//! Circumstances of a result besides the servers: machine, kernel, versions, installed tools.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::programs::{lookup, root};
use crate::server;

/// Programs of the system: name, purpose, installation, and true if nothing can be compared without it.
const TOOLS: [(&str, &str, &str, bool); 5] = [
    ("taskset", "server and client on cores of their own", "apt-get install util-linux", true),
    ("setpriv", "programs that end with the lab", "apt-get install util-linux", true),
    ("perf", "system calls", "apt-get install linux-perf; kernel.perf_event_paranoid = -1, or root", false),
    ("valgrind", "instructions", "apt-get install valgrind", false),
    ("h2load", "a second client", "apt-get install nghttp2-client", false),
];

pub(crate) const MISSING: &str = "MISSING";

/// Describes the machine.
pub(crate) fn describe() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map_or_else(String::new, |line| line.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    json!({
        "cpu": field(&read("/proc/cpuinfo"), "model name"),
        "cores": cores(),
        "memory": field(&read("/proc/meminfo"), "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "load_at_end": read("/proc/loadavg"),
        "somaxconn": read("/proc/sys/net/core/somaxconn"),
        "rmem_max": read("/proc/sys/net/core/rmem_max"),
        "tcp_congestion_control": read("/proc/sys/net/ipv4/tcp_congestion_control"),
    })
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the table of tools, and true if all that is needed is there.
pub(crate) fn tools() -> (Vec<[String; 5]>, bool) {
    let (mut rows, mut is_ready) = (Vec::new(), cores() > 1);
    for (name, about, how, is_needed) in TOOLS {
        let found = lookup(Path::new(name));
        is_ready &= found.is_some() || !is_needed;
        let state = found.map_or_else(|| MISSING.to_owned(), |path| path.display().to_string());
        rows.push([name, about, &state, "", how].map(str::to_owned));
    }
    (rows, is_ready)
}

/// Returns the table of tools and peers, and true if all that is needed is there.
pub(crate) fn setup() -> Result<(Vec<[String; 5]>, bool), String> {
    let mut rows = vec![["program", "for", "state", "released", "how to install"].map(str::to_owned)];
    let (tools, is_ready) = tools();
    rows.extend(tools);
    let servers = server::all()?.iter().filter(|spec| spec.is_foreign() && !spec.about.is_empty());
    for spec in servers {
        let (is_there, version) = (lookup(&spec.path_of_foreign()).is_some(), spec.foreign_version());
        let age = if is_there { spec.age(&version) } else { String::new() };
        let state = if is_there { &version } else { MISSING };
        rows.push([&spec.program, &spec.name, state, &age, spec.installation()].map(str::to_owned));
    }
    let state = format!("{}; two are needed, one for the server and one for the client", cores());
    rows.push(["cores", "", &state, "", ""].map(str::to_owned));
    Ok((rows, is_ready))
}

/// Returns a hash of the checkout's changes since its commit.
pub(crate) fn changes() -> String {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["diff", "HEAD", "--", ".", ":!lab/results", ":!lab/records"]);
    let diff = git.output().map(|output| output.stdout).unwrap_or_default();
    Sha256::digest(diff).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the checkout's commit, marked if files differ from it.
pub(crate) fn commit() -> String {
    commit_in(&root())
}

pub(crate) fn commit_in(sources: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(sources).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    // Results and records are no sources.
    let is_changed = git(&["status", "--porcelain", "--", ".", ":!lab/results", ":!lab/records"])
        .is_some_and(|status| !status.is_empty());
    if is_changed { commit + " with changes" } else { commit }
}
