//! The plan of a run: client processes with their addresses and ports, and what the machine must have for them.

use std::fs;
use std::net::Ipv4Addr;

use rustix::process::{Resource, geteuid, getrlimit};
use serde::Serialize;

use crate::client::SourcePorts;

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

#[derive(Debug, Clone, Serialize)]
pub(super) struct Plan {
    pub(super) connections: u32,
    /// Client processes.
    pub(super) processes: Vec<SourcePorts>,
    /// Memory that both ends of all connections and the client processes take.
    pub(super) memory_bytes: u64,
    /// Files that the machine has open then, besides those that it has already.
    pub(super) files: u64,
}

/// The machine's limits, where it has them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct MachineLimits {
    pub(super) memory_available_bytes: u64,
    /// `fs.file-max`, where it holds for this process, and how many are open.
    pub(super) files_max: u64,
    pub(super) files_open: u64,
    /// Buckets of the table of connections that this network namespace uses.
    pub(super) buckets: u64,
    /// Hard limit of descriptors of a process.
    pub(super) descriptors_max: u64,
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
    /// A message with figures, if it takes more processes than there are source addresses.
    pub(super) fn of(connections: u32, descriptors_max: u64) -> Result<Self, String> {
        let available =
            descriptors_max.saturating_sub(OTHER_DESCRIPTORS).min(CONNECTIONS_PER_PAIR_MAX.into());
        let most = u32::try_from(available).unwrap_or(CONNECTIONS_PER_PAIR_MAX).max(1);
        let processes = connections.div_ceil(most);
        if processes > PROCESSES_MAX {
            return Err(format!(
                "{connections} connections take {processes} client processes of {most}, more than {PROCESSES_MAX}; a process may have \
                 {descriptors_max} descriptors\nhelp: raise the limit: ulimit -n {}",
                connections.div_ceil(PROCESSES_MAX) + OTHER_DESCRIPTORS as u32
            ));
        }
        let share = |number: u32| {
            let count = connections / processes + u32::from(number < connections % processes);
            let source = Ipv4Addr::new(127, 0, 1, 1 + number as u8);
            SourcePorts { source, ports: FIRST_PORT..FIRST_PORT + count as u16 }
        };
        let processes: Vec<SourcePorts> = (0..processes).map(share).collect();
        let memory_bytes = u64::from(connections) * (2 * END_BYTES + CONNECTION_BYTES)
            + processes.len() as u64 * PROCESS_BYTES;
        let files = u64::from(connections) * 2 + processes.len() as u64 * OTHER_DESCRIPTORS;
        Ok(Self { connections, processes, memory_bytes, files })
    }

    /// Describes addresses, ports and resources, a line each.
    pub(super) fn text(&self, limits: &MachineLimits) -> String {
        let [first, last] = [self.processes.first(), self.processes.last()]
            .map(|share| share.map_or_else(String::new, |share| share.source.to_string()));
        let largest = self.processes.first().map_or(0..0, |share| share.ports.clone());
        format!(
            "plan: {} connections from {} client processes, {first} to {last}, ports {} to {} each\n\
             plan: {} of {} available memory, {} of {} free files, {} connection ends in {} hash buckets\n",
            grouped(self.connections.into()),
            self.processes.len(),
            largest.start,
            largest.end.saturating_sub(1),
            gib(self.memory_bytes),
            gib(limits.memory_available_bytes),
            grouped(self.files),
            if limits.files_max == u64::MAX { "unlimited".to_owned() } else { grouped(limits.files_free()) },
            grouped(u64::from(self.connections) * 2),
            grouped(limits.buckets),
        )
    }

    /// Returns what the machine has too little of, with figures and help.
    pub(super) fn refusals(&self, limits: &MachineLimits) -> Vec<String> {
        let ends = u64::from(self.connections) * 2;
        let mut refusals = Vec::new();
        if self.memory_bytes + SPARE_BYTES > limits.memory_available_bytes {
            refusals.push(format!(
                "both ends take {} of memory (5 KiB an end) and {} must be left, but {} are available\nhelp: run with --count {}",
                gib(self.memory_bytes),
                gib(SPARE_BYTES),
                gib(limits.memory_available_bytes),
                limits.memory_available_bytes.saturating_sub(SPARE_BYTES) / self.memory_bytes.div_ceil(self.connections.into())
            ));
        }
        if self.files > limits.files_free() {
            refusals.push(format!(
                "both ends take {} files, but the system may open only {} more\nhelp: sysctl fs.file-max={}",
                self.files,
                limits.files_free(),
                limits.files_open + self.files
            ));
        }
        if ends > limits.buckets * ENDS_PER_BUCKET_MAX {
            refusals.push(format!(
                "{ends} ends in the {} buckets of the kernel's connection table are more than {ENDS_PER_BUCKET_MAX} in each\nhelp: \
                 a network namespace of its own gets a larger table (Linux 6.1, root or user namespaces)",
                limits.buckets
            ));
        }
        refusals
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

    fn files_free(&self) -> u64 {
        self.files_max.saturating_sub(self.files_open)
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

/// Formats a number with separators.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
        let plan = Plan::of(1_000_000, AMPLE.descriptors_max).expect("it can be planned");
        assert_eq!(plan.processes.len(), 72);
        assert_eq!(plan.processes.iter().map(SourcePorts::connections).sum::<u32>(), 1_000_000);
        assert!(plan.processes.iter().all(|share| share.connections() <= CONNECTIONS_PER_PAIR_MAX));
        assert_eq!(plan.processes[71].source, Ipv4Addr::new(127, 0, 1, 72));
        assert_eq!(plan.refusals(&AMPLE), Vec::<String>::new());
        assert_eq!(buckets_wanted(1_000_000), AMPLE.buckets as u32);
        let text = plan.text(&AMPLE);
        assert!(
            text.contains("1,000,000 connections from 72 client processes, 127.0.1.1 to 127.0.1.72"),
            "{text}"
        );
        assert!(
            text.contains("ports 10000 to 23888 each") && text.contains("10.3 GiB of 24.0 GiB"),
            "{text}"
        );
    }

    #[test]
    fn processes_stay_within_their_descriptors() {
        for (count, descriptors, processes) in [(960, 1_024, 1), (961, 1_024, 2), (20_000, 20_000, 2)] {
            let plan = Plan::of(count, descriptors).expect("it can be planned");
            assert_eq!(plan.processes.len(), processes, "{count}");
        }
        let refusal = Plan::of(1_000_000, 1_024).expect_err("it takes 1042 processes");
        assert!(refusal.contains("1042 client processes of 960") && refusal.contains("ulimit -n 4002"));
    }

    #[test]
    fn what_the_machine_lacks_is_refused_with_figures() {
        let plan = Plan::of(1_000_000, AMPLE.descriptors_max).expect("it can be planned");
        for (limits, expected) in [
            (MachineLimits { memory_available_bytes: 8 << 30, ..AMPLE }, "10.3 GiB of memory"),
            (MachineLimits { files_max: 1_000_000, ..AMPLE }, "sysctl fs.file-max=2006608"),
            (MachineLimits { buckets: 65_536, ..AMPLE }, "65536 buckets"),
        ] {
            let refusals = plan.refusals(&limits);
            assert!(refusals.len() == 1 && refusals[0].contains(expected), "{expected}: {refusals:?}");
        }
        assert!(MachineLimits::read().is_ok_and(|limits| limits.memory_available_bytes > 0));
    }

    #[test]
    fn groups_digits() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
