//! Circumstances of a result besides the servers: machine, kernel, versions, installed tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::peers;
use crate::report::align;

const DAY_S: u64 = 24 * 60 * 60;
const BUILD: &str = "cargo lab setup --build-peers";
/// Programs of the system: name, purpose, installation, and true if nothing can be compared without it.
const TOOLS: [(&str, &str, &str, bool); 8] = [
    ("taskset", "server and client on cores of their own", "apt-get install util-linux", true),
    ("wrk", "the load of most scenarios", "apt-get install wrk", true),
    (
        "perf",
        "system calls per response",
        "apt-get install linux-perf; kernel.perf_event_paranoid = -1, or root",
        false,
    ),
    ("valgrind", "instructions per request", "apt-get install valgrind", false),
    ("nginx", "peer `nginx`", "apt-get install nginx-light", false),
    ("lighttpd", "peer `lighttpd`", "apt-get install lighttpd", false),
    ("h2o", "peer `h2o`", "apt-get install h2o", false),
    ("static-web-server", "peer `static-web-server`", BUILD, false),
];
/// Programs of the peers' workspace.
const BUILT: [&str; 4] = ["peer-hyper", "peer-axum", "peer-ours-axum", "peer-servedir"];

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

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the table of tools, and true if all that is needed is there.
pub(crate) fn setup() -> (String, bool) {
    let mut rows = vec![["program", "for", "state"].map(str::to_owned)];
    let mut is_ready = cores() > 1;
    for (name, about, how, is_needed) in TOOLS {
        let program = if how == BUILD { peers::static_web_server_program() } else { name.into() };
        let found = lookup(&program).is_some();
        is_ready &= found || !is_needed;
        let state = if found { peers::version(&program) } else { format!("MISSING: {how}") };
        rows.push([name.to_owned(), about.to_owned(), state]);
    }
    for name in BUILT {
        let is_built = peers::built(name).is_file();
        let state = if is_built { peers::locked() } else { format!("MISSING: {BUILD}") };
        rows.push([name.to_owned(), "peers from crates".to_owned(), state]);
    }
    let note = format!("\n{} cores; two are needed, one for the server and one for the client\n", cores());
    (align(&rows) + &note, is_ready)
}

/// Returns the checkout's commit, marked if files differ from it.
pub(crate) fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let is_changed = git(&["status", "--porcelain"]).is_some_and(|status| !status.is_empty());
    if is_changed { commit + " with changes" } else { commit }
}

/// Returns the first line that a program prints about its version.
pub(crate) fn version(program: &Path, argument: &str) -> String {
    let Ok(output) = Command::new(program).arg(argument).output() else { return "not found".to_owned() };
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let line = printed.iter().flat_map(|text| text.lines()).find(|line| !line.trim().is_empty());
    line.map_or_else(|| "prints nothing".to_owned(), |line| line.trim().to_owned())
}

/// Returns the days since a program's file was written: for packages the day of their build.
pub(crate) fn age_days(program: &Path) -> Option<u64> {
    let changed = fs::metadata(lookup(program)?).ok()?.modified().ok()?;
    Some(SystemTime::now().duration_since(changed).ok()?.as_secs() / DAY_S)
}

/// Returns a program's file: the path itself, or what the shell would find.
pub(crate) fn lookup(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let system = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(Into::into);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(program)).find(|path| path.is_file())
}
