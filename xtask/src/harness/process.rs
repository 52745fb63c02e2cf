//! What the server process costs: CPU time, memory and descriptors, read from `/proc`.
//!
//! Every figure is an `Option`: a system without `/proc` gives `None`, and the report says "not measured".

use std::fs;
use std::time::{Duration, Instant};

/// The figures of one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    /// Resident memory, KiB (`/proc/PID/smaps_rollup`, else `/proc/PID/status`).
    pub(crate) rss_kib: Option<u64>,
    /// Open descriptors (`/proc/PID/fd`).
    pub(crate) descriptors: Option<u64>,
}

/// Reads the figures of the process `pid` now.
pub(crate) fn snapshot(pid: u32) -> Snapshot {
    Snapshot { rss_kib: rss_kib(pid), descriptors: descriptors(pid) }
}

/// How many descriptors the process has open.
pub(crate) fn descriptors(pid: u32) -> Option<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    Some(entries.count() as u64)
}

/// CPU time of all living threads of the process since they started, nanoseconds (`/proc/PID/task/*/schedstat`). A server whose threads come and go is measured too low.
pub(crate) fn cpu_ns(pid: u32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut total = 0;
    for task in tasks {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        total += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(total)
}

/// Resident memory in KiB. The rollup counts pages; `status` may lag behind by some pages per thread.
pub(crate) fn rss_kib(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    let from_rollup = rollup.ok().and_then(|text| field_kib(&text, "Rss:"));
    from_rollup.or_else(|| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        field_kib(&status, "VmRSS:")
    })
}

/// The most resident memory that the process has had, KiB.
pub(crate) fn rss_peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    field_kib(&status, "VmHWM:")
}

/// True if the process has a descriptor of io_uring, as only that driver has.
pub(crate) fn uses_io_uring(pid: u32) -> bool {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let links = entries.into_iter().flatten().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.into_iter().any(|link| link.to_string_lossy().contains("io_uring"))
}

/// How often the process's living threads have given up their core to wait: each time is followed by a wake-up.
pub(crate) fn switches(pid: u32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut total = 0;
    for task in tasks {
        let text = fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        total += count.trim().parse::<u64>().ok()?;
    }
    Some(total)
}

/// The figure of a line such as `VmRSS:  1234 kB`.
pub(crate) fn field_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line[name.len()..].split_whitespace().next()?.parse().ok()
}

/// Waits until the process has at most `bound` descriptors, and gives the last count seen.
pub(crate) fn settle_descriptors(pid: u32, bound: Option<u64>, patience: Duration) -> Option<u64> {
    let deadline = Instant::now() + patience;
    loop {
        let now = descriptors(pid);
        if now <= bound || Instant::now() >= deadline {
            return now;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The share of one core between two snapshots, per cent.
pub(crate) fn core_percent(before: Option<u64>, after: Option<u64>, elapsed: Duration) -> Option<f64> {
    let spent_ns = after?.saturating_sub(before?) as f64;
    Some(100.0 * spent_ns / elapsed.as_nanos().max(1) as f64)
}

/// Growth of resident memory from `before` to `after`, KiB; below zero if it shrank.
pub(crate) fn growth_kib(before: Option<u64>, after: Option<u64>) -> Option<f64> {
    Some(after? as f64 - before? as f64)
}

/// CPU time of everybody on the machine since it started, nanoseconds, counted in ticks of 10 ms (`/proc/stat`).
pub(crate) fn machine_cpu_ns() -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    let text = fs::read_to_string("/proc/stat").ok()?;
    busy_ticks(text.lines().next()?).map(|ticks| ticks * TICK_NS)
}

/// The line is `cpu user nice system idle iowait irq softirq steal …`.
fn busy_ticks(line: &str) -> Option<u64> {
    let figures: Option<Vec<u64>> =
        line.split_whitespace().skip(1).map(|figure| figure.parse().ok()).collect();
    let figures = figures.filter(|figures| figures.len() >= 8)?;
    Some(figures[..3].iter().chain(&figures[5..8]).sum())
}

/// Lifts this process's own soft limit on open files to its hard limit, and gives the limit that holds then.
pub(crate) fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let holds = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    holds.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{busy_ticks, core_percent, field_kib};
    use std::time::Duration;

    #[test]
    fn a_field_is_read_in_kib() {
        assert_eq!(field_kib("Name:\tx\nVmRSS:\t    1234 kB\n", "VmRSS:"), Some(1234));
        assert_eq!(field_kib("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn waiting_is_not_work() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 1000 8 16 32 0 0"), Some(63));
        assert_eq!(busy_ticks("cpu  1 2 4"), None);
    }

    #[test]
    fn half_a_second_in_a_second_is_half_a_core() {
        let share = core_percent(Some(1_000), Some(500_001_000), Duration::from_secs(1));
        assert_eq!(share, Some(50.0));
        assert_eq!(core_percent(None, Some(1), Duration::from_secs(1)), None);
    }
}
