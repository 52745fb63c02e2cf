//! `shearwater reload` and `shearwater upgrade`: signals to a running server.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::args::Running;
use crate::failure::Failure;
use crate::report;

/// Longest wait for a new process: more than it is given to start.
const UPGRADE_WAIT_MAX: Duration = Duration::from_secs(15);

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
    let start = Instant::now();
    while start.elapsed() < UPGRADE_WAIT_MAX {
        match read(Path::new(&running.process)) {
            Ok(new) if new != pid => return report::print(&format!("process {new} serves now\n")),
            _ => thread::sleep(POLL_INTERVAL),
        }
    }
    let error = format!("no new process within {} s: {pid} may serve on", UPGRADE_WAIT_MAX.as_secs());
    Err(Failure { code: 1, ..Failure::helped(error, "the server's log has the reason") })
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

/// Checks that a process is this program, where the system says so: a PID file may be old, and the signal would end others.
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
