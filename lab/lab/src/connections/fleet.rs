//! Client processes: each opens and holds its share of the connections, and reports its counts.

use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::vec;

use serde::{Deserialize, Serialize};

use crate::client::{self, Arrivals, COUNT, HeldConnections, HeldCounts, Load, LoadOptions};
use crate::process::under;

/// Time for the client processes to end by themselves.
const END: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A client process's task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// The request, and the rate at which idle connections are asked.
    pub(super) load: Load,
    pub(super) held: HeldConnections,
}

/// Holds connections as a task says, until standard input ends.
pub(crate) fn hold(task: &str) -> Result<(), String> {
    let task = serde_json::from_str(task).map_err(|error| format!("task: {error}"))?;
    let Task { mut load, held } = task;
    load.options = LoadOptions { arrivals: Arrivals::Poisson, ..LoadOptions::default() };
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
}

struct ClientProcess {
    child: Child,
    orders: Option<ChildStdin>,
    reports: BufReader<ChildStdout>,
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
        Ok(Self { waiting, processes: Vec::new() })
    }

    /// Starts the next process, which opens its connections at once; returns false if all are started.
    pub(super) fn start_next(&mut self) -> Result<bool, String> {
        let Some(mut command) = self.waiting.next() else { return Ok(false) };
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("client process: {error}"))?;
        let (orders, reports) = (child.stdin.take(), child.stdout.take());
        let reports = BufReader::new(reports.ok_or("client process: no output")?);
        // Not settled until its first counts.
        let counts = HeldCounts { unopened: 1, ..HeldCounts::default() };
        self.processes.push(ClientProcess { child, orders, reports, counts });
        Ok(true)
    }

    /// Returns the number of processes that open connections or await responses.
    pub(super) fn unsettled(&self) -> usize {
        self.processes.iter().filter(|process| !process.counts.is_settled()).count()
    }

    /// Gives the first processes an order and takes their counts. One that has ended is an error.
    pub(super) fn order(&mut self, order: u8, processes: usize) -> Result<(), String> {
        self.processes.iter_mut().take(processes).try_for_each(|process| process.order(order))
    }

    /// Takes the counts of processes that are not settled.
    pub(super) fn update(&mut self) -> Result<(), String> {
        let mut unsettled = self.processes.iter_mut().filter(|process| !process.counts.is_settled());
        unsettled.try_for_each(|process| process.order(COUNT))
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

impl ClientProcess {
    fn order(&mut self, order: u8) -> Result<(), String> {
        let Some(orders) = &mut self.orders else { return Ok(()) };
        let counts = client::order(order, orders, &mut self.reports);
        self.counts = counts.map_err(|error| format!("client process: {error}"))?;
        Ok(())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.close();
    }
}
