//! Report of a server's start.

use std::net::SocketAddr;
use std::path::PathBuf;

use shearwater_io::os::DescriptorLimit;
use shearwater_tasks::Order;

use crate::limit_warning::LimitWarning;
use crate::options::AcceptMode;

/// Effective settings of a server at its start, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartReport {
    /// TCP addresses bound, with the assigned ports.
    pub addresses: Vec<SocketAddr>,
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
