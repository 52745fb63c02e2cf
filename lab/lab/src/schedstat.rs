//! CPU time and run-queue wait of processes, to the nanosecond, from `/proc/PID/task/*/schedstat`.

use std::fs;
use std::ops::{AddAssign, Sub};

/// What the scheduler has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedTime {
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Time ready to run but waiting for a CPU.
    pub wait_ns: u64,
}

impl AddAssign for SchedTime {
    fn add_assign(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.wait_ns += other.wait_ns;
    }
}

impl Sub for SchedTime {
    type Output = Self;

    /// What was added since `earlier`; nothing where a thread that ended has taken its time with it.
    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
        }
    }
}

/// Reads one line of a `schedstat` file: time on CPU, time waited, slices.
pub fn parse(line: &str) -> Option<SchedTime> {
    let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
    let cpu_ns = fields.next()?.ok()?;
    let wait_ns = fields.next()?.ok()?;
    fields.next()?.ok()?;
    Some(SchedTime { cpu_ns, wait_ns })
}

/// The sum over all threads of the processes.
///
/// # Errors
/// A process that is gone, or a kernel without scheduler statistics: either way there is no figure.
pub fn of_processes(ids: &[u32]) -> Result<SchedTime, String> {
    let mut sum = SchedTime::default();
    for id in ids {
        let folder = format!("/proc/{id}/task");
        let threads = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        for thread in threads.flatten() {
            let path = thread.path().join("schedstat");
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            sum += parse(&text).ok_or_else(|| format!("{}: {text:?}", path.display()))?;
        }
    }
    Ok(sum)
}
