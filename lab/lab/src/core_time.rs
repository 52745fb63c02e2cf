//! How long a core was idle, from `/proc/stat`: what neither idled nor was our server's went to somebody else.

use std::fs;

/// Linux shows times in hundredths of a second, whatever it counts in.
const TICK_NS: u64 = 10_000_000;

/// Idle time of a core since the start, waiting for disks included.
///
/// # Errors
/// The kernel shows none.
pub fn idle_ns(core: usize) -> Result<u64, String> {
    let text = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
    parse(&text, core).ok_or_else(|| format!("/proc/stat: no line of core {core}"))
}

/// Idle time of a core in the file's text.
pub fn parse(text: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
    let mut fields = line.split_ascii_whitespace().skip(3).map(str::parse::<u64>);
    let (idle, disks) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((idle + disks) * TICK_NS)
}

/// What of a window others ran on the core: neither idle nor the server's. Exact to a tick of ten milliseconds.
pub fn foreign_ns(window_ns: u64, idle_ns: u64, server_cpu_ns: u64) -> u64 {
    window_ns.saturating_sub(idle_ns).saturating_sub(server_cpu_ns)
}
