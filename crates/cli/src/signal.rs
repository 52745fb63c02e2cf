//! `shearwater reload` and `shearwater upgrade`: signals to a running server.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use shearwater::engine::written::read_own;

use crate::args::Running;
use crate::failure::Failure;
use crate::{pid_file, report};

/// Longest wait for a new process: more than it is given to start and to serve, after a reload that is still running.
const UPGRADE_WAIT_MAX: Duration = Duration::from_secs(45);

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
    let file = Path::new(&running.process);
    let before = identity(file);
    send(pid, Signal::USR2)?;
    if is_number(&running.process) {
        return report::print(&format!("process {pid} starts a new one; its log has the result\n"));
    }
    let error = match await_other(file, pid, before) {
        Waited::Other(new) => return report::print(&format!("process {new} serves now\n")),
        Waited::Refused => format!("no new process: {pid} serves on"),
        Waited::Ended => format!("process {pid} has ended, and no other serves"),
        Waited::Late => format!("no new process within {} s: {pid} may serve on", UPGRADE_WAIT_MAX.as_secs()),
    };
    Err(Failure::system(error, Some("the server's log has the reason".to_owned())))
}

/// The result of waiting for a new process.
enum Waited {
    Other(Pid),
    /// The old process has written its own number again.
    Refused,
    /// The old process has ended without one.
    Ended,
    Late,
}

/// Returns what tells a file from another one of the same name.
fn identity(file: &Path) -> Option<(u64, SystemTime)> {
    let found = fs::metadata(file).ok()?;
    Some((found.ino(), found.modified().ok()?))
}

/// Waits for another number in a PID file, which had this identity.
fn await_other(file: &Path, pid: Pid, before: Option<(u64, SystemTime)>) -> Waited {
    let mut end = Instant::now() + UPGRADE_WAIT_MAX;
    let mut has_ended = false;
    while Instant::now() < end {
        match read(file) {
            Ok(new) if new != pid => return Waited::Other(new),
            Ok(_) if identity(file) != before => return Waited::Refused,
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
    let pid = pid.map_err(|error| Failure::system(error, None))?;
    check_program(pid)?;
    Ok(pid)
}

fn read(file: &Path) -> Result<Pid, String> {
    let text = read_own(file, pid_file::LEN_MAX).map_err(|error| error.to_string());
    let pid = text.and_then(|(text, _)| parse(String::from_utf8_lossy(&text).trim()));
    pid.map_err(|error| format!("{}: {error}", file.display()))
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
        (Some(mine), Some(other)) if mine != other => Err(Failure::system(
            format!("process {pid} is {}, not {}", other.trim_end(), mine.trim_end()),
            Some("the PID file may be of a server that was killed".to_owned()),
        )),
        (Some(_), None) => Err(Failure::system(format!("there is no process {pid}"), None)),
        _ => Ok(()),
    }
}

fn send(pid: Pid, signal: Signal) -> Result<(), Failure> {
    kill_process(pid, signal)
        .map_err(|errno| Failure::system(format!("can't signal process {pid}: {errno}"), None))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use std::thread;

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use rustix::process::Pid;
    use testkit::TestFolder;

    use super::{Waited, await_other, identity, read};

    #[test]
    fn what_is_no_pid_file_is_an_error_at_once() {
        let folder = TestFolder::new();
        folder.file("long", "1".repeat(100)).file("number", "1");
        symlink("number", folder.at("link")).expect("a link");
        mknodat(CWD, folder.at("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
        for name in ["long", "link", "pipe"] {
            let error = read(&folder.at(name)).expect_err("not read");
            assert!(error.contains(name), "{error}");
        }
        assert_eq!(read(&folder.at("number")), Ok(Pid::INIT));
    }

    #[test]
    fn the_wait_ends_with_the_process() {
        let folder = TestFolder::new();
        let mut process = Command::new("sleep").arg("60").spawn().expect("it starts");
        let pid = Pid::from_child(&process);
        folder.file("pid", pid.to_string());
        let file = folder.at("pid");
        let before = identity(&file);
        let waited = thread::scope(|scope| {
            let waiting = scope.spawn(|| await_other(&file, pid, before));
            process.kill().and_then(|()| process.wait()).expect("it ends");
            waiting.join().expect("no panic")
        });
        assert!(matches!(waited, Waited::Ended));
    }

    #[test]
    fn the_same_number_in_another_file_is_a_refusal() {
        let folder = TestFolder::new();
        let pid = Pid::from_raw(std::process::id().cast_signed()).expect("a number");
        folder.file("pid", pid.to_string()).file("new", pid.to_string());
        let before = identity(&folder.at("pid"));
        fs::rename(folder.at("new"), folder.at("pid")).expect("renamed");
        assert!(matches!(await_other(&folder.at("pid"), pid, before), Waited::Refused));
        folder.file("pid", "1");
        assert!(matches!(await_other(&folder.at("pid"), pid, before), Waited::Other(Pid::INIT)));
    }
}
