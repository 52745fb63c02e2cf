//! System differences that concern the process: descriptors, backlog, cores, memory limits, coarse clock.

#![expect(
    unsafe_code,
    reason = "rustix reads results of `getrlimit` and `uname` that a sandbox has refused to write; `malloc_trim` isn't in it"
)]

use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, setrlimit};

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

/// Limit to request if the system has no hard limit (macOS then refuses more than `OPEN_MAX`).
const UNLIMITED_DESCRIPTORS: u64 = 10_240;

/// Limit of descriptors that is assumed if a sandbox hides it: Linux's usual soft limit.
pub(crate) const UNKNOWN_DESCRIPTORS: u64 = 1024;

/// Bytes for the name of this machine. Longer ones are cut.
const HOST_NAME_BYTES: usize = 256;

/// The process's limit of open descriptors (`RLIMIT_NOFILE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The previous soft limit.
    pub soft_before: u64,
    /// The present soft limit.
    pub soft_now: u64,
    /// The hard limit: the most that this process can set. `u64::MAX` if there is none.
    pub hard: u64,
    /// False if the system hides the limit: a usual one is assumed.
    pub is_known: bool,
}

/// Returns the soft and the hard limit of descriptors, `u64::MAX` for none; `None` if the system hides them.
#[must_use]
pub fn descriptor_limits() -> Option<(u64, u64)> {
    limits_of(Resource::Nofile).map(|(soft, hard)| (soft.unwrap_or(u64::MAX), hard.unwrap_or(u64::MAX)))
}

/// Returns the soft and the hard limit of a resource, each `None` for none; `None` if a sandbox hides them.
fn limits_of(resource: Resource) -> Option<(Option<u64>, Option<u64>)> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: there is space for a limit.
    let is_known = unsafe { libc::getrlimit(resource as _, &raw mut found) } == 0;
    // The type differs between systems.
    let finite = |value: libc::rlim_t| {
        (value != libc::RLIM_INFINITY).then_some(u64::from_ne_bytes(value.to_ne_bytes()))
    };
    is_known.then_some((finite(found.rlim_cur), finite(found.rlim_max)))
}

/// Returns the name of this machine; `None` if a sandbox hides it.
#[must_use]
pub fn host_name() -> Option<String> {
    let mut name = [0_u8; HOST_NAME_BYTES];
    // SAFETY: there is space for so many bytes. One remains for the end of a name that is cut.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), HOST_NAME_BYTES - 1) } != 0 {
        return None;
    }
    name.split(|byte| *byte == 0).next().map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Raises the soft limit of descriptors to `wanted`, or as near as the hard limit permits. Never lowers it.
///
/// # Errors
/// Fails if the system refuses a value within the hard limit. The limit is then unchanged.
pub fn raise_descriptor_limit(wanted: u64) -> io::Result<DescriptorLimit> {
    let found = descriptor_limits();
    let (soft_before, hard) = found.unwrap_or((UNKNOWN_DESCRIPTORS, UNKNOWN_DESCRIPTORS));
    let limit = DescriptorLimit { soft_before, soft_now: soft_before, hard, is_known: found.is_some() };
    let goal = wanted.min(hard);
    if goal <= soft_before {
        return Ok(limit);
    }
    let maximum = Some(hard).filter(|hard| *hard < u64::MAX);
    let set = |soft| setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum }).map(|()| soft);
    let soft_now = match set(goal) {
        Err(_) if maximum.is_none() && soft_before < UNLIMITED_DESCRIPTORS => set(UNLIMITED_DESCRIPTORS)?,
        other => other?,
    };
    Ok(DescriptorLimit { soft_now, ..limit })
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

/// Keeps the memory of this process out of core dumps: sets the soft limit of their size (`RLIMIT_CORE`) to one byte.
///
/// Linux gives the value a second meaning: no dump is passed to a program either (`kernel.core_pattern` with `|`), which a
/// limit of 0 bytes wouldn't prevent. Processes that this one starts inherit it. A hard limit of 0 stays as it is.
///
/// # Errors
/// Fails if a sandbox refuses it.
pub fn forbid_core_dumps() -> io::Result<()> {
    let hard = limits_of(Resource::Core).map_or(Some(1), |(_, hard)| hard);
    let soft = hard.map_or(1, |hard| hard.min(1));
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(soft), maximum: hard })?)
}

/// Returns memory to the system that the C library's allocator keeps. Others than glibc's do it by themselves.
pub fn give_back_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: callable at any time on any thread; it doesn't change live allocations.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives the calling thread the lowest priority, where threads have one: it then runs on what others leave of the cores, and
/// never delays one that wakes up.
pub fn lower_thread_priority() {
    // Elsewhere this would be the priority of the process.
    #[cfg(target_os = "linux")]
    {
        // Only a filter of system calls can refuse either, and the thread works at any priority.
        let _ = rustix::process::nice(19);
        let parameters = libc::sched_param { sched_priority: 0 };
        // musl's function of this name fails always.
        // SAFETY: the kernel reads one `sched_param`, which lives until the call returns; 0 is the calling thread.
        unsafe {
            libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const parameters);
        }
    }
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

