//! The control plane: bind, choose a driver, start a thread per core, and wait for them.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shearwater_io::listen::{self, ListenOptions};
use shearwater_io::os::{self, DescriptorLimit};
use shearwater_io::poll::{Poll, PollOptions};

use crate::app::App;
use crate::control::{Control, Notice};
use crate::counters::Totals;
use crate::limits::{Limits, Timeouts};
use crate::panics;
use crate::worker::{Setup, Worker};

/// Descriptors kept back from connections, for listeners, drivers and the files being served: an eighth, and at least
/// this many.
const DESCRIPTORS_RESERVED_MIN: u64 = 256;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Addresses to listen on. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Threads that serve; 0: one per core that the process may use.
    pub workers: usize,
    /// Which driver.
    pub driver: DriverChoice,
    /// Whether each worker keeps to one core.
    pub pin: bool,
    /// Connections that may wait to be accepted, per worker; the kernel has its own bound.
    pub backlog: u32,
    /// What a worker holds back.
    pub limits: Limits,
    /// How long a worker waits.
    pub timeouts: Timeouts,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 8080))],
            workers: 0,
            driver: DriverChoice::Auto,
            pin: false,
            backlog: 4096,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
        }
    }
}

/// Which driver to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriverChoice {
    /// The best that works here; it is reported which.
    #[default]
    Auto,
    /// `epoll`, on Linux.
    Epoll,
    /// `io_uring`, on Linux.
    Uring,
    /// `kqueue`, on macOS and the BSDs.
    Kqueue,
}

/// What a server has found and settled at its start, for the operator.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// Addresses bound, with the ports taken.
    pub addresses: Vec<SocketAddr>,
    /// The driver in use.
    pub driver: &'static str,
    /// Why that one.
    pub driver_reason: String,
    /// Threads that serve.
    pub workers: usize,
    /// The limit of descriptors, as found and as raised.
    pub descriptors: DescriptorLimit,
    /// Connections that all workers together hold.
    pub connections_max: usize,
    /// Accept queue asked for.
    pub backlog: u32,
    /// The kernel's bound of an accept queue, where it says.
    pub backlog_max: Option<u32>,
}

