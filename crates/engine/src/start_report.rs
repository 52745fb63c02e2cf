//! What a server says of its start.

use std::net::SocketAddr;
use std::path::PathBuf;

use shearwater_io::os::DescriptorLimit;
use shearwater_tasks::Order;

use crate::options::AcceptMode;
use crate::shortfall::Shortfall;

/// What a server has found and settled at its start, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartReport {
    /// Addresses bound, with the ports taken.
    pub addresses: Vec<SocketAddr>,
    /// Unix-domain sockets bound.
    pub unix_sockets: Vec<PathBuf>,
    /// How connections get to the workers.
    pub accept: AcceptMode,
    /// In which order what is ready on a worker goes on.
    pub order: Order,
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
    /// Memory that each worker holds at most for unfinished requests, in bytes.
    pub buffered_bytes_max: usize,
    /// Connections that may wait to be accepted, per listener: what was asked for, or the kernel's bound.
    pub backlog: u32,
    /// What the kernel gives less of than was asked for. Each once.
    pub shortfalls: Vec<Shortfall>,
}
