//! Memory limits of the process: by the machine, its control groups and its own limits.

use std::fs;

use rustix::process::{Resource, getrlimit};

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
    let left = |(limit, has)| {
        Some(getrlimit(limit).current?.saturating_sub(listed_bytes(&status, has).unwrap_or(0)))
    };
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
    use super::{groups_bytes, listed_bytes};

    #[test]
    fn amounts_are_read_by_their_names() {
        let meminfo = "MemFree:  5 kB\nMemTotal:       24683520 kB\nMemAvailable: 7 kB\n";
        assert_eq!(listed_bytes(meminfo, "MemTotal:"), Some(25_275_924_480));
        for odd in ["", "MemTotal:", "MemTotal: x kB", "MemTotal: 5 MB", "MemTotal: 18446744073709551615 kB"]
        {
            assert_eq!(listed_bytes(odd, "MemTotal:"), None, "{odd}");
        }
    }

    #[test]
    fn the_least_limit_of_all_groups_around_the_process_counts() {
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
