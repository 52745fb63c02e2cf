//! Programs on cores of their own: how they are started and ended, and the CPU time of their threads.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::time::clock_getcpuclockid;
use rustix::process::{Pid, kill_process};
use testkit::{Program, Signal};

pub(crate) const SERVER_CORE: usize = 0;
pub(crate) const CLIENT_CORE: usize = 1;
/// Time for a server to end after SIGTERM.
const END: Duration = Duration::from_secs(3);
/// Linux reports times in hundredths of a second, whatever it counts in.
const TICK_NS: u64 = 10_000_000;

/// Returns a command that runs another under a tool, in the same environment.
pub(crate) fn under(tool: &str, arguments: &[&str], command: &Command) -> Command {
    let mut whole = Command::new(tool);
    whole.args(arguments).arg(command.get_program()).args(command.get_args());
    whole.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    whole
}

/// Returns a command that runs another on one core, and that the kernel ends when the lab has ended, however it did.
pub(crate) fn on_core(core: usize, command: &Command) -> Command {
    under("setpriv", &["--pdeathsig", "TERM", "taskset", "-c", &core.to_string()], command)
}

/// Runs a command to its end and returns its standard output; an error quotes the last line of its standard error.
pub(crate) fn output(mut command: Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}: {}", output.status, errors.lines().last().unwrap_or("no message")))
}

/// Runs a command that prints its own messages.
pub(crate) fn succeed(mut command: Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

/// A running server and its processes; dropping it ends all of them.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    program: Program,
    ids: Vec<u32>,
}

impl ServerProcess {
    /// Starts it on its core and waits until it accepts connections.
    pub(crate) fn start(command: &Command, address: SocketAddr, log: &Path) -> Result<Self, String> {
        let program = Program::start(on_core(SERVER_CORE, command), address, log);
        let program = program.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let ids = family(program.pid());
        Ok(Self { program, ids })
    }

    /// Looks for its processes again: one that listens before it starts its workers may have been alone at first.
    pub(crate) fn find_processes(&mut self) {
        self.ids = family(self.program.pid());
    }

    /// Sends SIGTERM, and SIGKILL after `patience`. Returns true if it ended by itself and successfully.
    pub(crate) fn end_within(&mut self, patience: Duration) -> bool {
        let status = self.program.stop(patience);
        if status.is_none() {
            self.ids.iter().for_each(|id| kill(*id));
        }
        status.is_some_and(|status| status.success())
    }

    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Returns a figure in KiB, summed over its processes, in MiB. Shared pages count for each.
    pub(crate) fn mib(&self, kib: fn(u32) -> Option<u64>) -> Result<f64, String> {
        match self.ids.iter().filter_map(|id| kib(*id)).sum::<u64>() {
            0 => Err("the server has ended".to_owned()),
            kib => Ok(kib as f64 / 1024.0),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if self.program.is_alive() {
            self.end_within(END);
        }
    }
}

fn kill(id: u32) {
    if let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(id, Signal::KILL);
    }
}

/// Returns a loopback address whose port is free. Each start has another port, since rings release theirs late.
pub(crate) fn free_address() -> Result<SocketAddr, String> {
    testkit::free_address().map_err(|error| format!("no free port: {error}"))
}

/// Returns a process and all its descendants.
fn family(first: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parents: Vec<(u32, u64)> =
        ids.filter_map(|id| Some((id, *stat(&read(&format!("/proc/{id}/stat")).ok()?)?.get(1)?))).collect();
    let mut found = vec![first];
    let mut at = 0;
    while let Some(&id) = found.get(at) {
        found.extend(parents.iter().filter(|(_, parent)| *parent == u64::from(id)).map(|(child, _)| *child));
        at += 1;
    }
    found
}

/// Parses the fields after the name in a `/proc/PID/stat`; what is no number counts 0. The name may contain anything; it ends at
/// the last parenthesis.
fn stat(text: &str) -> Option<Vec<u64>> {
    let fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    Some(fields.map(|field| field.parse().unwrap_or(0)).collect())
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// CPU time, run-queue wait and context switches of each thread of some processes, by its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Threads(BTreeMap<String, [u64; 3]>);

/// Sum over threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) cpu_ns: u64,
    /// Time ready to run but waiting for a CPU.
    pub(crate) wait_ns: u64,
    /// Times it gave up or lost its core: each is followed by a wake-up.
    pub(crate) switches: u64,
}

impl Threads {
    /// Reads all threads of the processes. A missing process or statistic is an error: the sum would be too small.
    pub(crate) fn of(ids: &[u32]) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for id in ids {
            let folder = format!("/proc/{id}/task");
            for thread in fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?.flatten() {
                let name = thread.path().display().to_string();
                let read = |file| read(&format!("{name}/{file}")).unwrap_or_default();
                let spent = parse_thread(&read("schedstat"), &read("status"));
                let spent = spent.ok_or_else(|| format!("{name}: no scheduler statistics"))?;
                all.insert(name, spent);
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
        let sum = |figure: usize| {
            let before = |name| earlier.0.get(name).map_or(0, |before: &[u64; 3]| before[figure]);
            self.0.iter().map(|(name, now)| now[figure].saturating_sub(before(name))).sum()
        };
        Ok(Spent { cpu_ns: sum(0), wait_ns: sum(1), switches: sum(2) })
    }

    pub(crate) fn are_those_of(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
    }
}

/// A server's CPU time so far, by its threads and by the clocks of its processes.
#[derive(Debug)]
pub(crate) struct CpuReading {
    threads: Result<Threads, String>,
    cpu_ns: u64,
}

impl CpuReading {
    pub(crate) fn of(ids: &[u32]) -> Result<Self, String> {
        Ok(Self { threads: Threads::of(ids), cpu_ns: cpu_ns(ids)? })
    }

