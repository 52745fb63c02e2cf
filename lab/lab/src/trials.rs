//! Trials of one server by itself: memory, idleness, start, allocations, and latency beside large downloads.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::block::{Order, length};
use crate::client::Sources;
use crate::downloads;
use crate::folder::Folder;
use crate::proc_fs::{Resident, Threads};
use crate::process::{Server, free_address, output};
use crate::programs::{Programs, cargo, root};
use crate::scenario;
use crate::server::{self, Place};
use crate::statistics::{Estimate, estimate};

/// The load of all trials.
pub(crate) const SCENARIO: &str = "1k";
/// Connections held idle, each after one response.
const IDLE_CONNECTIONS: u32 = 15_000;
/// Time for one response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time from the last response until a quiet server is watched.
const SETTLE: Duration = Duration::from_secs(2);
const WATCH: Duration = Duration::from_secs(10);
/// The test that counts allocations: only the process itself can. It prints a figure for each driver.
const ALLOCATIONS_TEST: &str = "test -p shearwater-files --test allocations -- --nocapture";
const ALLOCATIONS_MARK: &str = "lab-figure allocations=";

/// Figures of one round, by name.
pub(crate) type Figures = Vec<(&'static str, f64)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Memory of a server after one response.
    Fresh,
    /// Memory per idle connection.
    IdleConnections,
    /// CPU time and wake-ups of an idle server.
    Quiet,
    /// Allocations per request, counted by a test of the program.
    Allocations,
    /// Latency of small requests beside large downloads.
    Downloads,
    /// Time to the first response after a start, and memory then.
    Start,
}

/// A trial of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) trial: Trial,
    pub(crate) server: &'static str,
}

/// Figures of all rounds of a trial.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) subject: Subject,
    pub(crate) rounds: Vec<Result<Figures, String>>,
}

/// A started server that has responded once.
pub(crate) struct Stage<'a> {
    pub(crate) server: Server,
    pub(crate) order: Order<'a>,
    pub(crate) response_bytes: u64,
}

impl Trial {
    /// Returns the server's workers, the rounds with a fresh server each, and the seconds of all of them.
    const fn shape(self) -> (u32, u32, u32) {
        match self {
            Self::Fresh => (2, 3, 3),
            Self::IdleConnections => (1, 3, 12),
            Self::Quiet => (2, 1, 13),
            Self::Allocations => (1, 1, 30),
            Self::Downloads => (1, 8, 16),
            Self::Start => (1, 3, 3),
        }
    }

    pub(crate) fn workers(self) -> u32 {
        self.shape().0
    }

    pub(crate) fn rounds(self) -> u32 {
        self.shape().1
    }

    pub(crate) fn estimated_s(self) -> f64 {
        self.shape().2.into()
    }
}

impl Finding {
    /// Estimates a figure over the rounds.
    pub(crate) fn estimate(&self, figure: &str, seed: u64) -> Result<Estimate, String> {
        let of = |round: &Figures| round.iter().find(|(name, _)| *name == figure).map(|(_, value)| *value);
        let values: Vec<f64> = self.rounds.iter().flatten().filter_map(of).collect();
        estimate(&values, seed).ok_or_else(|| {
            let reason = self.rounds.iter().find_map(|round| round.as_ref().err());
            reason.cloned().unwrap_or_else(|| format!("no round has the figure {figure}"))
        })
    }
}

/// Runs all rounds of a trial.
pub(crate) fn run(subject: Subject, folder: &Folder, programs: &Programs) -> Finding {
    let Subject { trial, server } = subject;
    let rounds = (1..=trial.rounds()).map(|round| {
        let found = run_once(subject, folder, programs);
        let text = match &found {
            Ok(figures) => {
                let shown = figures.iter().map(|(name, value)| format!("{name} {value:.3}"));
                shown.collect::<Vec<_>>().join(", ")
            }
            Err(reason) => format!("NO FIGURE: {reason}"),
        };
        crate::progress(&format!("{trial:?} {round}/{} {server}: {text}", trial.rounds()));
        found
    });
    Finding { subject, rounds: rounds.collect() }
}

fn run_once(subject: Subject, folder: &Folder, programs: &Programs) -> Result<Figures, String> {
    if subject.trial == Trial::Allocations {
        return allocations();
    }
    let server = server::find(subject.server)?;
    let workers = subject.trial.workers();
    let place = Place { programs, folder, address: free_address()?, null_bytes: 150, workers };
    let scenario = scenario::find(SCENARIO)?;
    let order = Order { server, scenario, place, seconds: 1, wait_percent_max: 100.0 };
    let started = Instant::now();
    let (server, _) = order.start()?;
    let response_bytes = length(&order.probe()?);
    let start_s = started.elapsed().as_secs_f64();
    let stage = Stage { server, order, response_bytes };
    match subject.trial {
        Trial::Fresh => Ok(vec![("rss_mib", stage.resident_kib()? as f64 / 1024.0)]),
        Trial::Start => Ok(vec![("start_s", start_s), ("rss_mib", stage.resident_kib()? as f64 / 1024.0)]),
        Trial::IdleConnections => stage.hold_connections(),
        Trial::Quiet => stage.watch(),
        Trial::Downloads => downloads::measure(&stage),
        Trial::Allocations => allocations(),
    }
}

