//! Processes on cores of their own, and their children.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The server's core.
pub const SERVER_CORE: usize = 0;
/// The client's.
pub const CLIENT_CORE: usize = 1;

/// How long a server may take to listen, and to end when asked.
const START: Duration = Duration::from_secs(10);
const END: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Ports of servers: below those that the kernel gives to clients, so that none of these is ever in the way.
const PORTS: std::ops::Range<u16> = 20_100..30_000;

/// What to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program, a path or a name to be looked up.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What is added to its environment.
    pub environment: Vec<(&'static str, String)>,
}

impl Launch {
    /// The lab itself as a client, with its arguments in one line.
    ///
    /// # Errors
    /// The system does not say where this program lies.
    pub fn of_client(arguments: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let arguments = arguments.split(' ').map(str::to_owned).collect();
        Ok(Self { program, arguments, environment: Vec::new() })
    }

    /// Runs a client to its end, on its core, and reads what it has printed.
    ///
    /// # Errors
    /// It failed or printed something else, with what it said last.
    pub fn counts<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, String> {
        let output = self.on_core(CLIENT_CORE).output().map_err(|error| format!("taskset: {error}"))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let counts = if output.status.success() { parse(&printed) } else { None };
        counts.ok_or_else(|| {
            let name = self.program.file_name().map_or(Path::new("client"), Path::new).display();
            format!("{name}: {}: {}", output.status, last_words(&output.stderr))
        })
    }

    /// The command that runs it on one core.
    pub fn on_core(&self, core: usize) -> Command {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(core.to_string()).arg(&self.program).args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// As one would type it.
    pub fn line(&self) -> String {
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let program = std::iter::once(self.program.display().to_string());
        environment.chain(program).chain(self.arguments.iter().cloned()).collect::<Vec<_>>().join(" ")
    }
}

/// A running server; dropped, it ends.
#[derive(Debug)]
pub struct Server {
    child: Child,
    ids: Vec<u32>,
}

impl Server {
    /// Starts it on its core and waits until it accepts connections.
    ///
    /// # Errors
    /// It cannot be started, ends, or does not listen in time; with what it said last.
    pub fn start(launch: &Launch, address: SocketAddr, log: &Path) -> Result<Self, String> {
        Self::start_within(START, launch, address, log)
    }

    /// The same for one that may take longer or less long.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_within(
        patience: Duration,
        launch: &Launch,
        address: SocketAddr,
        log: &Path,
    ) -> Result<Self, String> {
        let mut command = launch.on_core(SERVER_CORE);
        let errors = fs::File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn();
        let child = spawned.map_err(|error| format!("taskset: {error}"))?;
        let mut server = Self { child, ids: Vec::new() };
        let end = Instant::now() + patience;
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                let last = last_words(&fs::read(log).unwrap_or_default());
                return Err(format!("did not start ({status}): {last}"));
            }
            if Instant::now() > end {
                return Err(format!("did not listen within {patience:?}: {}", launch.line()));
            }
            thread::sleep(LOOK_AGAIN);
        }
        server.find_processes();
        Ok(server)
    }

    /// Looks for its processes anew: one that listens before it starts its workers may have been alone at first.
    pub fn find_processes(&mut self) {
        self.ids = family(self.child.id());
    }

    /// Tells it to end, and waits so long before it is killed.
    pub fn end_within(&mut self, patience: Duration) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        signal(self.child.id(), Signal::TERM);
        let end = Instant::now() + patience;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > end {
                self.ids.iter().for_each(|id| signal(*id, Signal::KILL));
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Its processes.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_within(END);
    }
}

/// The last line that a program has said.
pub(crate) fn last_words(said: &[u8]) -> String {
    String::from_utf8_lossy(said).lines().last().unwrap_or("it said nothing").to_owned()
}

fn signal(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// The process and all that it has started.
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

/// The parent in a `/proc/PID/stat`: the name before it may hold anything, but ends with the last parenthesis.
pub fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// CPU time of this process's ended children in milliseconds, in ticks of ten.
pub fn children_cpu_ms() -> u64 {
    let ticks = |stat: &str| -> Option<u64> {
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(13);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    };
    /// Linux shows times in hundredths of a second, whatever it counts in.
    const TICK_MS: u64 = 10;
    fs::read_to_string("/proc/self/stat").ok().and_then(|stat| ticks(&stat)).unwrap_or(0) * TICK_MS
}

/// A loopback address whose port is free. Each block has another one: rings let go of theirs late.
///
/// # Errors
/// No port is free.
pub fn free_address(next: &mut u16) -> Result<SocketAddr, String> {
    for _ in PORTS {
        let port = PORTS.start + *next % (PORTS.end - PORTS.start);
        *next = next.wrapping_add(1);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err("no port is free".to_owned())
}
