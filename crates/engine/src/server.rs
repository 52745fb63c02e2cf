//! The control plane: choose a driver, bind, start a thread per core.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use shearwater_io::listen::{self, ListenOptions};
use shearwater_io::os::{self, DescriptorLimit};
use shearwater_io::uring;

use crate::app::App;
use crate::control::Control;
use crate::limits::Limits;
use crate::options::{DriverChoice, Options};
use crate::running::Running;
use crate::start_error::StartError;
use crate::start_report::StartReport;
use crate::thread::spawn;
use crate::worker::Setup;

/// Descriptors kept back from connections, for listeners, drivers and the files being served: an eighth, and at least
/// this many.
const DESCRIPTORS_RESERVED_MIN: u64 = 256;

/// Descriptors that the process's table has room for from the start.
const DESCRIPTOR_TABLE_ENTRIES: u64 = 65_536;

/// A server whose addresses are bound: connections already queue up, nobody serves them yet.
pub struct Server {
    options: Options,
    /// One set of listeners per worker.
    listeners: Vec<Vec<TcpListener>>,
    start_report: StartReport,
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
        if let Some(any) = listeners.iter().flatten().next() {
            // Without it the first thousands of connections are accepted with pauses.
            drop(os::widen_descriptor_table(any, descriptors.soft_now.min(DESCRIPTOR_TABLE_ENTRIES)));
        }
        let start_report = StartReport {
            addresses,
            driver,
            driver_reason,
            workers,
            descriptors,
            connections_max: connections_max(&options.limits, descriptors, workers) * workers,
            backlog: options.backlog,
            backlog_max: os::listen_backlog_max(),
        };
        Ok(Self { options, listeners, start_report })
    }

    /// What was found and settled.
    #[must_use]
    pub fn start_report(&self) -> &StartReport {
        &self.start_report
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
                self.start_report.descriptors,
                self.start_report.workers,
            ),
            ..self.options.limits
        };
        let first = Setup::new(0, limits, self.options.timeouts, Arc::clone(&control));
        let cores = os::cores();
        let driver = self.start_report.driver;
        let mut running = Running { control, notices, threads: Vec::new(), start_report: self.start_report };
        for (worker, listeners) in self.listeners.into_iter().enumerate() {
            let setup = Setup { worker, ..first.clone() };
            let core = self.options.pin.then(|| cores[worker % cores.len()]);
            match spawn(setup, driver, listeners, core, Arc::clone(&make_app)) {
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

/// The driver for a choice, and why.
fn choose_driver(choice: DriverChoice) -> Result<(&'static str, String), StartError> {
    let here = shearwater_io::poll::NAME;
    let missing = |wanted: &str, why: &str| {
        Err(StartError::Driver {
            why: format!("driver {wanted} isn't there: {why}; --driver auto takes {here}"),
        })
    };
    match choice {
        DriverChoice::Auto => Ok((here, readiness_reason())),
        DriverChoice::Epoll if here == "epoll" => Ok((here, "as asked".to_owned())),
        DriverChoice::Kqueue if here == "kqueue" => Ok((here, "as asked".to_owned())),
        DriverChoice::Epoll => missing("epoll", "it is Linux's"),
        DriverChoice::Kqueue => missing("kqueue", "it is macOS's and the BSDs'"),
        DriverChoice::Uring => match uring::probe() {
            Ok(_) => Ok((uring::NAME, "as asked".to_owned())),
            Err(why) => missing(uring::NAME, &why.to_string()),
        },
    }
}

/// Why the readiness driver was taken by itself: it works everywhere, and measures have not shown io_uring to be the
/// better one for all loads.
fn readiness_reason() -> String {
    let reason = "the readiness driver of this system";
    match uring::probe() {
        Ok(_) => format!("{reason}; io_uring is available too: --driver {}", uring::NAME),
        Err(_) => reason.to_owned(),
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
