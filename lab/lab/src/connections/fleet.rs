//! Client processes: each opens and holds its share of the connections, and reports its counts.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use std::vec;

use serde::{Deserialize, Serialize};

use crate::client::{self, ExpectedResponse, HeldConnections, HeldCounts, Load, LoadOptions};
use crate::process::under;

/// Time for the client processes to end by themselves.
const END: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Reports that wait to be taken; beyond, the processes wait.
const REPORTS_MAX: usize = 4_096;

/// A client process's task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// The request, and the rate at which idle connections are asked.
    pub(super) load: Load,
    pub(super) expected: ExpectedResponse,
    pub(super) held: HeldConnections,
}

/// Holds connections as a task says, until standard input ends.
pub(crate) fn hold(task: &str) -> Result<(), String> {
    let task = serde_json::from_str(task).map_err(|error| format!("task: {error}"))?;
    let Task { mut load, expected, held } = task;
    let expected = Some(expected);
    load.options = LoadOptions { expected, has_random_arrivals: true, ..LoadOptions::default() };
    testkit::process::raise_descriptor_limit();
    let orders = io::stdin().as_fd().try_clone_to_owned();
    let held = orders.and_then(|orders| client::hold(&load, &held, orders, &mut io::stdout()));
    held.map_err(|error| format!("client process: {error}"))
}

/// All client processes. Dropping it ends them, and with them their connections.
pub(super) struct Fleet {
    /// Commands of processes that are not started yet.
    waiting: vec::IntoIter<Command>,
    processes: Vec<ClientProcess>,
    sender: SyncSender<Report>,
    reports: Receiver<Report>,
}

/// A process's number and its counts; nothing if it has ended.
type Report = (usize, Option<HeldCounts>);

struct ClientProcess {
    child: Child,
    orders: Option<ChildStdin>,
    counts: HeldCounts,
}

impl Fleet {
    /// Prepares a process for each task, on these cores.
    pub(super) fn new(tasks: &[Task], cores: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let command = |task| {
            let mut command = Command::new(&program);
            command.arg("hold").arg(serde_json::to_string(task).map_err(|error| error.to_string())?);
            Ok(under("taskset", &["-c", cores], &command))
        };
        let waiting = tasks.iter().map(command).collect::<Result<Vec<_>, String>>()?.into_iter();
        let (sender, reports) = sync_channel(REPORTS_MAX);
        Ok(Self { waiting, processes: Vec::new(), sender, reports })
    }

    /// Starts the next process, which opens its connections at once; returns false if all are started.
    pub(super) fn start_next(&mut self) -> Result<bool, String> {
        let Some(mut command) = self.waiting.next() else { return Ok(false) };
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("client process: {error}"))?;
        forward(self.processes.len(), &mut child, self.sender.clone());
        // Not settled before its first report.
        let counts = HeldCounts { unopened: 1, ..HeldCounts::default() };
        self.processes.push(ClientProcess { orders: child.stdin.take(), child, counts });
        Ok(true)
    }

    /// Returns the number of processes that open connections or await responses.
    pub(super) fn unsettled(&self) -> usize {
        self.processes.iter().filter(|process| !process.counts.is_settled()).count()
    }

    /// Starts or stops requests on the idle connections of the first processes.
    pub(super) fn toggle_requests(&mut self, processes: usize) -> Result<(), String> {
        for orders in self.processes.iter_mut().take(processes).filter_map(|it| it.orders.as_mut()) {
            orders.write_all(b"\n").map_err(|error| format!("client process: {error}"))?;
        }
        Ok(())
    }

    /// Takes the reports of a moment. A process that has ended is an error.
    pub(super) fn update(&mut self, moment: Duration) -> Result<(), String> {
        let until = Instant::now() + moment;
        loop {
            match self.reports.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((number, Some(counts))) => self.processes[number].counts = counts,
                Ok((number, None)) if self.processes[number].orders.is_some() => {
                    return Err(format!("client process {number} has ended"));
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Returns the counts of all processes.
    pub(super) fn counts(&self) -> HeldCounts {
        let mut all = HeldCounts::default();
        self.processes.iter().for_each(|process| all.add(&process.counts));
        all
    }

    /// Ends all processes, and with them their connections.
    pub(super) fn close(&mut self) {
        for process in &mut self.processes {
            process.orders = None;
            process.counts.held = 0;
        }
        let deadline = Instant::now() + END;
        for process in &mut self.processes {
            while matches!(process.child.try_wait(), Ok(None)) {
                if Instant::now() >= deadline {
                    // It may have ended by itself.
                    let _ = process.child.kill();
                    let _ = process.child.wait();
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

/// Sends what a process prints, from a thread of its own, which ends with the process.
fn forward(number: usize, child: &mut Child, reports: SyncSender<Report>) {
    let Some(output) = child.stdout.take() else { return };
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let Ok(counts) = serde_json::from_str(&line) else { break };
            if reports.send((number, Some(counts))).is_err() {
                return;
            }
        }
        // Nobody waits for it once the run is over.
        let _ = reports.send((number, None));
    });
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.close();
    }
}
