//! What a server says of its start.

use std::net::SocketAddr;

use shearwater_io::os::DescriptorLimit;

/// What a server has found and settled at its start, for the operator.
#[derive(Debug, Clone)]
pub struct StartReport {
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
