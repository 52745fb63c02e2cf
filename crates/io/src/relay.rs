//! Starting a program as a child of the service manager instead of this process.
//!
//! systemd waits for the end of its own children only: a main process that isn't one is killed at a stop, without the time
//! to drain. So another process, the relay, is between this one and the program until the program serves. It waits for
//! the program and ends as it does. When it is ended instead, the system gives the program to the service manager.

#![expect(unsafe_code, reason = "a process forks once more between `fork` and `exec`")]

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::ptr;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};

use crate::os::descriptor_limits;

/// Added to the signal that has ended the program, in the relay's exit code: as shells do.
const SIGNALLED: i32 = 128;

/// Descriptors that are closed one by one where the system can't close all: far more than a server has.
const DESCRIPTORS_MAX: u64 = 1 << 20;

/// A program that was started, with or without a relay.
#[derive(Debug)]
pub struct StartedProgram {
    /// The program, or its relay.
    child: Child,
    /// The program behind a relay.
    relayed: Option<Pid>,
    /// A descriptor of that program, where the system has them: its number may become another process's.
    handle: Option<OwnedFd>,
}

impl StartedProgram {
    /// Starts a program, over a relay if it is to become a child of the service manager.
    ///
    /// # Errors
    /// Those of [`Command::spawn`].
    pub fn start(command: &mut Command, has_relay: bool) -> io::Result<Self> {
        if !has_relay {
            return Ok(Self { child: command.spawn()?, relayed: None, handle: None });
        }
        let (mut number, report) = io::pipe()?;
        let report_fd = report.as_raw_fd();
        // SAFETY: `relay` calls only what POSIX allows between `fork` and `exec`, and `fork`, which the process may call
        // because it has one thread and doesn't hold a lock of the C library. `report` is open until `spawn` has returned.
        unsafe { command.pre_exec(move || relay(report_fd)) };
        let mut child = command.spawn()?;
        drop(report);
        let mut bytes = [0; size_of::<libc::pid_t>()];
        let read = number.read_exact(&mut bytes).map(|()| Pid::from_raw(libc::pid_t::from_ne_bytes(bytes)));
        match read {
            Ok(Some(program)) => Ok(Self { child, relayed: Some(program), handle: handle_of(program) }),
            failed => {
                drop(child.kill().and_then(|()| child.wait()));
                Err(failed.err().unwrap_or_else(|| io::ErrorKind::InvalidData.into()))
            }
        }
    }

    /// Returns the program's process ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.relayed.map_or(self.child.id(), |program| program.as_raw_nonzero().get().cast_unsigned())
    }

    /// Returns true if there is a relay, or was one before [`release`](Self::release).
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        self.relayed.is_some()
    }

    /// Kills the program.
    ///
    /// # Errors
    /// If it has ended already.
    pub fn kill(&mut self) -> io::Result<()> {
        match (self.relayed, &self.handle) {
            #[cfg(target_os = "linux")]
            (Some(_), Some(handle)) => Ok(rustix::process::pidfd_send_signal(handle, Signal::KILL)?),
            (Some(program), _) => Ok(kill_process(program, Signal::KILL)?),
            (None, _) => self.child.kill(),
        }
    }

    /// Waits for the end of a program that was [released](Self::release). Returns false at once where the system can't
    /// tell.
    #[must_use]
    pub fn await_end(&self) -> bool {
        let Some(handle) = &self.handle else { return false };
        retry_on_intr(|| poll(&mut [PollFd::new(handle, PollFlags::IN)], None)).is_ok()
    }

    /// Waits for the program's end.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().map(|status| self.status_of(status))
    }

    /// Returns the program's status if it has ended.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?.map(|status| self.status_of(status)))
    }

    /// Returns the program's status: a relay states a signal by its exit code.
    fn status_of(&self, child: ExitStatus) -> ExitStatus {
        let signal = child.code().filter(|code| self.is_relayed() && *code > SIGNALLED);
        signal.map_or(child, |code| ExitStatus::from_raw(code - SIGNALLED))
    }

    /// Ends the relay. From then on the program is a child of the process that adopts orphans: the service manager.
    pub fn release(&mut self) {
        if self.is_relayed() {
            // A relay that has ended isn't in between.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Returns a descriptor of a process.
#[cfg(target_os = "linux")]
fn handle_of(program: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(program, rustix::process::PidfdFlags::empty()).ok()
}

/// This system has no descriptors of processes.
#[cfg(not(target_os = "linux"))]
fn handle_of(_: Pid) -> Option<OwnedFd> {
    None
}

/// Returns true if a process runs. One that has ended doesn't, even if nobody has waited for it yet.
#[must_use]
pub fn is_running(process: u32) -> bool {
    let Some(number) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        // The state follows the name, which may have parentheses.
        Ok(stat) => !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])),
        Err(_) => test_kill_process(number).is_ok(),
    }
}

