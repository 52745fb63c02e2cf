//! A case and its environment: its programs, its folder, its amount of work.

use std::fs;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use testkit::{Client, Error, Program, Response, free_address, random};

use crate::report::CaseReport;
use crate::{DriverName, E2eArgs};

/// The tested programs.
#[derive(Debug)]
pub(crate) struct TestedPrograms {
    /// `shearwater`.
    pub(crate) server: PathBuf,
    /// The example `trial_server`, whose routes accept bodies, wait and panic.
    pub(crate) example: PathBuf,
}

/// Runs a case. An error means that it could not run.
pub(crate) type RunCase = dyn Fn(&CaseContext<'_>, &mut CaseReport) -> anyhow::Result<()>;

/// A test of the built server.
pub(crate) struct TestCase {
    /// Group that the case is run with.
    pub(crate) group: &'static str,
    /// Name inside the group.
    pub(crate) name: String,
    /// Line in `--list`.
    pub(crate) about: String,
    pub(crate) run: Box<RunCase>,
}

/// The environment of one run of a case.
#[derive(Debug, Clone)]
pub(crate) struct CaseContext<'a> {
    pub(crate) programs: &'a TestedPrograms,
    pub(crate) driver: DriverName,
    pub(crate) workers: u32,
    /// Seed, amount of work, and what the case may write.
    pub(crate) args: &'a E2eArgs,
    /// A temporary folder of its own.
    pub(crate) folder: &'a Path,
}

impl CaseContext<'_> {
    /// Chooses a count.
    pub(crate) fn count(&self, quick: u64, full: u64) -> u64 {
        if self.args.full { full } else { quick }
    }

    /// Chooses a duration in seconds, unless the command line has one.
    pub(crate) fn seconds(&self, quick: u64, full: u64) -> Duration {
        Duration::from_secs(self.args.seconds.unwrap_or_else(|| self.count(quick, full)))
    }

    /// Starts the example; `settings` are further environment variables.
    pub(crate) fn example(&self, settings: &[(&str, u64)]) -> anyhow::Result<Program> {
        let mut command = Command::new(&self.programs.example);
        let address = free_address()?;
        command.env("SHEARWATER_LISTEN", address.to_string());
        command.env("SHEARWATER_WORKERS", self.workers.to_string());
        command.env("SHEARWATER_DRIVER", self.driver.name());
        command.envs(settings.iter().map(|(name, value)| (name, value.to_string())));
        let log = self.folder.join(format!("example-{}.log", address.port()));
        Program::start(command, address, &log).context("trial_server")
    }

    /// Starts the server on the folder `root`.
    pub(crate) fn serve(&self, root: &Path) -> anyhow::Result<Program> {
        let mut command = Command::new(&self.programs.server);
        command.arg(root);
        self.start_server(command)
    }

    /// Starts the server by a command that lacks address, workers and driver.
    pub(crate) fn start_server(&self, mut command: Command) -> anyhow::Result<Program> {
        let address = free_address()?;
        command.args(["--listen", &address.to_string()]);
        self.start_configured(command, address)
    }

    /// Starts the server by a command that lacks workers and driver.
    pub(crate) fn start_configured(
        &self,
        mut command: Command,
        address: SocketAddr,
    ) -> anyhow::Result<Program> {
        command.args(["--workers", &self.workers.to_string(), "--driver", self.driver.name()]);
        let log = self.folder.join(format!("server-{}.log", address.port()));
        Program::start(command, address, &log).context("shearwater")
    }

    /// Writes a file below the case's folder, with its parents.
    pub(crate) fn write_file(&self, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(self.folder))?;
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Returns a generator for one part of the case.
    pub(crate) fn random(&self, part: u64) -> random::Rng {
        random::part(self.args.seed, part)
    }

    /// The same with one worker.
    pub(crate) fn with_one_worker(&self) -> Self {
        Self { workers: 1, ..self.clone() }
    }
}

/// A client that keeps its connection as long as the server does.
#[derive(Debug)]
pub(crate) struct KeptClient {
    address: SocketAddr,
    client: Option<Client>,
}

impl KeptClient {
    /// A client without a connection yet.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, client: None }
    }

    /// Sends a request on the kept or a new connection. If the response announces the end, the end must come without a reset.
    pub(crate) fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[&str],
    ) -> Result<Response, Error> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(self.address)?,
        };
        let response = client.request(method, target, headers)?;
        if response.head.closes() {
            client.end()?;
        } else {
            self.client = Some(client);
        }
        Ok(response)
    }
}

/// Runs `work` on `count` threads, with their numbers.
pub(crate) fn in_threads<T: Send>(count: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