impl Stage<'_> {
    fn resident_kib(&self) -> Result<u64, String> {
        match Resident::of(self.server.ids()).now_kib {
            0 => Err("the server has ended".to_owned()),
            kib => Ok(kib),
        }
    }

    /// Measures the growth of RSS per idle connection; all must stay open.
    fn hold_connections(&self) -> Result<Figures, String> {
        let _ = testkit::process::raise_descriptor_limit();
        let before_kib = self.resident_kib()?;
        let mut sources = Sources::new(None);
        let held: Result<Vec<TcpStream>, String> = (1..=IDLE_CONNECTIONS)
            .map(|number| self.served(&mut sources).map_err(|error| format!("connection {number}: {error}")))
            .collect();
        let held = held?;
        let grown_kib = self.resident_kib()?.saturating_sub(before_kib);
        // A connection that the server has closed costs it nothing.
        match held.iter().filter(|stream| !is_open(stream)).count() {
            0 => {}
            closed => {
                return Err(format!("{closed} of {IDLE_CONNECTIONS} connections were closed meanwhile"));
            }
        }
        let per_connection = grown_kib as f64 * 1024.0 / held.len() as f64;
        Ok(vec![("bytes_per_connection", per_connection), ("grown_kib", grown_kib as f64)])
    }

    /// Returns a connection after one response.
    fn served(&self, sources: &mut Sources) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::from(sources.connect(self.order.place.address)?);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(self.order.scenario.request().as_bytes())?;
        let mut response = vec![0; self.response_bytes as usize];
        stream.read_exact(&mut response)?;
        if response.starts_with(b"HTTP/1.1 200") { Ok(stream) } else { Err(ErrorKind::InvalidData.into()) }
    }

    /// Measures CPU time and wake-ups of the idle server.
    fn watch(&self) -> Result<Figures, String> {
        thread::sleep(SETTLE);
        let ids = self.server.ids();
        let (before, started) = (Threads::of(ids)?, Instant::now());
        thread::sleep(WATCH);
        let after = Threads::of(ids)?;
        let seconds = started.elapsed().as_secs_f64();
        if !after.are_those_of(&before) {
            return Err("threads started or ended meanwhile".to_owned());
        }
        let spent = after.since(&before)?;
        Ok(vec![
            ("cpu_percent", spent.cpu_ns as f64 / 1e9 / seconds * 100.0),
            ("wake_ups_per_s", spent.switches as f64 / seconds),
        ])
    }
}

/// Returns true if the server has neither closed the connection nor sent anything more.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).is_ok()
        && stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Runs the test that counts allocations; the worst driver's figure counts.
fn allocations() -> Result<Figures, String> {
    let mut command = Command::new(cargo());
    command.current_dir(root()).args(ALLOCATIONS_TEST.split(' '));
    Ok(vec![("allocations", parse_allocations(&output(command)?)?)])
}

fn parse_allocations(printed: &str) -> Result<f64, String> {
    let passed = printed.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    let passed: u32 = passed.filter_map(|rest| rest.split_once(' ')?.0.parse::<u32>().ok()).sum();
    if passed == 0 {
        return Err(format!("`cargo {ALLOCATIONS_TEST}` runs no test"));
    }
    // The runner may have begun the line with the test's name.
    let figures =
        printed.lines().filter_map(|line| line.split_once(ALLOCATIONS_MARK)?.1.trim().parse::<f64>().ok());
    let worst = figures.filter(|figure| figure.is_finite()).reduce(f64::max);
    worst.ok_or_else(|| {
        format!("`cargo {ALLOCATIONS_TEST}` passes, but prints no line with `{ALLOCATIONS_MARK}`")
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener};

    use super::*;

    #[test]
    fn allocations_are_the_worst_figure_printed() {
        let passed = "test result: ok. 2 passed; 0 failed; 0 ignored";
        let printed = format!(
            "running 2 tests\ntest a ... lab-figure allocations=0\nok\nlab-figure allocations=3\n{passed}\n"
        );
        assert_eq!(parse_allocations(&printed), Ok(3.0));
        assert!(parse_allocations(passed).is_err_and(|why| why.contains("prints no line")));
        let none = "running 0 tests\nlab-figure allocations=0\ntest result: ok. 0 passed; 0 failed\n";
        assert!(parse_allocations(none).is_err_and(|why| why.contains("runs no test")));
        assert!(parse_allocations(&format!("lab-figure allocations=inf\n{passed}\n")).is_err());
    }

    #[test]
    fn a_connection_closed_by_the_server_is_not_open() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let held = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (server, _) = listener.accept().expect("a client");
        assert!(is_open(&held));
        server.shutdown(Shutdown::Write).expect("it is connected");
        held.set_nonblocking(false).expect("a socket");
        assert_eq!((&held).read(&mut [0; 1]).expect("its end"), 0);
        assert!(!is_open(&held));
    }
}
