//! Figures of a process, read from `/proc`. Each is `None` on a system without it.

use std::fs;
use std::io;

use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal to a process that isn't a child of this one.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, signal)?)
}

/// Returns true if there is no such process, or it has exited and its parent hasn't asked for its status. `/proc` is needed.
pub fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Its name, in parentheses, may contain anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_none_or(|state| matches!(state, 'Z' | 'X'))
}

/// Number of open descriptors.
pub fn descriptors(pid: u32) -> Option<u64> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64)
}

/// Resident memory, KiB. `smaps_rollup` counts pages; `status` may lag behind by some pages a thread.
pub fn rss_kib(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    let exact = rollup.ok().and_then(|text| field(&text, "Rss:"));
    exact.or_else(|| status_field(pid, "VmRSS:"))
}

/// Largest resident memory so far, KiB.
pub fn rss_peak_kib(pid: u32) -> Option<u64> {
    status_field(pid, "VmHWM:")
}

/// CPU time of all living threads, nanoseconds. Threads that have ended are not counted.
pub fn cpu_ns(pid: u32) -> Option<u64> {
    sum_of_threads(pid, "schedstat", |text| text.split_whitespace().next()?.parse().ok())
}

/// Voluntary context switches of all living threads: each is followed by a wake-up.
pub fn context_switches(pid: u32) -> Option<u64> {
    sum_of_threads(pid, "status", |text| field(text, "voluntary_ctxt_switches:"))
}

/// Returns true if the process has a descriptor of io_uring.
pub fn uses_io_uring(pid: u32) -> bool {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let mut links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.any(|link| link.to_string_lossy().contains("io_uring"))
}

/// CPU time of all processes of the machine, nanoseconds, in ticks of 10 ms.
pub fn machine_cpu_ns() -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    busy_ticks(fs::read_to_string("/proc/stat").ok()?.lines().next()?).map(|ticks| ticks * TICK_NS)
}

/// CPU time of this process, nanoseconds, threads that have ended included.
pub fn own_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec) as u64
}

/// Number of IPv4 connections to a local port, in any state but `TIME_WAIT`.
pub fn tcp_connections(port: u16) -> Option<u64> {
    Some(connections_in(&fs::read_to_string("/proc/net/tcp").ok()?, port))
}

/// Raises this process's soft limit of open descriptors to its hard limit, and returns the limit.
pub fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let holds = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    holds.unwrap_or(u64::MAX)
}

/// Counts lines `sl local:port remote:port state …`, in hexadecimal.
fn connections_in(table: &str, port: u16) -> u64 {
    const TIME_WAIT: &str = "06";
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let counts = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() > 3 && words[1].ends_with(&suffix) && words[3] != TIME_WAIT && words[3] != LISTEN
    };
    table.lines().skip(1).filter(counts).count() as u64
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
    use super::{busy_ticks, connections_in, field};

    #[test]
    fn counts_connections_to_the_port() {
        let table = "  sl  local_address rem_address   st\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n\
            1: 0100007F:1F90 0100147F:9C40 01 00000000:00000000\n\
            2: 0100147F:9C40 0100007F:1F90 01 00000000:00000000\n\
            3: 0100007F:1F90 0100147F:9C41 06 00000000:00000000\n\
            4: 0100007F:1F90 0100147F:9C42 08 00000000:00000000\n";
        assert_eq!(connections_in(table, 8080), 2);
    }

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
