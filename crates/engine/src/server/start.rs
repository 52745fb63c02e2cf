//! A server's start: its report, its errors, and resources of which the kernel provides less than configured.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use shearwater_io::os::{self, DescriptorLimit};
use shearwater_tasks::Order;

use crate::server::options::{AcceptMode, Options};

/// Effective settings of a server at its start, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartReport {
    /// TCP addresses bound, with the assigned ports.
    pub addresses: Vec<SocketAddr>,
    /// Those of the TCP addresses whose connections begin with TLS.
    pub secure_addresses: Vec<SocketAddr>,
    /// Unix-domain sockets bound.
    pub unix_sockets: Vec<PathBuf>,
    /// Distribution of connections to the workers.
    pub accept: AcceptMode,
    /// Scheduling order of ready connections and tasks.
    pub order: Order,
    /// The driver in use.
    pub driver: &'static str,
    /// Reason for that driver.
    pub driver_reason: String,
    /// Number of workers.
    pub workers: usize,
    /// Descriptor limit, as found and as raised.
    pub descriptors: DescriptorLimit,
    /// Connections that all workers together hold.
    pub connections_max: usize,
    /// Memory budget of each worker for unfinished requests, in bytes.
    pub buffered_bytes_max: usize,
    /// Length of the accept queue per listener: the configured one, or the kernel's limit.
    pub backlog: u32,
    /// Resources of which there is less than configured, each once.
    pub limit_warnings: Vec<LimitWarning>,
}

/// Descriptors that a server should have if no number of connections is configured.
const DESCRIPTORS_WANTED: u64 = 65_536;

/// A limited resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wanted {
    /// Connections that may wait to be accepted, per listener ([`Options::backlog`]).
    Backlog,
    /// Connections that all workers together hold ([`Limits::connections_max`](crate::Limits::connections_max)).
    Connections,
    /// Descriptors of this process, one per connection, if no number of connections is configured.
    Descriptors,
    /// Files of the whole system, as many as this process may have descriptors or connections.
    SystemFiles,
}

/// A resource of which there is less than configured. Displays as one sentence with a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitWarning {
    /// The resource.
    pub wanted: Wanted,
    /// Configured amount.
    pub asked: u64,
    /// Available amount.
    pub effective: u64,
}

impl LimitWarning {
    /// Returns `None` if there is enough.
    fn of(wanted: Wanted, asked: u64, effective: u64) -> Option<Self> {
        (effective < asked).then_some(Self { wanted, asked, effective })
    }
}

impl fmt::Display for LimitWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, asked, effective } = self;
        match wanted {
            Wanted::Backlog => write!(
                f,
                "accept queue: {effective} instead of {asked} (raise it: sysctl net.core.somaxconn={asked})"
            ),
            Wanted::Connections => write!(
                f,
                "connections: {effective} instead of {asked}, by the descriptor limit \
                 (raise it: ulimit -Hn, LimitNOFILE= of a unit, sysctl fs.nr_open)"
            ),
            Wanted::Descriptors => write!(
                f,
                "connections: the descriptor limit is {effective}, recommended are {asked} or more \
                 (raise it: ulimit -Hn, or LimitNOFILE= of a unit)"
            ),
            Wanted::SystemFiles => write!(
                f,
                "open files: the system's limit is {effective}, this process alone may have {asked} \
                 (raise it: sysctl fs.file-max={asked})"
            ),
        }
    }
}

/// The kernel's limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) descriptors: DescriptorLimit,
    /// Connections that all workers together will hold.
    pub(crate) connections: u64,
    /// Longest accept queue, if the system reports it.
    pub(crate) backlog_max: Option<u32>,
    /// Files of the whole system, if it reports them.
    pub(crate) system_files_max: Option<u64>,
}

impl Found {
    /// Reads the limits of this system.
    pub(crate) fn here(descriptors: DescriptorLimit, connections: usize) -> Self {
        Self {
            descriptors,
            connections: connections as u64,
            backlog_max: os::listen_backlog_max(),
            system_files_max: os::system_files_max(),
        }
    }

    /// Returns the effective length of the accept queue.
    pub(crate) fn backlog(&self, asked: u32) -> u32 {
        self.backlog_max.map_or(asked, |max| asked.min(max))
    }

    /// Compares the limits with `options`.
    pub(crate) fn limit_warnings(&self, options: &Options) -> Vec<LimitWarning> {
        let soft = self.descriptors.soft_now;
        let asked = options.limits.connections_max;
        let connections = if asked == usize::MAX {
            LimitWarning::of(Wanted::Descriptors, DESCRIPTORS_WANTED, soft)
        } else {
            LimitWarning::of(Wanted::Connections, asked as u64, self.connections)
        };
        let backlog = u64::from(options.backlog);
        let queue = LimitWarning::of(Wanted::Backlog, backlog, u64::from(self.backlog(options.backlog)));
        let wanted = soft.max(self.connections);
        let files = self.system_files_max.and_then(|max| LimitWarning::of(Wanted::SystemFiles, wanted, max));
        [queue, connections, files].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{DescriptorLimit, Found, LimitWarning, Options, Wanted};
    use crate::limits::Limits;

    const FOUND: Found = Found {
        descriptors: DescriptorLimit { soft_before: 1024, soft_now: 20_000, hard: 20_000, is_known: true },
        connections: 17_500,
        backlog_max: Some(4096),
        system_files_max: Some(u64::MAX),
    };

    fn options(backlog: u32, connections_max: usize) -> Options {
        let limits = Limits { connections_max, ..Limits::default() };
        Options { backlog, limits, ..Options::default() }
    }

    #[test]
    fn reports_nothing_if_limits_suffice() {
        assert_eq!(FOUND.limit_warnings(&options(4096, 17_500)), []);
        let many = DescriptorLimit { soft_now: 1 << 20, ..FOUND.descriptors };
        let found = Found { descriptors: many, backlog_max: None, system_files_max: None, ..FOUND };
        assert_eq!(found.limit_warnings(&options(u32::MAX, usize::MAX)), []);
        assert_eq!(found.backlog(u32::MAX), u32::MAX);
    }

    #[test]
    fn reports_each_low_limit_once_with_a_remedy() {
        let found = Found { system_files_max: Some(9000), ..FOUND };
        let short = found.limit_warnings(&options(65_535, 2_000_000));
        let of = |wanted, asked, effective| LimitWarning { wanted, asked, effective };
        assert_eq!(
            short,
            [
                of(Wanted::Backlog, 65_535, 4096),
                of(Wanted::Connections, 2_000_000, 17_500),
                of(Wanted::SystemFiles, 20_000, 9000),
            ]
        );
        let said: Vec<_> = short.iter().map(ToString::to_string).collect();
        assert!(said[0].contains("4096 instead of 65535") && said[0].contains("net.core.somaxconn=65535"));
        assert!(said[1].contains("17500 instead of 2000000") && said[1].contains("LimitNOFILE"));
        assert!(said[2].contains("fs.file-max=20000"));
    }

    #[test]
    fn compares_descriptors_without_a_connection_limit() {
        let short = FOUND.limit_warnings(&options(77, usize::MAX));
        assert_eq!(short, [LimitWarning { wanted: Wanted::Descriptors, asked: 65_536, effective: 20_000 }]);
        assert!(short[0].to_string().contains("20000, recommended are 65536"));
    }
}
