//! Resident memory of processes, from `/proc/PID/status`.

use std::fs;

/// What a server holds, in KiB, summed over its processes (shared pages count for each).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Now.
    pub now_kib: u64,
    /// At most so far.
    pub peak_kib: u64,
}

/// Reads `VmRSS` and `VmHWM` of a `status` file.
pub fn parse(status: &str) -> Option<Resident> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    Some(Resident { now_kib: field("VmRSS:")?, peak_kib: field("VmHWM:")? })
}

/// The sum over the processes; those that are gone hold nothing.
pub fn of_processes(ids: &[u32]) -> Resident {
    let read = |id: &u32| parse(&fs::read_to_string(format!("/proc/{id}/status")).ok()?);
    ids.iter().filter_map(read).fold(Resident::default(), |sum, one| Resident {
        now_kib: sum.now_kib + one.now_kib,
        peak_kib: sum.peak_kib + one.peak_kib,
    })
}
