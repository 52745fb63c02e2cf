//! Processes on cores of their own, and their children.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use testkit::{Program, Signal};

pub(crate) const SERVER_CORE: usize = 0;
pub(crate) const CLIENT_CORE: usize = 1;
/// Time for a server to end after SIGTERM.
const END: Duration = Duration::from_secs(3);

/// A program to start.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// A path, or a name to look up.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Launch {
    pub(crate) fn new<A: Into<String>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, environment: Vec::new() }
    }

    /// Returns the command that runs it on one core.
    pub(crate) fn on_core(&self, core: usize) -> Command {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(core.to_string()).arg(&self.program).args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the command line as one would type it.
    pub(crate) fn line(&self) -> String {
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let program = std::iter::once(self.program.display().to_string());
        environment.chain(program).chain(self.arguments.iter().cloned()).collect::<Vec<_>>().join(" ")
    }
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
pub(crate) struct Server {
    program: Program,
    ids: Vec<u32>,
}

impl Server {
    /// Starts it on its core and waits until it accepts connections.
    pub(crate) fn start(launch: &Launch, address: SocketAddr, log: &Path) -> Result<Self, String> {
        let program = Program::start(launch.on_core(SERVER_CORE), address, log);
        let program = program.map_err(|error| format!("{}: {error}", launch.program.display()))?;
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
            for pid in self.ids.iter().filter_map(|id| Pid::from_raw(i32::try_from(*id).ok()?)) {
                // It may have ended by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        status.is_some_and(|status| status.success())
    }

    /// Returns the ids of its processes.
    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.program.is_alive() {
            self.end_within(END);
        }
    }
}

/// Returns a loopback address whose port is free. Each block has another port, since rings release theirs late.
pub(crate) fn free_address() -> Result<SocketAddr, String> {
    testkit::free_address().map_err(|error| format!("no free port: {error}"))
}

/// Returns a process and all its descendants.
fn family(first: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            Some((id, parent(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
        })
        .collect();
    let mut found = vec![first];
    let mut at = 0;
    while let Some(&id) = found.get(at) {
        found.extend(parents.iter().filter(|(_, parent)| *parent == id).map(|(child, _)| *child));
        at += 1;
    }
    found
}

/// Returns the parent in a `/proc/PID/stat`. The name before it may contain anything; it ends at the last parenthesis.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_descendants_under_any_name() {
        assert_eq!(parent("42 (a) R 1 (x) S 17 42"), Some(17));
        assert_eq!(parent("42 nginx"), None);
        let mut child = Command::new("sh").args(["-c", "sleep 3 & wait"]).spawn().expect("it starts");
        let is_found = (0..400).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            family(child.id()).len() == 2
        });
        for id in family(child.id()) {
            let _ = Pid::from_raw(id as i32).map(|pid| kill_process(pid, Signal::KILL));
        }
        child.wait().expect("it ended");
        assert!(is_found);
    }
}
