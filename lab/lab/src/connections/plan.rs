//! The plan of a run: client processes with their addresses and ports, and what the machine must have for them.

use std::fs;
use std::net::Ipv4Addr;
use std::ops::Range;

use rustix::process::{Resource, geteuid, getrlimit};
use serde::Serialize;

/// Most connections between two addresses. Where the kernel chooses ports it becomes slow beyond half of its range.
const CONNECTIONS_PER_PAIR_MAX: u32 = 14_000;
/// First port of each source address: below the range that the kernel chooses from.
const FIRST_PORT: u16 = 10_000;
/// Client processes, each with a source address of its own: 127.0.1.1 to 127.0.1.254.
const PROCESSES_MAX: u32 = 254;
/// Descriptors of a client process that are no connections.
const OTHER_DESCRIPTORS: u64 = 64;
/// Kernel memory of one end of an idle connection (measured: 4 to 5 KB, on two kernels).
const END_BYTES: u64 = 5 * 1024;
/// Memory of a client process, and of each of its connections there.
const PROCESS_BYTES: u64 = 4 << 20;
const CONNECTION_BYTES: u64 = 512;
/// Memory left for everything else.
const SPARE_BYTES: u64 = 512 << 20;
/// Most connection ends per bucket of the kernel's table, on average: each lookup walks half of them.
const ENDS_PER_BUCKET_MAX: u64 = 16;

/// Connections and what both ends of them take.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Plan {
    pub(super) connections: u32,
    /// Client processes.
    pub(super) processes: u32,
    /// Memory that both ends of all connections and the client processes take.
    memory_bytes: u64,
    /// Files that the machine has open then, besides those that it has already.
    files: u64,
    limits: MachineLimits,
}

/// The machine's limits, where it has them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct MachineLimits {
    memory_available_bytes: u64,
    /// `fs.file-max`, where it holds for this process, and how many are open.
    files_max: u64,
    files_open: u64,
    /// Buckets of the table of connections that this network namespace uses.
    buckets: u64,
    /// Hard limit of descriptors of a process.
    descriptors_max: u64,
}

/// Returns the buckets that a namespace's own table should have: one per end.
pub(super) fn buckets_wanted(connections: u32) -> u32 {
    connections.saturating_mul(2).checked_next_power_of_two().unwrap_or(1 << 31)
}

impl Plan {
    /// Divides connections evenly among as few processes as possible.
    ///
    /// # Errors
    ///
    /// A message with figures and help, if the machine has too little of something.
    pub(super) fn of(connections: u32, limits: MachineLimits) -> Result<Self, String> {
        let available = limits.descriptors_max.saturating_sub(OTHER_DESCRIPTORS);
        let most = u32::try_from(available).unwrap_or(u32::MAX).clamp(1, CONNECTIONS_PER_PAIR_MAX);
        let processes = connections.div_ceil(most);
        let ends = u64::from(connections) * 2;
        let memory_bytes = u64::from(connections) * (2 * END_BYTES + CONNECTION_BYTES)
            + u64::from(processes) * PROCESS_BYTES;
        let files = ends + u64::from(processes) * OTHER_DESCRIPTORS;
        let files_free = limits.files_max.saturating_sub(limits.files_open);
        let memory_free = limits.memory_available_bytes.saturating_sub(SPARE_BYTES);
        let error = if processes > PROCESSES_MAX {
            format!(
                "{connections} connections take {processes} client processes of {most}, more than {PROCESSES_MAX}; a process may have \
                 {} descriptors\nhelp: raise the limit: ulimit -n {}",
                limits.descriptors_max,
                connections.div_ceil(PROCESSES_MAX) + OTHER_DESCRIPTORS as u32
            )
        } else if memory_bytes > memory_free {
            format!(
                "both ends take {} of memory (5 KiB an end), but only {} are available\nhelp: run with --count {}",
                gib(memory_bytes),
                gib(memory_free),
                memory_free / memory_bytes.div_ceil(connections.into())
            )
        } else if files > files_free {
            format!(
                "both ends take {files} files, but the system may open only {files_free} more\nhelp: sysctl fs.file-max={}",
                limits.files_open + files
            )
        } else if ends > limits.buckets * ENDS_PER_BUCKET_MAX {
            format!(
                "{ends} ends in the {} buckets of the kernel's connection table are more than {ENDS_PER_BUCKET_MAX} in each\nhelp: \
                 a network namespace of its own gets a larger table (Linux 6.1, root or user namespaces)",
                limits.buckets
            )
        } else {
            return Ok(Self { connections, processes, memory_bytes, files, limits });
        };
        Err(error)
    }

