//! The client processes together: started, ordered, watched and ended.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use testkit::Response;

use super::plan::Plan;
use super::protocol::{Counts, ExpectedResponse, Order, Task};
use crate::process::under;

/// Time for a client process to end by itself.
const END: Duration = Duration::from_secs(10);
/// Reports that wait to be taken; beyond, the processes wait.
const REPORTS_MAX: usize = 4_096;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// All client processes. Dropping it ends them, and with them their connections.
pub(super) struct Fleet {
    processes: Vec<ClientProcess>,
    /// Counts by process; nothing where one has ended.
    reports: Receiver<(usize, Option<Counts>)>,
}

struct ClientProcess {
    child: Child,
    orders: Option<ChildStdin>,
    ordered: u32,
    counts: Counts,
}

/// Requests, and what the processes must receive.
pub(super) struct Exchange<'a> {
    pub(super) server: std::net::SocketAddr,
    pub(super) request: String,
    pub(super) response: &'a Response,
    pub(super) keep_alive_ms: u32,
}

impl Fleet {
    /// Starts a process for each share of the plan, on these cores. They do nothing yet.
    pub(super) fn start(plan: &Plan, exchange: &Exchange<'_>, cores: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let (sender, reports) = sync_channel(REPORTS_MAX);
        let mut fleet = Self { processes: Vec::new(), reports };
        for (number, share) in plan.processes.iter().enumerate() {
            let task = Task {
                server: exchange.server,
                share: share.clone(),
                request: exchange.request.clone(),
                expected: ExpectedResponse::of(exchange.response),
                keep_alive_ms: exchange.keep_alive_ms,
            };
            let mut command = Command::new(&program);
            command.arg("hold").arg(serde_json::to_string(&task).map_err(|error| error.to_string())?);
            let mut command = under("taskset", &["-c", cores], &command);
            let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let mut child = spawned.map_err(|error| format!("client process: {error}"))?;
            forward(number, &mut child, sender.clone());
            let orders = child.stdin.take();
            fleet.processes.push(ClientProcess { child, orders, ordered: 0, counts: Counts::default() });
        }
        Ok(fleet)
    }

    pub(super) fn len(&self) -> usize {
        self.processes.len()
    }

    /// Gives one process an order. It must have none.
    pub(super) fn order(&mut self, number: usize, order: &Order) -> Result<(), String> {
        let process = &mut self.processes[number];
        let mut line = serde_json::to_vec(order).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let Some(orders) = &mut process.orders else { return Err("the client process has ended".to_owned()) };
        orders.write_all(&line).map_err(|error| format!("client process {number}: {error}"))?;
        process.ordered += 1;
        Ok(())
    }

    pub(super) fn is_busy(&self, number: usize) -> bool {
        self.processes[number].counts.done < self.processes[number].ordered
    }

    /// Takes the reports that arrive within a time. A process that has ended is an error.
    pub(super) fn update(&mut self, patience: Duration) -> Result<(), String> {
        let until = Instant::now() + patience;
        loop {
            match self.reports.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((number, Some(counts))) => self.processes[number].counts = counts,
                Ok((number, None)) => return Err(format!("client process {number} has ended")),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("all client processes have ended".to_owned());
                }
            }
        }
    }

    /// Returns the counts of all processes.
    pub(super) fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.processes.iter().for_each(|process| all.add(&process.counts));
        all
    }
}

/// Sends what a process prints, from a thread of its own, which ends with the process.
fn forward(number: usize, child: &mut Child, reports: SyncSender<(usize, Option<Counts>)>) {
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
        // The end of its orders ends a process.
        self.processes.iter_mut().for_each(|process| drop(process.orders.take()));
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
