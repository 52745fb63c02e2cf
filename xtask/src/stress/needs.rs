//! What the machine has to offer before the first phase starts. Counts are never lowered: what is missing is said.

use std::fs;

use super::{phase, wrk};
use crate::harness::process;

/// Descriptors that client and server each need beside their connections.
const DESCRIPTORS_BESIDE: u64 = 500;
/// The client keeps a whole request for each connection (100 of up to 9.4 MB, 5,000 of up to 60 KB), its script some more, and the
/// kernel both ends' socket buffers: memory that must be available, KiB.
const MEMORY_MIN_KIB: u64 = 3 * 1024 * 1024;

/// How to get the load generator.
const GET_WRK: &str = "wrk is not installed. Debian, Ubuntu: apt-get install wrk; Fedora: dnf install wrk; Arch: pacman -S wrk; \
                       macOS: brew install wrk";

/// Lifts this process's own descriptor limit, which `wrk` and the server inherit, and tells what is still missing.
pub(super) fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    if wrk::version().is_none() {
        missing.push(GET_WRK.to_owned());
    }
    missing.extend(descriptors_missing(process::raise_descriptor_limit()));
    let reused = number("/proc/sys/net/ipv4/tcp_tw_reuse").is_some_and(|reuse| reuse > 0);
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
    missing.extend(range.and_then(|range| ports_missing(&range, reused)));
    let memory = fs::read_to_string("/proc/meminfo").ok();
    missing.extend(memory.and_then(|text| memory_missing(process::field_kib(&text, "MemAvailable:")?)));
    missing
}

fn descriptors_missing(limit: u64) -> Option<String> {
    let needed = phase::connections_max() + DESCRIPTORS_BESIDE;
    (limit < needed).then(|| {
        format!("the hard limit of open files is {limit}, needed are {needed}: ulimit -Hn, or LimitNOFILE=")
    })
}

/// Every connection takes a local port; without reuse it stays taken for a minute after the phase.
fn ports_missing(range: &str, reused: bool) -> Option<String> {
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    let (first, last) = (first.parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
    let ports = (last + 1).saturating_sub(first);
    let needed = if reused { phase::connections_max() } else { phase::connections_in_all() };
    (ports < needed).then(|| {
        format!(
            "{ports} local ports, needed are {needed}: sysctl net.ipv4.ip_local_port_range=\"1024 65535\""
        )
    })
}

fn memory_missing(available_kib: u64) -> Option<String> {
    (available_kib < MEMORY_MIN_KIB).then(|| {
        let (has, needed) = (available_kib / 1024, MEMORY_MIN_KIB / 1024);
        format!("{has} MiB of memory are available, needed are {needed} (most of it by wrk)")
    })
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{descriptors_missing, memory_missing, ports_missing};

    #[test]
    fn a_machine_that_is_too_small_is_told_what_it_lacks() {
        assert_eq!(descriptors_missing(20_000), None);
        assert!(descriptors_missing(10_000).is_some_and(|why| why.contains("10500")));
        assert_eq!(ports_missing("32768\t60999\n", false), None);
        assert_eq!(ports_missing("32768\t47000\n", true), None);
        assert!(ports_missing("32768\t47000\n", false).is_some_and(|why| why.contains("14233 local ports")));
        assert_eq!(memory_missing(8 * 1024 * 1024), None);
        assert!(memory_missing(1024 * 1024).is_some());
    }
}
