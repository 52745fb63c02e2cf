//! CPU time and run-queue wait of processes, to the nanosecond, from `/proc/PID/task/*/schedstat`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Add, Sub};
use std::path::PathBuf;

/// What the scheduler has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedTime {
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Time ready to run but waiting for a CPU.
    pub wait_ns: u64,
}

impl Add for SchedTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { cpu_ns: self.cpu_ns + other.cpu_ns, wait_ns: self.wait_ns + other.wait_ns }
    }
}

impl Sub for SchedTime {
    type Output = Self;

    /// What was added since `earlier`; never less than nothing.
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

/// What each thread of some processes has been counted, by its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Threads(pub BTreeMap<PathBuf, SchedTime>);

impl Threads {
    /// What all have been counted.
    pub fn sum(&self) -> SchedTime {
        self.0.values().fold(SchedTime::default(), |sum, time| sum + *time)
    }

    /// What was added since an earlier reading; of threads that are new, all.
    ///
    /// # Errors
    /// A thread has ended meanwhile and taken its time with it: the sum would be too small.
    pub fn since(&self, earlier: &Self) -> Result<SchedTime, String> {
        let before = |file| earlier.0.get(file).copied().unwrap_or_default();
        match earlier.0.keys().find(|file| !self.0.contains_key(*file)) {
            Some(file) => Err(format!("{}: the thread has ended meanwhile", file.display())),
            None => {
                Ok(self.0.iter().fold(SchedTime::default(), |sum, (file, time)| sum + (*time - before(file))))
            }
        }
    }
}

/// All threads of the processes.
///
/// # Errors
/// A process that is gone, or a kernel without scheduler statistics: either way there is no figure.
pub fn of_processes(ids: &[u32]) -> Result<Threads, String> {
    let mut all = Threads::default();
    for id in ids {
        let folder = format!("/proc/{id}/task");
        let threads = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        for thread in threads.flatten() {
            let path = thread.path().join("schedstat");
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let time = parse(&text).ok_or_else(|| format!("{}: {text:?}", path.display()))?;
            all.0.insert(path, time);
        }
    }
    Ok(all)
}
