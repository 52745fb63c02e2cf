//! `shearwater reload` and `shearwater upgrade`: commands to a running server, or signals.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, test_kill_process};

use crate::args::{Reload, Running};
use crate::control::Outcome;
use crate::failure::Failure;
use crate::report;
use crate::running_server::{RunningServer, read};

/// Time for the new number in the PID file after the old process has ended.
const ENDED_WAIT: Duration = Duration::from_secs(1);

/// Interval at which the PID file is read meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Has a server reload, by its control socket or by `SIGHUP`, or only check whether it could.
pub(crate) fn reload(Reload { running, check }: &Reload) -> Result<(), Failure> {
    let server = RunningServer::find(running)?;
    let pid = server.pid;
    let command = if *check { "check" } else { "reload" };
    let Some(reply) = server.ask(command, Vec::new(), running.timeout) else {
        if *check {
            let help = "`shearwater check FILE` checks a file without a server";
            return Err(Failure::system(
                "only a server with a control socket can check",
                Some(help.to_owned()),
            ));
        }
        server.signal(Signal::HUP)?;
        return report::print(&format!(
            "sent SIGHUP to process {pid}; the outcome isn't known here: its log has it\n"
        ));
    };
    match reply.outcome {
        Outcome::Done => report::print(&format!("{}\n", reply.text)),
        Outcome::Incomplete => {
            Err(Failure::system(format!("{}, but a worker doesn't have it yet", reply.text), None))
        }
        _ => Err(server.failure(reply, command, running.timeout)),
    }
}

/// Has a server start its new version, by its control socket or by `SIGUSR2`. Waits for another number in the PID file, if
/// one is given.
pub(crate) fn upgrade(running: &Running) -> Result<(), Failure> {
    let server = RunningServer::find(running)?;
    let pid = server.pid;
    let before = server.pid_file.as_deref().and_then(identity);
    let Some(reply) = server.ask("upgrade", Vec::new(), running.timeout) else {
        server.signal(Signal::USR2)?;
        return match &server.pid_file {
            Some(file) => report_other(file, pid, before, running.timeout),
            None => report::print(&format!(
                "sent SIGUSR2 to process {pid}; the outcome isn't known here: its log has it\n"
            )),
        };
    };
    match (reply.outcome, reply.process.and_then(|new| Pid::from_raw(new.cast_signed()))) {
        (Outcome::Done, Some(new)) => {
            if let Some(file) = &server.pid_file {
                await_number(file, new);
            }
            report::print(&format!("process {new} serves now\n"))
        }
        (Outcome::Refused, _) => {
            let help = "the server's log has the messages of the new process";
            Err(Failure::system(reply.text, Some(help.to_owned())))
        }
        _ => Err(server.failure(reply, "upgrade", running.timeout)),
    }
}

/// Waits for another number in a PID file after `SIGUSR2`, and reports it.
fn report_other(
    file: &Path,
    pid: Pid,
    before: Option<(u64, SystemTime)>,
    timeout: Duration,
) -> Result<(), Failure> {
    let error = match await_other(file, pid, before, timeout) {
        Waited::Other(new) => return report::print(&format!("process {new} serves now\n")),
        Waited::Refused => format!("no new process: {pid} serves on"),
        Waited::Ended => format!("process {pid} has ended, and no other serves"),
        Waited::Late => format!("no new process within {timeout:?}: {pid} may serve on"),
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

/// Waits for this number in a PID file: the process serves already.
fn await_number(file: &Path, pid: Pid) {
    let end = Instant::now() + ENDED_WAIT;
    while read(file) != Ok(pid) && Instant::now() < end {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits for another number in a PID file, which had this identity.
fn await_other(file: &Path, pid: Pid, before: Option<(u64, SystemTime)>, timeout: Duration) -> Waited {
    let mut end = Instant::now() + timeout;
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::thread;

    use rustix::process::Pid;
    use testkit::{TIMEOUT, TestFolder};

    use super::{Waited, await_other, identity};

    #[test]
    fn the_wait_ends_with_the_process() {
        let folder = TestFolder::new();
        let mut process = Command::new("sleep").arg("60").spawn().expect("it starts");
        let pid = Pid::from_child(&process);
        folder.file("pid", pid.to_string());
        let file = folder.at("pid");
        let before = identity(&file);
        let waited = thread::scope(|scope| {
            let waiting = scope.spawn(|| await_other(&file, pid, before, TIMEOUT));
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
        assert!(matches!(await_other(&folder.at("pid"), pid, before, TIMEOUT), Waited::Refused));
        folder.file("pid", "1");
        assert!(matches!(await_other(&folder.at("pid"), pid, before, TIMEOUT), Waited::Other(Pid::INIT)));
    }
}
