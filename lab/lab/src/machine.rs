//! What a result depends on besides the servers: machine, kernel, versions.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use crate::json::Json;

/// Seconds of a day.
const DAY_S: u64 = 24 * 60 * 60;

/// The machine.
pub fn describe() -> Json {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map_or_else(String::new, |line| line.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from) as u64;
    Json::Map(vec![
        ("cpu", Json::text(field(&read("/proc/cpuinfo"), "model name"))),
        ("cores", Json::Count(cores)),
        ("memory", Json::text(field(&read("/proc/meminfo"), "MemTotal"))),
        ("kernel", Json::text(read("/proc/sys/kernel/osrelease"))),
        ("load_at_end", Json::text(read("/proc/loadavg"))),
        ("somaxconn", Json::text(read("/proc/sys/net/core/somaxconn"))),
        ("rmem_max", Json::text(read("/proc/sys/net/core/rmem_max"))),
        ("tcp_congestion_control", Json::text(read("/proc/sys/net/ipv4/tcp_congestion_control"))),
    ])
}

/// The checkout's commit, marked if files differ from it.
pub fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed = git(&["status", "--porcelain"]).is_some_and(|status| !status.is_empty());
    if changed { commit + " with changes" } else { commit }
}

/// The first line that a program says about its version.
pub fn version(program: &Path, argument: &str) -> String {
    let Ok(output) = Command::new(program).arg(argument).output() else { return "not found".to_owned() };
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let line = said.iter().flat_map(|text| text.lines()).find(|line| !line.trim().is_empty());
    line.map_or_else(|| "says nothing".to_owned(), |line| line.trim().to_owned())
}

/// Days since the program's file was built, as its time of change tells.
pub fn age_days(program: &Path) -> Option<u64> {
    let path = lookup(program)?;
    let changed = fs::metadata(path).ok()?.modified().ok()?;
    Some(SystemTime::now().duration_since(changed).ok()?.as_secs() / DAY_S)
}

/// A program's file: itself if it is a path, else as the shell would find it.
pub fn lookup(program: &Path) -> Option<std::path::PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let system = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(Into::into);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(program)).find(|path| path.is_file())
}
