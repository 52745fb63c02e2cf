//! System differences that concern the process: descriptor limit, backlog, cores, coarse clock.

use std::io;
use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[cfg(not(any(
    target_os = "linux",
    target_os = "macos",
    target_os = "freebsd",
    target_os = "openbsd",
    target_os = "netbsd",
    target_os = "dragonfly",
)))]
compile_error!(
    "shearwater runs on Linux, macOS, FreeBSD, OpenBSD, NetBSD and DragonFly BSD; not on this system"
);

pub use crate::memory::{mappable, memory_max};

/// Limit to request if the system has no hard limit (macOS then refuses more than `OPEN_MAX`).
const UNLIMITED_DESCRIPTORS: u64 = 10_240;

/// The process's limit of open descriptors (`RLIMIT_NOFILE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The previous soft limit.
    pub soft_before: u64,
    /// The present soft limit.
    pub soft_now: u64,
    /// The hard limit: the most that this process can set. `u64::MAX` if there is none.
    pub hard: u64,
}

/// Raises the soft limit of descriptors to `wanted`, or as near as the hard limit permits. Never lowers it.
///
/// # Errors
/// Fails if the system refuses a value within the hard limit. The limit is then unchanged.
pub fn raise_descriptor_limit(wanted: u64) -> io::Result<DescriptorLimit> {
    let found = getrlimit(Resource::Nofile);
    let soft_before = found.current.unwrap_or(u64::MAX);
    let hard = found.maximum.unwrap_or(u64::MAX);
    let goal = wanted.min(hard);
    if goal <= soft_before {
        return Ok(DescriptorLimit { soft_before, soft_now: soft_before, hard });
    }
    let soft_now = match set_descriptor_limit(goal, found) {
        Err(_) if found.maximum.is_none() && soft_before < UNLIMITED_DESCRIPTORS => {
            set_descriptor_limit(UNLIMITED_DESCRIPTORS, found)?
        }
        other => other?,
    };
    Ok(DescriptorLimit { soft_before, soft_now, hard })
}

fn set_descriptor_limit(soft: u64, found: Rlimit) -> io::Result<u64> {
    setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum: found.maximum })?;
    Ok(soft)
}

/// Grows the process's descriptor table to `entries`, by using the last of these briefly.
///
/// Linux doubles a full table while its threads wait, and waits itself until every core has noticed: 10 to 15
/// ms in the middle of an `accept`, as measured, whenever 64, 128, … descriptors are first passed. A table
/// takes about 8 bytes an entry of the kernel's memory.
///
/// # Errors
/// Fails if the limit of descriptors is lower, or the system has no memory. Nothing is changed then.
pub fn widen_descriptor_table(any: impl AsFd, entries: u64) -> io::Result<()> {
    let last = i32::try_from(entries).unwrap_or(i32::MAX).saturating_sub(1);
    drop(fcntl_dupfd_cloexec(any, last)?);
    Ok(())
}

/// Returns the number of open descriptors of this process; 0 if unknown.
#[must_use]
pub fn open_descriptors() -> u64 {
    // The listing itself uses one.
    std::fs::read_dir("/dev/fd").map_or(0, |open| open.count().saturating_sub(1) as u64)
}

/// Returns the longest accept queue that the kernel permits. `None` if it isn't readable without privileges
/// or a foreign call.
#[must_use]
pub fn listen_backlog_max() -> Option<u32> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?.trim().parse().ok()
}

/// Returns the limit of open files of the whole system. `None` if the system doesn't report it in a file.
#[must_use]
pub fn system_files_max() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    std::fs::read_to_string("/proc/sys/fs/file-max").ok()?.trim().parse().ok()
}

/// Returns the cores that this thread may run on, ascending. Never empty.
#[must_use]
pub fn cores() -> Vec<usize> {
    let allowed = allowed_cores();
    if allowed.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        return (0..count).collect();
    }
    allowed
}

/// Pins the calling thread to one core.
///
/// # Errors
/// Fails if the core is none of [`cores`], or the system (macOS, OpenBSD, NetBSD) has no such call
/// ([`io::ErrorKind::Unsupported`]).
pub fn pin_to_core(core: usize) -> io::Result<()> {
    pin(core)
}

#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
fn allowed_cores() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly")))]
fn allowed_cores() -> Vec<usize> {
    Vec::new()
}

#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
fn pin(core: usize) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    if core >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly")))]
fn pin(_core: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the seconds since 1970; 0 before.
pub(crate) fn unix_seconds() -> u64 {
    // By std, because instruction counters (callgrind) fail on rustix's own path to the clock.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