/// Forks, in a process that is about to become the program. Returns in the new one, and waits for it in the old one.
fn relay(report: RawFd) -> io::Result<()> {
    // SAFETY: the process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        program => wait_for(program, report),
    }
}

/// Reports the number of the program, and ends with its exit code.
fn wait_for(program: libc::pid_t, report: RawFd) -> ! {
    block_signals();
    let number = program.to_ne_bytes();
    // The reader knows the length, and it is shorter than every pipe.
    // SAFETY: the bytes are a local variable.
    unsafe { libc::write(report, number.as_ptr().cast(), number.len()) };
    // Ends of pipes and sockets would hide from others that the program or the server has ended.
    // SAFETY: nothing in this copy of the server's memory is used any more.
    unsafe { close_all() };
    let status = waitpid(Pid::from_raw(program), WaitOptions::empty()).ok().flatten();
    let code = status.and_then(|(_, status)| {
        status.exit_status().or_else(|| status.terminating_signal().map(|signal| SIGNALLED + signal))
    });
    // SAFETY: it has no precondition.
    unsafe { libc::_exit(code.unwrap_or(1)) }
}

/// Blocks all signals: the server's handlers would act on its memory.
fn block_signals() {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: the pointer is to a local variable, which the call initialises.
    unsafe { libc::sigfillset(signals.as_mut_ptr()) };
    // SAFETY: the set is initialised; no previous one is asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, signals.as_ptr(), ptr::null_mut()) };
}

/// Closes all descriptors.
///
/// # Safety
/// Nothing may use a descriptor of this process any more.
unsafe fn close_all() {
    #[cfg(target_os = "linux")]
    // SAFETY: the caller's promise.
    if unsafe { libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32) } == 0 {
        return;
    }
    let most = descriptor_limits().map_or(DESCRIPTORS_MAX, |(soft, _)| soft.min(DESCRIPTORS_MAX));
    for fd in 0..most as RawFd {
        // SAFETY: the caller's promise.
        unsafe { libc::close(fd) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::{StartedProgram, is_running};

    #[test]
    fn a_process_that_nobody_has_waited_for_does_not_run() {
        let mut program = StartedProgram::start(Command::new("sleep").arg("60"), false).expect("it starts");
        assert!(is_running(program.id()) && is_running(std::process::id()));
        program.kill().expect("it runs");
        if fs::exists("/proc/self/stat").unwrap_or(false) {
            while is_running(program.id()) {
                std::thread::yield_now();
            }
        }
        program.wait().expect("a status");
        assert!(!is_running(program.id()));
    }

    fn parent_of(process: u32) -> String {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap_or_default().to_owned()
    }

    #[test]
    fn a_relay_ends_as_its_program_does() {
        for (script, code, signal) in
            [("exit 3", Some(3), None), ("kill -TERM $$", None, Some(15)), ("exit 0", Some(0), None)]
        {
            let mut program =
                StartedProgram::start(Command::new("sh").args(["-c", script]), true).expect("it starts");
            let status = program.wait().expect("a status");
            assert_eq!((status.code(), status.signal()), (code, signal), "{script}");
        }
        let error = StartedProgram::start(&mut Command::new("/none"), true).expect_err("there is none");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }

    #[test]
    fn a_program_that_is_released_has_another_parent() {
        if !fs::exists("/proc/self/status").unwrap_or(false) {
            return;
        }
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; exec sleep 60"]).stdout(Stdio::piped());
        let mut program = StartedProgram::start(&mut command, true).expect("it starts");
        let mut output = BufReader::new(program.child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it runs");
        let relay = program.child.id().to_string();
        assert_eq!((line.as_str(), parent_of(program.id())), ("begun\n", relay.clone()));
        program.release();
        let parent = parent_of(program.id());
        assert!(
            parent != relay && parent != std::process::id().to_string() && !parent.is_empty(),
            "{parent}"
        );
        program.kill().expect("it runs");
        line.clear();
        // Nobody else has the other end of its output.
        assert_eq!(output.read_line(&mut line).expect("its end"), 0);
        if program.await_end() {
            while is_running(program.id()) {
                std::thread::yield_now();
            }
            // The number may be another process's as soon as its parent has waited for it.
            let late = program.kill();
            assert!(late.is_ok() || late.is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH)));
        }
    }
}
