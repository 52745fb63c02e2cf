//! `shearwater reload` and `shearwater upgrade`: signals to a running server.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::args::Running;
use crate::failure::Failure;
use crate::report;

/// Longest wait for a new process: more than it is given to start and to serve.
const UPGRADE_WAIT_MAX: Duration = Duration::from_secs(20);

/// Time for the new number in the PID file after the old process has ended.
const ENDED_WAIT: Duration = Duration::from_secs(1);

/// Interval at which the PID file is read meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Sends `SIGHUP`.
pub(crate) fn reload(running: &Running) -> Result<(), Failure> {
    let pid = find(&running.process)?;
    send(pid, Signal::HUP)?;
    report::print(&format!("process {pid} reloads; its log has the result\n"))
}

/// Sends `SIGUSR2`. Waits for another number in the PID file, if one is given.
pub(crate) fn upgrade(running: &Running) -> Result<(), Failure> {
    let pid = find(&running.process)?;
    send(pid, Signal::USR2)?;
    if is_number(&running.process) {
        return report::print(&format!("process {pid} starts a new one; its log has the result\n"));
    }
    let error = match await_other(Path::new(&running.process), pid) {
        Waited::Other(new) => return report::print(&format!("process {new} serves now\n")),
        Waited::Ended => format!("process {pid} has ended, and no other serves"),
        Waited::Late => format!("no new process within {} s: {pid} may serve on", UPGRADE_WAIT_MAX.as_secs()),
    };
    Err(Failure { code: 1, ..Failure::helped(error, "the server's log has the reason") })
}

/// The result of waiting for a new process.
enum Waited {
    Other(Pid),
    /// The old process has ended without one.
    Ended,
    Late,
}

/// Waits for another number in a PID file.
fn await_other(file: &Path, pid: Pid) -> Waited {
    let mut end = Instant::now() + UPGRADE_WAIT_MAX;
    let mut has_ended = false;
    while Instant::now() < end {
        match read(file) {
            Ok(new) if new != pid => return Waited::Other(new),
            // A server that nobody succeeds has removed it.
            Err(_) if has_ended => return Waited::Ended,
            _ => thread::sleep(POLL_INTERVAL),
        }
        if !has_ended && test_kill_process(pid).is_err() {
            (has_ended, end) = (true, Instant::now() + ENDED_WAIT);
        }
    }
    if has_ended { Waited::Ended } else { Waited::Late }
}

fn is_number(process: &str) -> bool {
    process.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the process with this number, or whose number is in this file.
fn find(process: &str) -> Result<Pid, Failure> {
    let pid = if is_number(process) { parse(process) } else { read(Path::new(process)) };
    let pid = pid.map_err(|error| Failure { code: 1, ..Failure::start(error) })?;
    check_program(pid).map_err(|error| Failure { code: 1, ..error })?;
    Ok(pid)
}

fn read(file: &Path) -> Result<Pid, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    parse(text.trim()).map_err(|error| format!("{}: {error}", file.display()))
}

fn parse(text: &str) -> Result<Pid, String> {
    // A negative number is a group of processes, or all of them.
    let pid = text.parse().ok().filter(|_| is_number(text)).and_then(Pid::from_raw);
    pid.ok_or_else(|| format!("not the number of a process: {text:?}"))
}

/// Checks that a process is this program, where the system says so: a PID file may be old, and the signal would end
/// others.
fn check_program(pid: Pid) -> Result<(), Failure> {
    let name = |process: &str| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    match (name("self"), name(&pid.to_string())) {
        (Some(mine), Some(other)) if mine != other => Err(Failure::helped(
            format!("process {pid} is {}, not {}", other.trim_end(), mine.trim_end()),
            "the PID file may be of a server that was killed",
        )),
        (Some(_), None) => Err(Failure::start(format!("there is no process {pid}"))),
        _ => Ok(()),
    }
}

fn send(pid: Pid, signal: Signal) -> Result<(), Failure> {
    kill_process(pid, signal).map_err(|errno| Failure {
        code: 1,
        ..Failure::start(format!("can't signal process {pid}: {errno}"))
    })
}