    /// Returns what was added since an earlier reading. Threads of a pool may start and end between the two: the clocks have their
    /// time, and nothing knows how long they waited.
    pub(crate) fn since(self, earlier: Self, has_pool: bool) -> Result<Spent, String> {
        let cpu_ns = self.cpu_ns.saturating_sub(earlier.cpu_ns);
        let spent = self.threads.and_then(|now| now.since(&earlier.threads?));
        match has_pool {
            true => Ok(Spent { cpu_ns, ..spent.unwrap_or_default() }),
            false => spent,
        }
    }
}

/// Returns the CPU time of some processes so far, with that of threads that have ended.
fn cpu_ns(ids: &[u32]) -> Result<u64, String> {
    let clock = |id: &u32| {
        let time = clock_getcpuclockid(nix::unistd::Pid::from_raw(id.cast_signed()))?.now()?;
        Ok(u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX))
    };
    let sum = ids.iter().map(clock).sum::<nix::Result<u64>>();
    sum.map_err(|error| format!("CPU time of the server: {error}"))
}

/// Parses a thread's `schedstat` (time on CPU, time waited, slices) and the context switches in its `status`.
fn parse_thread(schedstat: &str, status: &str) -> Option<[u64; 3]> {
    let fields: Option<Vec<u64>> =
        schedstat.split_ascii_whitespace().map(|field| field.parse().ok()).collect();
    let &[cpu_ns, wait_ns, _slices] = fields?.as_slice() else { return None };
    let count = |name| status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<u64>().ok();
    Some([cpu_ns, wait_ns, count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?])
}

/// Returns the idle time of a core since boot, waiting for disks included.
pub(crate) fn idle_ns(core: usize) -> Result<u64, String> {
    parse_idle(&read("/proc/stat")?, core).ok_or_else(|| format!("/proc/stat: no line of core {core}"))
}

fn parse_idle(text: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
    let mut fields = line.split_ascii_whitespace().skip(3).map(|field| field.parse::<u64>().ok());
    Some((fields.next()?? + fields.next()??) * TICK_NS)
}

/// Returns the number of ports for outgoing connections.
pub(crate) fn ephemeral_ports() -> Option<f64> {
    let text = read("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let ends: Vec<f64> = text.split_whitespace().filter_map(|end| end.parse().ok()).collect();
    Some(ends.last()? - ends.first()? + 1.0)
}

/// Returns the CPU time of this process's ended children, in ticks of 10 ms.
pub(crate) fn children_cpu_ns() -> u64 {
    let fields = read("/proc/self/stat").ok().and_then(|text| stat(&text)).unwrap_or_default();
    fields.iter().skip(13).take(2).sum::<u64>() * TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_descendants_under_any_name() {
        assert_eq!(stat("42 (a) R 1 (x) S 17 42"), Some(vec![0, 17, 42]));
        assert_eq!(stat("42 nginx"), None);
        let mut child = Command::new("sh").args(["-c", "sleep 3 & wait"]).spawn().expect("it starts");
        let is_found = (0..400).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            family(child.id()).len() == 2
        });
        family(child.id()).into_iter().for_each(kill);
        child.wait().expect("it ended");
        assert!(is_found);
    }

    #[test]
    fn parses_what_the_kernel_writes() {
        let status = "Name:\tnginx\nvoluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(parse_thread("677520419 20232140 5447\n", status), Some([677_520_419, 20_232_140, 43]));
        assert_eq!(parse_thread("1 2", status), None);
        assert_eq!(parse_thread("1 2 3", "voluntary_ctxt_switches:\t41\n"), None);
        let stat = "cpu  9 9 9 9 9 0\ncpu0 1 2 3 400 5 6 7 0 0 0\ncpu10 1 2 3 4 0\nintr 5\n";
        let idle = [0, 10, 1].map(|core| parse_idle(stat, core));
        assert_eq!(idle, [Some(4_050_000_000), Some(40_000_000), None]);
    }

    #[test]
    fn the_clock_of_a_process_has_the_time_of_ended_threads() {
        let own = [std::process::id()];
        let before_ns = cpu_ns(&own).expect("it runs");
        let work =
            || (0..20_000_000_u64).fold(1, |sum: u64, it| std::hint::black_box(sum.wrapping_mul(it | 1)));
        assert_ne!(std::thread::spawn(work).join().expect("it ends"), 0);
        assert!(cpu_ns(&own).expect("it runs") >= before_ns + 1_000_000);
        assert!(cpu_ns(&[0x7fff_fff0]).is_err());
    }

    #[test]
    fn an_ended_thread_leaves_no_figure_and_a_new_one_counts_whole() {
        let threads = |times: &[(&str, u64)]| {
            Threads(times.iter().map(|(name, cpu_ns)| ((*name).to_owned(), [*cpu_ns, 1, 0])).collect())
        };
        let earlier = threads(&[("1", 10), ("2", 20)]);
        let later = threads(&[("1", 15), ("2", 20), ("3", 7)]);
        assert_eq!(later.since(&earlier), Ok(Spent { cpu_ns: 12, wait_ns: 1, switches: 0 }));
        let ended = threads(&[("1", 90)]).since(&earlier);
        assert!(ended.is_err_and(|why| why.contains("2: the thread has ended")));
    }

    #[test]
    fn reads_this_process() {
        let own = [std::process::id()];
        // A thread of another test that ends meanwhile leaves no figure.
        let threads = (0..1000).find_map(|_| Threads::of(&own).ok()).expect("it runs");
        assert!(threads.since(&Threads::default()).is_ok_and(|spent| spent.cpu_ns > 0));
        assert!(idle_ns(0).is_ok());
        assert!(Threads::of(&[u32::MAX]).is_err(), "there is no such process");
    }
}