/// Why a server could not start. Displays as one sentence.
#[derive(Debug)]
pub enum StartError {
    /// An address can't be bound.
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The driver that was asked for isn't there.
    Driver {
        /// What is missing, and what to do.
        why: String,
    },
    /// A worker can't be pinned to a core.
    Pin(io::Error),
    /// No address was given.
    NoAddress,
    /// The system refused a driver or a thread.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { address, error } if error.kind() == io::ErrorKind::AddrInUse => {
                write!(f, "{address} is taken by another program: choose another port, or end that program")
            }
            Self::Bind { address, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(f, "{address}: this user may not listen there (ports below 1024 need a privilege)")
            }
            Self::Bind { address, error } => write!(f, "can't listen on {address}: {error}"),
            Self::Driver { why } => f.write_str(why),
            Self::Pin(error) => write!(f, "can't pin a worker to its core: {error}"),
            Self::NoAddress => f.write_str("no address to listen on"),
            Self::System(error) => write!(f, "the system refused to start a worker: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A server whose addresses are bound: connections already queue up, nobody serves them yet.
pub struct Server {
    options: Options,
    /// One set of listeners per worker.
    listeners: Vec<Vec<TcpListener>>,
    acceptance: Acceptance,
}

impl Server {
    /// Binds the addresses, raises the limit of descriptors and settles the driver.
    ///
    /// # Errors
    /// See [`StartError`]. Nothing is left bound then.
    pub fn bind(options: Options) -> Result<Self, StartError> {
        let (driver, driver_reason) = choose_driver(options.driver)?;
        if options.listen.is_empty() {
            return Err(StartError::NoAddress);
        }
        let workers = if options.workers == 0 { os::cores().len() } else { options.workers };
        let descriptors = os::raise_descriptor_limit(u64::MAX)
            // A sandbox may forbid it: the limit that was found will do.
            .or_else(|_| os::raise_descriptor_limit(0))
            .map_err(StartError::System)?;
        let (addresses, listeners) = bind_all(&options, workers)?;
        let acceptance = Acceptance {
            addresses,
            driver,
            driver_reason,
            workers,
            descriptors,
            connections_max: connections_max(&options.limits, descriptors, workers) * workers,
            backlog: options.backlog,
            backlog_max: os::listen_backlog_max(),
        };
        Ok(Self { options, listeners, acceptance })
    }

    /// What was found and settled.
    #[must_use]
    pub fn acceptance(&self) -> &Acceptance {
        &self.acceptance
    }

    /// Starts the workers. `make_app` is called once on each worker's own thread, with its number.
    ///
    /// # Errors
    /// See [`StartError`]. Workers that have started are stopped then.
    pub fn start<A: App + 'static>(
        self,
        make_app: impl Fn(usize) -> A + Send + Sync + 'static,
    ) -> Result<Running, StartError> {
        let (control, notices) = Control::new();
        let control = Arc::new(control);
        let make_app = Arc::new(make_app);
        let limits = Limits {
            connections_max: connections_max(
                &self.options.limits,
                self.acceptance.descriptors,
                self.acceptance.workers,
            ),
            ..self.options.limits
        };
        let first = Setup::new(0, limits, self.options.timeouts, Arc::clone(&control));
        let cores = os::cores();
        let mut running = Running { control, notices, threads: Vec::new(), acceptance: self.acceptance };
        for (worker, listeners) in self.listeners.into_iter().enumerate() {
            let setup = Setup { worker, ..first.clone() };
            let core = self.options.pin.then(|| cores[worker % cores.len()]);
            match spawn(setup, listeners, core, Arc::clone(&make_app)) {
                Ok(thread) => running.threads.push(thread),
                Err(error) => {
                    running.control.stop();
                    // The error that stopped the start is the one to tell.
                    drop(running.wait());
                    return Err(error);
                }
            }
        }
        Ok(running)
    }
}

/// A server that serves. Dropping it lets the workers go on: end them with [`Control::drain`] or [`Control::stop`].
pub struct Running {
    control: Arc<Control>,
    notices: Receiver<Notice>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    acceptance: Acceptance,
}

impl Running {
    /// The handle to drain, stop and count with, from any thread.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// What was found and settled at the start.
    #[must_use]
    pub fn acceptance(&self) -> &Acceptance {
        &self.acceptance
    }

    /// The next thing that a worker has to say, within `patience`.
    pub fn notice(&self, patience: Duration) -> Option<Notice> {
        self.notices.recv_timeout(patience).ok()
    }

    /// The first worker that has not ended.
    #[must_use]
    pub fn unended(&self) -> Option<usize> {
        self.threads.iter().position(|thread| !thread.is_finished())
    }

    /// Whether every worker has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until every worker has ended.
    ///
    /// # Errors
    /// The first worker that ended other than by plan.
    pub fn wait(self) -> Result<Summary, Failure> {
        let mut failure = None;
        for (worker, thread) in self.threads.into_iter().enumerate() {
            let why = match thread.join() {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(payload) => panics::message(payload.as_ref()),
            };
            failure.get_or_insert(Failure { worker, why });
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Summary { totals: self.control.totals() }),
        }
    }
}

/// What a server has done, told at its end.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// All workers' counters.
    pub totals: Totals,
}

/// A worker has ended other than by plan: a fault of this program or of the system.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Which worker.
    pub worker: usize,
    /// Why.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} has failed: {}", self.worker, self.why)
    }
}

impl std::error::Error for Failure {}

