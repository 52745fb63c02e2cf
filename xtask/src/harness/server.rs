//! Starts the server under trial on a free loopback port, signals it and sees it end, always by its own process id.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub(crate) use rustix::process::Signal;

use super::common::Common;
use super::folder::Folder;
use super::report::Report;
use super::trouble::{During, Outcome};
use super::{process, program};

/// How long a started server may take until its port answers.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// How long a server without work may take to end after `SIGTERM`.
const STOP_PATIENCE: Duration = Duration::from_secs(15);
/// How often a condition is looked at while waiting.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How much of the log is shown when a server did not start, bytes.
const LOG_TAIL_MAX: usize = 2_000;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Starts the server program on the folder `root`; its log goes to `folder`.
    pub(crate) fn serve_folder(common: &Common, root: &Path, folder: &Folder) -> Outcome<Self> {
        let address = free_address()?;
        let mut command = Command::new(program::server(common)?);
        command.args(serving(common, root, address));
        Self::spawn(command, address, folder)
    }

    /// Like [`Server::serve_folder`], with at most so many descriptors: a shell sets the limit and becomes the server.
    pub(crate) fn serve_folder_with_descriptors(
        common: &Common,
        root: &Path,
        descriptors: u64,
        folder: &Folder,
    ) -> Outcome<Self> {
        let address = free_address()?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -n {descriptors} && exec \"$0\" \"$@\""));
        command.arg(program::server(common)?).args(serving(common, root, address));
        Self::spawn(command, address, folder)
    }

    /// Starts the example server with the trial routes; `settings` are further environment variables.
    pub(crate) fn example(common: &Common, settings: &[(&str, String)], folder: &Folder) -> Outcome<Self> {
        let address = free_address()?;
        let mut command = Command::new(program::example(common)?);
        command.env("SHEARWATER_LISTEN", address.to_string());
        command.env("SHEARWATER_WORKERS", common.workers.to_string());
        command.env("SHEARWATER_DRIVER", &common.driver);
        command.envs(settings.iter().map(|(name, value)| (name, value)));
        Self::spawn(command, address, folder)
    }

    /// Starts any other server; `tell` gives the command the address to listen on.
    pub(crate) fn start(
        mut command: Command,
        folder: &Folder,
        tell: impl FnOnce(&mut Command, SocketAddr),
    ) -> Outcome<Self> {
        let address = free_address()?;
        tell(&mut command, address);
        Self::spawn(command, address, folder)
    }

    fn spawn(mut command: Command, address: SocketAddr, folder: &Folder) -> Outcome<Self> {
        let log = folder.path().join(format!("server-{}.log", address.port()));
        let output = File::create(&log).during("making the server's log file")?;
        let errors = output.try_clone().during("sharing the server's log file")?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().during("starting the server")?;
        let mut server = Self { child, address, log };
        server.wait_until_it_answers()?;
        Ok(server)
    }

    fn wait_until_it_answers(&mut self) -> Outcome<()> {
        let deadline = Instant::now() + START_PATIENCE;
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.child.try_wait().during("looking after the server")? {
                return Err(format!("the server ended at start with {status}: {}", self.log_tail()).into());
            }
            if Instant::now() >= deadline {
                return Err(format!("no answer on {} after start: {}", self.address, self.log_tail()).into());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the process costs now.
    pub(crate) fn snapshot(&self) -> process::Snapshot {
        process::snapshot(self.pid())
    }

    /// True while the process has not ended.
    pub(crate) fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Outcome<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).during("signalling the server")
    }

    /// Waits for its end, at most `patience`.
    pub(crate) fn wait_for_end(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Where it logs, standard output and standard error together.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// How many bytes it has logged, standard output and standard error together.
    pub(crate) fn logged_bytes(&self) -> u64 {
        fs::metadata(&self.log).map_or(0, |meta| meta.len())
    }

    /// The last line it has logged.
    pub(crate) fn last_log_line(&self) -> String {
        self.log_tail().lines().last().unwrap_or_default().to_owned()
    }

    fn log_tail(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let start = bytes.len().saturating_sub(LOG_TAIL_MAX);
        String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
    }

    /// Ends it with `SIGTERM` and reports that it was alive until then and left with exit code 0.
    pub(crate) fn stop(mut self, report: &mut Report) -> Outcome<()> {
        let alive = self.alive();
        report.check("server alive at the end", yes_or_no(alive), "yes", alive);
        if !alive {
            return Ok(());
        }
        let started = Instant::now();
        self.signal(Signal::TERM)?;
        let status = self.wait_for_end(STOP_PATIENCE);
        let took_ms = started.elapsed().as_millis();
        let shown = status.map_or("still running".to_owned(), |status| status.to_string());
        let clean = status.is_some_and(|status| status.success());
        report.check(
            "server stopped by SIGTERM",
            format!("{shown} in {took_ms} ms"),
            "exit status: 0",
            clean,
        );
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.alive() {
            // By its own process id; if it is gone already there is nothing left to do.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The server program's arguments.
fn serving(common: &Common, root: &Path, address: SocketAddr) -> Vec<OsString> {
    let (address, workers) = (address.to_string(), common.workers.to_string());
    let options = ["--listen", &address, "--workers", &workers, "--driver", &common.driver];
    std::iter::once(root.into()).chain(options.map(OsString::from)).collect()
}

/// "yes" or "no".
pub(crate) fn yes_or_no(truth: bool) -> &'static str {
    if truth { "yes" } else { "no" }
}

/// A loopback address whose port was free a moment ago.
fn free_address() -> Outcome<SocketAddr> {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during("looking for a free port")?;
    probe.local_addr().during("looking for a free port")
}