    /// Returns the addresses and ports of each process.
    pub(super) fn shares(&self) -> impl Iterator<Item = (Ipv4Addr, Range<u16>)> {
        let (each, more) = (self.connections / self.processes, self.connections % self.processes);
        (0..self.processes).map(move |number| {
            let count = each + u32::from(number < more);
            let source = Ipv4Addr::new(127, 0, 1, 1 + number as u8);
            (source, FIRST_PORT..FIRST_PORT + count as u16)
        })
    }
}

impl MachineLimits {
    /// Reads them, after the namespace is entered.
    pub(super) fn read() -> Result<Self, String> {
        let number = |path: &str, at: usize| {
            let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
            let word = text.split_whitespace().nth(at).and_then(|word| word.parse::<i64>().ok());
            word.map(i64::unsigned_abs).ok_or_else(|| format!("{path}: no number"))
        };
        Ok(Self {
            memory_available_bytes: meminfo_kib("MemAvailable:")? * 1024,
            // Root is exempt.
            files_max: if geteuid().is_root() { u64::MAX } else { number("/proc/sys/fs/file-max", 0)? },
            files_open: number("/proc/sys/fs/file-nr", 0)?,
            // Negative where it is the machine's.
            buckets: number("/proc/sys/net/ipv4/tcp_ehash_entries", 0)?,
            descriptors_max: getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
        })
    }
}

/// Reads a line of `/proc/meminfo`.
pub(super) fn meminfo_kib(name: &str) -> Result<u64, String> {
    let path = "/proc/meminfo";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| format!("{path}: no {name}"))
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMPLE: MachineLimits = MachineLimits {
        memory_available_bytes: 24 << 30,
        files_max: 2_466_170,
        files_open: 2_000,
        buckets: 2_097_152,
        descriptors_max: 20_000,
    };

    #[test]
    fn a_million_connections_take_72_processes_and_10_gib() {
        let plan = Plan::of(1_000_000, AMPLE).expect("it can be planned");
        let shares: Vec<_> = plan.shares().collect();
        assert_eq!((shares.len(), gib(plan.memory_bytes)), (72, "10.3 GiB".to_owned()));
        assert_eq!(shares.iter().map(|(_, ports)| ports.len()).sum::<usize>(), 1_000_000);
        assert!(shares.iter().all(|(_, ports)| ports.len() <= CONNECTIONS_PER_PAIR_MAX as usize));
        assert_eq!((shares[71].0, &shares[0].1), (Ipv4Addr::new(127, 0, 1, 72), &(10_000..23_889)));
        assert_eq!(buckets_wanted(1_000_000), AMPLE.buckets as u32);
        for (count, descriptors_max, processes) in [(960, 1_024, 1), (961, 1_024, 2), (20_000, 20_000, 2)] {
            let plan = Plan::of(count, MachineLimits { descriptors_max, ..AMPLE });
            assert_eq!(plan.map(|plan| plan.processes), Ok(processes), "{count}");
        }
    }

    #[test]
    fn what_the_machine_lacks_is_refused_with_figures() {
        for (limits, expected) in [
            (MachineLimits { descriptors_max: 1_024, ..AMPLE }, "1042 client processes of 960"),
            (MachineLimits { descriptors_max: 1_024, ..AMPLE }, "ulimit -n 4002"),
            (MachineLimits { memory_available_bytes: 8 << 30, ..AMPLE }, "10.3 GiB of memory"),
            (MachineLimits { files_max: 1_000_000, ..AMPLE }, "sysctl fs.file-max=2006608"),
            (MachineLimits { buckets: 65_536, ..AMPLE }, "65536 buckets"),
        ] {
            let refusal = Plan::of(1_000_000, limits).map(drop).expect_err(expected);
            assert!(refusal.contains(expected), "{expected}: {refusal}");
        }
        assert!(MachineLimits::read().is_ok_and(|limits| limits.memory_available_bytes > 0));
    }
}