/// The usual mount point of control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the memory that this process may use, in bytes.
///
/// It is the machine's memory, or the limit of a control group if lower (`memory.max`, or
/// `memory.limit_in_bytes` of version 1). `None` if the system reports neither in a file.
#[must_use]
pub fn memory_max() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|list| listed_bytes(&list, "MemTotal:"));
    let groups = read("/proc/self/cgroup").and_then(|list| groups_bytes(&list, read));
    machine.into_iter().chain(groups).min()
}

/// Returns the bytes that this process may still map under `RLIMIT_AS` and `RLIMIT_DATA`, if limited.
/// Reserved, unused memory counts too.
#[must_use]
pub fn mappable() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    #[cfg(not(target_os = "openbsd"))]
    let limits = [(Resource::As, "VmSize:"), (Resource::Data, "VmData:")];
    #[cfg(target_os = "openbsd")]
    let limits = [(Resource::Data, "VmData:")];
    let left =
        |(limit, has)| Some(limits_of(limit)?.0?.saturating_sub(listed_bytes(&status, has).unwrap_or(0)));
    limits.into_iter().filter_map(left).min()
}

/// Returns the amount of this name in a list like `/proc/meminfo`.
fn listed_bytes(list: &str, name: &str) -> Option<u64> {
    let amount = list.lines().find_map(|line| line.strip_prefix(name))?;
    amount.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the lowest limit of the groups in `/proc/self/cgroup` and their parents.
fn groups_bytes(list: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    list.lines().filter_map(|line| group_bytes(line, &read)).min()
}

/// Returns the limit for one line: `0::/path` of version 2, `4:memory:/path` of version 1.
fn group_bytes(line: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let (_, group) = line.split_once(':')?;
    let (controllers, mut path) = group.split_once(':')?;
    let (folder, file) = match controllers {
        "" => (GROUPS.to_owned(), "memory.max"),
        _ if controllers.split(',').any(|controller| controller == "memory") => {
            (format!("{GROUPS}/memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let mut least = None;
    // A container's path may be valid outside only: then the mounted root has the limit.
    loop {
        let limit = read(&format!("{folder}{}/{file}", path.trim_end_matches('/')));
        let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
        least = least.into_iter().chain(limit).min();
        match path.trim_end_matches('/').rfind('/') {
            Some(parent) => path = &path[..parent],
            None => return least,
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    use super::give_back_heap;
    use super::{Resource, forbid_core_dumps, groups_bytes, limits_of, listed_bytes};

    #[test]
    fn core_dumps_are_forbidden_and_the_hard_limit_stays() {
        let hard = limits_of(Resource::Core).expect("known").1;
        forbid_core_dumps().expect("allowed");
        assert_eq!(
            limits_of(Resource::Core).expect("known"),
            (Some(hard.map_or(1, |hard| hard.min(1))), hard)
        );
    }

    /// The tests have the C library's allocator.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_was_freed_goes_back() {
        let resident_kib = || -> usize {
            let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
            let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("in each version");
            line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
        };
        let mut blocks: Vec<Vec<u8>> = (0..20_000).map(|_| vec![1; 4000]).collect();
        // At the heap's end it keeps what is below from going back by itself.
        let last = blocks.pop();
        drop(blocks);
        let before = resident_kib();
        give_back_heap();
        let left = resident_kib();
        assert!(left + 40_000 < before, "{before}, {left} KiB");
        drop(last);
    }

    #[test]
    fn reads_amounts_by_name() {
        let meminfo = "MemFree:  5 kB\nMemTotal:       24683520 kB\nMemAvailable: 7 kB\n";
        assert_eq!(listed_bytes(meminfo, "MemTotal:"), Some(25_275_924_480));
        for odd in ["", "MemTotal:", "MemTotal: x kB", "MemTotal: 5 MB", "MemTotal: 18446744073709551615 kB"]
        {
            assert_eq!(listed_bytes(odd, "MemTotal:"), None, "{odd}");
        }
    }

    #[test]
    fn uses_the_lowest_limit_of_all_control_groups() {
        let files = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/a/b/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "2000\n",
                "/sys/fs/cgroup/c/memory.max" => "1000\n",
                "/sys/fs/cgroup/memory.max" => "3000\n",
                "/sys/fs/cgroup/memory/d/memory.limit_in_bytes" => "500\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "9223372036854771712\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        for (list, least) in [
            ("0::/a/b\n", Some(2000)),
            ("0::/c\n", Some(1000)),
            ("0::/\n", Some(3000)),
            // A container sees its own group as the root.
            ("0::/outside/of/it\n", Some(3000)),
            ("0::/../..\n", Some(3000)),
            ("12:cpu,cpuacct:/d\n4:memory:/d\n", Some(500)),
            ("4:memory:/outside\n", Some(9_223_372_036_854_771_712)),
            ("4:cpuset,memory:/d/e\n0::/a\n", Some(500)),
            ("3:cpu:/a\n", None),
            ("", None),
            ("nonsense\n::\n", Some(3000)),
        ] {
            assert_eq!(groups_bytes(list, files), least, "{list}");
        }
        assert_eq!(groups_bytes("0::/a/b\n", |_| None), None);
    }
}
