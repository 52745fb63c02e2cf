//! A server that nobody asks: what it costs all the same.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::alone::{Figures, Stage};
use crate::schedstat;

/// From the last answer until the watch begins: what is left to close is closed.
const SETTLE: Duration = Duration::from_secs(2);
/// The watch.
const WATCH: Duration = Duration::from_secs(10);

/// Times that a thread gave up or lost its core, from its `status` file: each is followed by a wake-up.
pub fn switches(status: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some(field("voluntary_ctxt_switches:")? + field("nonvoluntary_ctxt_switches:")?)
}

/// CPU time and wake-ups of the server while nobody asks.
///
/// # Errors
/// It is gone, or its threads changed meanwhile.
pub fn watch(stage: &Stage<'_>) -> Result<Figures, String> {
    thread::sleep(SETTLE);
    let ids = stage.server.ids();
    let (before, cpu_before) = (all_switches(ids)?, schedstat::of_processes(ids)?);
    let started = Instant::now();
    thread::sleep(WATCH);
    let (after, cpu_after) = (all_switches(ids)?, schedstat::of_processes(ids)?);
    let seconds = started.elapsed().as_secs_f64();
    if !before.keys().eq(after.keys()) {
        return Err("threads came or went meanwhile".to_owned());
    }
    let each: Vec<u64> = after.iter().map(|(id, count)| count.saturating_sub(before[id])).collect();
    let (sum, most) = (each.iter().sum::<u64>(), each.iter().max().copied().unwrap_or(0));
    let cpu_s = cpu_after.since(&cpu_before)?.cpu_ns as f64 / 1e9;
    Ok(vec![
        ("cpu_percent", cpu_s / seconds * 100.0),
        ("wake_ups_per_s", sum as f64 / seconds),
        ("busiest_thread_wake_ups_per_s", most as f64 / seconds),
    ])
}

/// By thread, over all processes.
fn all_switches(ids: &[u32]) -> Result<BTreeMap<String, u64>, String> {
    let mut all = BTreeMap::new();
    for id in ids {
        let folder = format!("/proc/{id}/task");
        for thread in fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?.flatten() {
            let path = thread.path().join("status");
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let count = switches(&text).ok_or_else(|| format!("{}: no counts", path.display()))?;
            all.insert(path.display().to_string(), count);
        }
    }
    Ok(all)
}
