//! What the server under attack costs: its memory and its peak, its descriptors, its connections as the kernel counts them.

use std::fs;
use std::time::{Duration, Instant};

use super::latency::Stretch;
use crate::harness::process::{self, core_percent};

/// The figures of one moment. `None` where the system does not tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    /// Resident memory, KiB.
    pub(super) rss_kib: Option<u64>,
    /// The most it ever was, KiB.
    pub(super) rss_peak_kib: Option<u64>,
    /// Open descriptors.
    pub(super) descriptors: Option<u64>,
    /// Connections to the server's port, whatever their state, apart from those that only wait for their time to be over.
    pub(super) connections: Option<u64>,
}

/// Reads them all; the memory map is walked for it, so not while anything is measured.
pub(super) fn figures(pid: u32, port: u16) -> Figures {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok();
    Figures {
        rss_kib: process::rss_kib(pid),
        rss_peak_kib: status.and_then(|text| process::field_kib(&text, "VmHWM:")),
        descriptors: process::descriptors(pid),
        connections: fs::read_to_string("/proc/net/tcp").ok().map(|text| connections_in(&text, port)),
    }
}

/// Lines are `sl local:port remote:port state …`, numbers in hexadecimal; the states are the kernel's `TCP_ESTABLISHED` (1) and so on.
fn connections_in(table: &str, port: u16) -> u64 {
    const TIME_WAIT: &str = "06";
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let counts = |line: &&str| {
        let mut parts = line.split_whitespace().skip(1);
        let local = parts.next().unwrap_or_default();
        let state = parts.nth(1).unwrap_or_default();
        local.ends_with(&suffix) && state != TIME_WAIT && state != LISTEN
    };
    table.lines().skip(1).filter(counts).count() as u64
}

/// CPU over some stretches: the server's, and that of everything else on the machine apart from this program.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Cpu {
    server_percent: f64,
    others_percent: f64,
    seconds: f64,
    missing: bool,
}

impl Cpu {
    /// The shares of one stretch, per cent of a core.
    #[cfg(test)]
    pub(super) fn of(time: Duration, server_percent: f64, others_percent: f64) -> Self {
        let seconds = time.as_secs_f64();
        let (server_percent, others_percent) = (server_percent * seconds, others_percent * seconds);
        Self { server_percent, others_percent, seconds, missing: false }
    }

    /// The server's share of a core, per cent; `None` where the system does not tell.
    pub(super) fn server_percent(&self) -> Option<f64> {
        (!self.missing && self.seconds > 0.0).then(|| self.server_percent / self.seconds)
    }

    /// The others' share of a core, per cent.
    pub(super) fn others_percent(&self) -> Option<f64> {
        (!self.missing && self.seconds > 0.0).then(|| self.others_percent / self.seconds)
    }
}

/// Runs `work` and adds its stretch and the CPU spent in it.
pub(super) fn measured<T>(
    pid: u32,
    cpu: &mut Cpu,
    stretches: &mut Vec<Stretch>,
    work: impl FnOnce() -> T,
) -> T {
    let server_before = process::cpu_ns(pid);
    let others_before = others_ns(pid);
    let start = Instant::now();
    let done = work();
    let stretch = Stretch::since(start);
    let time = stretch.length();
    add(cpu, time, core_percent(server_before, process::cpu_ns(pid), time), others_ns(pid), others_before);
    stretches.push(stretch);
    done
}

fn add(cpu: &mut Cpu, time: Duration, server: Option<f64>, others: Option<u64>, others_before: Option<u64>) {
    let seconds = time.as_secs_f64();
    match (server, core_percent(others_before, others, time)) {
        (Some(server), Some(others)) => {
            cpu.server_percent += server * seconds;
            cpu.others_percent += others * seconds;
            cpu.seconds += seconds;
        }
        _ => cpu.missing = true,
    }
}

fn others_ns(pid: u32) -> Option<u64> {
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    let ours = process::cpu_ns(pid)? + own_ns_in(&own)?;
    Some(process::machine_cpu_ns()?.saturating_sub(ours))
}

/// `pid (name) state ppid … utime stime …`: user and system time of the whole process, threads that have ended too, in ticks of 10 ms.
fn own_ns_in(stat: &str) -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut figures = rest.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (figures.next()?.parse().ok()?, figures.next()?.parse().ok()?);
    Some((user + system) * TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::{connections_in, own_ns_in};

    #[test]
    fn time_is_found_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 25 17 0 0 20 0 3 0";
        assert_eq!(own_ns_in(stat), Some(420_000_000));
    }

    #[test]
    fn only_connections_to_the_port_count() {
        let table = "  sl  local_address rem_address   st\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n\
            1: 0100007F:1F90 0100147F:9C40 01 00000000:00000000\n\
            2: 0100147F:9C40 0100007F:1F90 01 00000000:00000000\n\
            3: 0100007F:1F90 0100147F:9C41 06 00000000:00000000\n\
            4: 0100007F:1F90 0100147F:9C42 08 00000000:00000000\n";
        assert_eq!(connections_in(table, 8080), 2);
    }
}
