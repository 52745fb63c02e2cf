//! A running server, as commands name it: by its PID file, or by the number of its process.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use shearwater::engine::written::read_own;

use crate::args::Running;
use crate::control::client::ask;
use crate::control::{self, Outcome, Reply, Request};
use crate::failure::Failure;
use crate::intent::is_config;
use crate::pid_file;

/// A server that a command names.
pub(crate) struct RunningServer {
    pub(crate) pid: Pid,
    /// Without one it has no control socket.
    pub(crate) pid_file: Option<PathBuf>,
}

impl RunningServer {
    /// Returns the process with this number, or whose number is in this file, or in the usual one.
    pub(crate) fn find(running: &Running) -> Result<Self, Failure> {
        let number = running.process.as_deref().filter(|process| is_number(process));
        let pid_file = match (&running.process, number) {
            (_, Some(_)) => None,
            (Some(file), None) => Some(PathBuf::from(file)),
            (None, None) => Some(pid_file::usual()?),
        };
        let pid = match (&pid_file, number) {
            (Some(file), _) => read(file),
            (None, number) => parse(number.unwrap_or_default()),
        };
        let pid = pid.map_err(|error| Failure::system(error, pid_file.as_deref().and_then(help)))?;
        check_program(pid)?;
        Ok(Self { pid, pid_file })
    }

    /// Sends a command to the server's control socket, and prints the details of the reply to standard error. Returns `None`
    /// without such a socket.
    pub(crate) fn ask(&self, command: &str, arguments: Vec<String>, timeout: Duration) -> Option<Reply> {
        let socket = control::path_of(self.pid_file.as_deref()?);
        let request = Request { command: command.to_owned(), arguments, timeout };
        let (reply, details) = match ask(&socket, &request) {
            Ok(reply) => (Some(reply.clone()), reply.details),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let text = format!("process {} accepts no commands", self.pid);
                (Some(Reply::new(Outcome::Unfinished, text)), String::new())
            }
            Err(error) => {
                (None, format!("warning: can't use the control socket {}: {error}\n", socket.display()))
            }
        };
        // If standard error is closed, the exit code remains.
        drop(io::stderr().write_all(details.as_bytes()));
        reply
    }

    /// Returns the error of a command that isn't done.
    pub(crate) fn failure(&self, reply: Reply, command: &str, timeout: Duration) -> Failure {
        let message = match reply.outcome {
            Outcome::Unfinished if reply.text.is_empty() => {
                format!("no result within {timeout:?}: process {} may still {command}", self.pid)
            }
            _ => reply.text,
        };
        let help = "the server's log has the result";
        Failure::system(message, (reply.outcome == Outcome::Unfinished).then(|| help.to_owned()))
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        kill_process(self.pid, signal)
            .map_err(|errno| Failure::system(format!("can't signal process {}: {errno}", self.pid), None))
    }
}

/// Returns whether a command names a process by its number.
fn is_number(process: &str) -> bool {
    process.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the process whose number is in a PID file.
pub(crate) fn read(file: &Path) -> Result<Pid, String> {
    let text = read_own(file, pid_file::LEN_MAX).map_err(|error| error.to_string());
    let pid = text.and_then(|(text, _)| parse(String::from_utf8_lossy(&text).trim()));
    pid.map_err(|error| format!("{}: {error}", file.display()))
}

/// Returns a way to the right file, if this one isn't that of a server.
fn help(file: &Path) -> Option<String> {
    if is_config(file) {
        return Some("this is the configuration: name the server's PID file (`--pid-file`)".to_owned());
    }
    (!file.exists()).then(|| "a server has the file that it was started with: `--pid-file FILE`".to_owned())
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use rustix::process::Pid;
    use testkit::TestFolder;

    use super::read;

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
}
