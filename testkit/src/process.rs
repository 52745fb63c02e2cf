//! Figures of a process, read from `/proc`. Each is `None` on a system without it.

use std::fs;

/// Number of open descriptors.
#[must_use]
pub fn descriptors(pid: u32) -> Option<u64> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64)
}

/// Resident memory, KiB. `smaps_rollup` counts pages; `status` may lag behind by some pages a thread.
#[must_use]
pub fn rss_kib(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    let exact = rollup.ok().and_then(|text| field(&text, "Rss:"));
    exact.or_else(|| status_field(pid, "VmRSS:"))
}

/// Largest resident memory so far, KiB.
#[must_use]
pub fn rss_peak_kib(pid: u32) -> Option<u64> {
    status_field(pid, "VmHWM:")
}

/// CPU time of all living threads, nanoseconds. Threads that have ended are not counted.
#[must_use]
pub fn cpu_ns(pid: u32) -> Option<u64> {
    sum_of_threads(pid, "schedstat", |text| text.split_whitespace().next()?.parse().ok())
}

/// Voluntary context switches of all living threads: each is followed by a wake-up.
#[must_use]
pub fn context_switches(pid: u32) -> Option<u64> {
    sum_of_threads(pid, "status", |text| field(text, "voluntary_ctxt_switches:"))
}

/// Returns true if the process has a descriptor of io_uring.
#[must_use]
pub fn uses_io_uring(pid: u32) -> bool {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let mut links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.any(|link| link.to_string_lossy().contains("io_uring"))
}

/// CPU time of all processes of the machine, nanoseconds, in ticks of 10 ms.
#[must_use]
pub fn machine_cpu_ns() -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    busy_ticks(fs::read_to_string("/proc/stat").ok()?.lines().next()?).map(|ticks| ticks * TICK_NS)
}

/// Raises this process's soft limit of open descriptors to its hard limit, and returns the limit.
#[must_use]
pub fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let holds = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    holds.unwrap_or(u64::MAX)
}

fn status_field(pid: u32, name: &str) -> Option<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, name)
}

/// The number in a line such as `VmRSS:  1234 kB`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn sum_of_threads(pid: u32, file: &str, figure: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let mut total = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        total += figure(&fs::read_to_string(thread.ok()?.path().join(file)).ok()?)?;
    }
    Some(total)
}

/// Sums a line `cpu user nice system idle iowait irq softirq steal …` without idle and iowait.
fn busy_ticks(line: &str) -> Option<u64> {
    let ticks: Option<Vec<u64>> = line.split_whitespace().skip(1).map(|ticks| ticks.parse().ok()).collect();
    let ticks = ticks.filter(|ticks| ticks.len() >= 8)?;
    Some(ticks[..3].iter().chain(&ticks[5..8]).sum())
}

#[cfg(test)]
mod tests {
    use super::{busy_ticks, field};

    #[test]
    fn reads_fields() {
        assert_eq!(field("Name:\tx\nVmRSS:\t    1234 kB\n", "VmRSS:"), Some(1234));
        assert_eq!(field("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 1000 8 16 32 0 0"), Some(63));
        assert_eq!(busy_ticks("cpu  1 2 4"), None);
    }
}
