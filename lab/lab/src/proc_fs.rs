//! Figures of processes and cores from `/proc`: CPU time, run-queue wait, memory, context switches, idle time.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

/// Linux reports times in hundredths of a second, whatever it counts in.
const TICK_NS: u64 = 10_000_000;

/// CPU time, run-queue wait and context switches of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) cpu_ns: u64,
    /// Time ready to run but waiting for a CPU.
    pub(crate) wait_ns: u64,
    /// Times it gave up or lost its core: each is followed by a wake-up.
    pub(crate) switches: u64,
}

/// Figures of each thread of some processes, by its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Threads(BTreeMap<String, Spent>);

impl Threads {
    /// Reads all threads of the processes. A missing process or statistic is an error: the sum would be too small.
    pub(crate) fn of(ids: &[u32]) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for id in ids {
            let folder = format!("/proc/{id}/task");
            for thread in fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?.flatten() {
                let path = thread.path();
                let read = |name| fs::read_to_string(path.join(name)).unwrap_or_default();
                let spent = parse(&read("schedstat"), &read("status"));
                let name = path.display().to_string();
                all.insert(name.clone(), spent.ok_or_else(|| format!("{name}: no scheduler statistics"))?);
            }
        }
        Ok(Self(all))
    }

    /// Returns the sum of what was added since an earlier reading; a new thread counts whole. A thread that has ended took its
    /// time with it: an error.
    pub(crate) fn since(&self, earlier: &Self) -> Result<Spent, String> {
        if let Some(ended) = earlier.0.keys().find(|name| !self.0.contains_key(*name)) {
            return Err(format!("{ended}: the thread has ended meanwhile"));
        }
        Ok(self.0.iter().fold(Spent::default(), |sum, (name, now)| {
            let before = earlier.0.get(name).copied().unwrap_or_default();
            Spent {
                cpu_ns: sum.cpu_ns + now.cpu_ns.saturating_sub(before.cpu_ns),
                wait_ns: sum.wait_ns + now.wait_ns.saturating_sub(before.wait_ns),
                switches: sum.switches + now.switches.saturating_sub(before.switches),
            }
        }))
    }

    pub(crate) fn are_those_of(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
    }
}

/// Parses a thread's `schedstat` (time on CPU, time waited, slices) and `status`.
fn parse(schedstat: &str, status: &str) -> Option<Spent> {
    let mut fields = schedstat.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let (cpu_ns, wait_ns, _slices) = (fields.next()??, fields.next()??, fields.next()??);
    let switches = field(status, "voluntary_ctxt_switches:")? + field(status, "nonvoluntary_ctxt_switches:")?;
    Some(Spent { cpu_ns, wait_ns, switches })
}

/// Parses the number of a line such as `VmRSS:  1234 kB`.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Resident memory in KiB, summed over processes; shared pages count for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Resident {
    #[serde(rename = "rss_kib")]
    pub(crate) now_kib: u64,
    #[serde(rename = "rss_peak_kib")]
    pub(crate) peak_kib: u64,
}

impl Resident {
    /// Reads the memory of some processes; one that has ended holds nothing.
    pub(crate) fn of(ids: &[u32]) -> Self {
        let read = |id: &u32| Self::parse(&fs::read_to_string(format!("/proc/{id}/status")).ok()?);
        ids.iter().filter_map(read).fold(Self::default(), |sum, one| Self {
            now_kib: sum.now_kib + one.now_kib,
            peak_kib: sum.peak_kib + one.peak_kib,
        })
    }

    fn parse(status: &str) -> Option<Self> {
        Some(Self { now_kib: field(status, "VmRSS:")?, peak_kib: field(status, "VmHWM:")? })
    }
}

/// Returns the idle time of a core since boot, waiting for disks included.
pub(crate) fn idle_ns(core: usize) -> Result<u64, String> {
    let text = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
    parse_idle(&text, core).ok_or_else(|| format!("/proc/stat: no line of core {core}"))
}

fn parse_idle(text: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
    let mut fields = line.split_ascii_whitespace().skip(3).map(|field| field.parse::<u64>().ok());
    Some((fields.next()?? + fields.next()??) * TICK_NS)
}

/// Returns the CPU time of this process's ended children in milliseconds, in ticks of ten.
pub(crate) fn children_cpu_ms() -> u64 {
    let ticks = |stat: &str| -> Option<u64> {
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(13);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    };
    fs::read_to_string("/proc/self/stat").ok().and_then(|stat| ticks(&stat)).unwrap_or(0) * TICK_NS
        / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tnginx\nVmHWM:\t    9100 kB\nVmRSS:\t    9000 kB\nvoluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t2\n";

    #[test]
    fn parses_what_the_kernel_writes() {
        let spent = Spent { cpu_ns: 677_520_419, wait_ns: 20_232_140, switches: 43 };
        assert_eq!(parse("677520419 20232140 5447\n", STATUS), Some(spent));
        for wrong in ["", "1", "1 2", "a b c", "-1 2 3"] {
            assert_eq!(parse(wrong, STATUS), None, "{wrong:?}");
        }
        assert_eq!(parse("1 2 3", "voluntary_ctxt_switches:\t41\n"), None);
        assert_eq!(Resident::parse(STATUS), Some(Resident { now_kib: 9_000, peak_kib: 9_100 }));
        assert_eq!(Resident::parse("Name:\tkthreadd\n"), None);
        let stat = "cpu  9 9 9 9 9 0\ncpu0 1 2 3 400 5 6 7 0 0 0\ncpu10 1 2 3 4 0\nintr 5\n";
        assert_eq!(
            [0, 10, 1].map(|core| parse_idle(stat, core)),
            [Some(4_050_000_000), Some(40_000_000), None]
        );
    }

    #[test]
    fn an_ended_thread_leaves_no_figure_and_a_new_one_counts_whole() {
        let threads = |times: &[(&str, u64)]| {
            let spent = |cpu_ns| Spent { cpu_ns, wait_ns: 1, switches: 0 };
            Threads(times.iter().map(|(name, cpu_ns)| ((*name).to_owned(), spent(*cpu_ns))).collect())
        };
        let earlier = threads(&[("1", 10), ("2", 20)]);
        let later = threads(&[("1", 15), ("2", 20), ("3", 7)]);
        assert_eq!(later.since(&earlier), Ok(Spent { cpu_ns: 12, wait_ns: 1, switches: 0 }));
        assert!(
            threads(&[("1", 90)]).since(&earlier).is_err_and(|why| why.contains("2: the thread has ended"))
        );
    }

    #[test]
    fn reads_this_process() {
        let own = [std::process::id()];
        // A thread of another test that ends meanwhile leaves no figure.
        let threads = (0..1000).find_map(|_| Threads::of(&own).ok()).expect("it runs");
        assert!(threads.since(&Threads::default()).is_ok_and(|spent| spent.cpu_ns > 0));
        assert!(Resident::of(&own).now_kib > 0 && idle_ns(0).is_ok());
        assert!(Threads::of(&[u32::MAX]).is_err(), "there is no such process");
    }
}