/// The driver for a choice, and why.
fn choose_driver(choice: DriverChoice) -> Result<(&'static str, String), StartError> {
    let here = shearwater_io::poll::NAME;
    let missing = |wanted: &str, why: &str| {
        Err(StartError::Driver {
            why: format!("driver {wanted} isn't there: {why}; --driver auto takes {here}"),
        })
    };
    match choice {
        DriverChoice::Auto => Ok((here, "the readiness driver of this system".to_owned())),
        DriverChoice::Epoll if here == "epoll" => Ok((here, "as asked".to_owned())),
        DriverChoice::Kqueue if here == "kqueue" => Ok((here, "as asked".to_owned())),
        DriverChoice::Epoll => missing("epoll", "it is Linux's"),
        DriverChoice::Kqueue => missing("kqueue", "it is macOS's and the BSDs'"),
        DriverChoice::Uring => missing("uring", "this version has no io_uring driver"),
    }
}

/// Connections that one worker may hold.
fn connections_max(limits: &Limits, descriptors: DescriptorLimit, workers: usize) -> usize {
    let limit = descriptors.soft_now;
    let reserved = (limit / 8).max(DESCRIPTORS_RESERVED_MIN).min(limit / 2);
    let for_connections = limit - reserved;
    let share = usize::try_from(for_connections).unwrap_or(usize::MAX).div_ceil(workers);
    limits.connections_max.min(share).max(1)
}

/// Binds every address once per worker.
fn bind_all(
    options: &Options,
    workers: usize,
) -> Result<(Vec<SocketAddr>, Vec<Vec<TcpListener>>), StartError> {
    let mut addresses = Vec::new();
    let mut listeners: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
    for &wanted in &options.listen {
        let failed = |error| StartError::Bind { address: wanted, error };
        let address = listen::probe(wanted, false).map_err(failed)?;
        let how =
            ListenOptions { backlog: options.backlog, reuse_port: workers > 1, ..ListenOptions::default() };
        for of_worker in &mut listeners {
            of_worker.push(listen::bind(address, how).map_err(failed)?);
        }
        addresses.push(address);
    }
    Ok((addresses, listeners))
}

fn spawn<A: App + 'static>(
    setup: Setup,
    listeners: Vec<TcpListener>,
    core: Option<usize>,
    make_app: Arc<impl Fn(usize) -> A + Send + Sync + 'static>,
) -> Result<JoinHandle<io::Result<()>>, StartError> {
    let options = PollOptions {
        connections_max: setup.limits.connections_max,
        recv_buffer_bytes: setup.limits.receive_bytes,
    };
    let (started, has_started) = std::sync::mpsc::sync_channel(1);
    let thread = thread::Builder::new().name(format!("worker-{}", setup.worker)).spawn(move || {
        // A driver stays on the thread that made it.
        let driver = match prepare(listeners, options, core) {
            Ok(driver) => driver,
            Err(error) => {
                // Nobody waits for it only if the starting thread is gone.
                drop(started.send(Err(error)));
                return Ok(());
            }
        };
        drop(started.send(Ok(())));
        serve(driver, &*make_app, setup)
    });
    let thread = thread.map_err(StartError::System)?;
    match has_started.recv() {
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) | Err(_) => Ok(thread),
    }
}

/// What a worker's thread needs before it can serve.
fn prepare(
    listeners: Vec<TcpListener>,
    options: PollOptions,
    core: Option<usize>,
) -> Result<Poll, StartError> {
    if let Some(core) = core {
        os::pin_to_core(core).map_err(StartError::Pin)?;
    }
    panics::print_first_only();
    Poll::new(listeners, options).map_err(StartError::System)
}

/// A worker's life. However it ends, the operator is told.
fn serve<A: App>(driver: Poll, make_app: &impl Fn(usize) -> A, setup: Setup) -> io::Result<()> {
    let (number, control) = (setup.worker, Arc::clone(&setup.control));
    let caught = panics::catch(|| Worker::new(driver, make_app(number), setup).run());
    let result = caught.unwrap_or_else(|message| Err(io::Error::other(message)));
    let error = result.as_ref().err().map(ToString::to_string);
    // Nobody reads only if the operator's side is gone: then there is nobody to tell.
    control.tell(Notice::WorkerEnded { worker: number, error });
    result
}
