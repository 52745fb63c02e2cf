//! The environment of a case: its programs, its folder, its amount of work.

use std::fs;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use testkit::{Client, Error, Program, Response, free_address, process, random};

use crate::{Amount, Driver};

/// The tested programs.
#[derive(Debug)]
pub(crate) struct Programs {
    /// `shearwater`.
    pub(crate) server: PathBuf,
    /// The example `trial_server`, whose routes accept bodies, wait and panic.
    pub(crate) example: PathBuf,
    /// The example `smallest`, one closure for every request.
    pub(crate) smallest: PathBuf,
}

/// The environment of one run of a case.
#[derive(Debug, Clone)]
pub(crate) struct CaseContext<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) driver: Driver,
    pub(crate) workers: u32,
    pub(crate) seed: u64,
    pub(crate) amount: Amount,
    /// Writes documents that the case generates.
    pub(crate) write: bool,
    /// A temporary folder of its own.
    pub(crate) folder: &'a Path,
}

impl Programs {
    /// Starts the example; `settings` are further environment variables.
    pub(crate) fn start_example(
        &self,
        driver: Driver,
        workers: u32,
        settings: &[(&str, u64)],
        folder: &Path,
    ) -> anyhow::Result<Program> {
        let mut command = Command::new(&self.example);
        let address = free_address()?;
        command.env("SHEARWATER_LISTEN", address.to_string());
        command.env("SHEARWATER_WORKERS", workers.to_string());
        command.env("SHEARWATER_DRIVER", driver.name());
        command.envs(settings.iter().map(|(name, value)| (name, value.to_string())));
        let log = folder.join(format!("example-{}.log", address.port()));
        Program::start(command, address, &log).context("trial_server")
    }
}

impl CaseContext<'_> {
    /// Starts the example; `settings` are further environment variables.
    pub(crate) fn example(&self, settings: &[(&str, u64)]) -> anyhow::Result<Program> {
        self.programs.start_example(self.driver, self.workers, settings, self.folder)
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
        command.args(["--listen", &address.to_string(), "--workers", &self.workers.to_string()]);
        command.args(["--driver", self.driver.name()]);
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
        random::part(self.seed, part)
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

/// Polls until `condition` holds. Returns false after `timeout`.
pub(crate) fn wait_until(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Memory and descriptors of a process at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) rss_kib: Option<u64>,
    pub(crate) descriptors: Option<u64>,
}

impl Usage {
    /// Measures a process.
    pub(crate) fn of(server: &Program) -> Self {
        let pid = server.pid();
        Self { rss_kib: process::rss_kib(pid), descriptors: process::descriptors(pid) }
    }

    /// Measures a process once it has no more descriptors than before, or after `timeout`.
    pub(crate) fn settled(server: &Program, before: Self, timeout: Duration) -> Self {
        wait_until(timeout, || process::descriptors(server.pid()) <= before.descriptors);
        Self::of(server)
    }
}

/// The share of one core that was used between two readings of CPU time, per cent.
pub(crate) fn core_percent(before: Option<u64>, after: Option<u64>, elapsed: Duration) -> Option<f64> {
    Some(100.0 * after?.saturating_sub(before?) as f64 / elapsed.as_nanos().max(1) as f64)
}
