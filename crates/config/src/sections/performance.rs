//! `[performance]`: connections, how long they may wait, and how much is read and written at once.

use crate::fields::{Fields, Visit};
use crate::rules::Integer;

/// Connections, how long they may wait, and how much is read and written at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performance {
    /// Connections held at once, all workers together; 0: as many as descriptors.
    pub max_connections: u64,
    /// Seconds from accept to the end of the first head.
    pub connection_timeout: u32,
    /// Seconds between two requests of a connection.
    pub keep_alive_timeout: u32,
    /// Bytes asked of the kernel by one receive.
    pub request_buffer_size: u32,
    /// Bytes of answers gathered for one connection before they are sent.
    pub response_buffer_size: u32,
}

impl Default for Performance {
    fn default() -> Self {
        Self {
            max_connections: 0,
            connection_timeout: 10,
            keep_alive_timeout: 60,
            request_buffer_size: 65_536,
            response_buffer_size: 65_536,
        }
    }
}

impl Fields for Performance {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "max_connections",
            "Connections held at once, all workers together, each its even part; new ones wait in the kernel's queue. \
             0: as many as the process may have descriptors, which is the bound anyway; what it comes to is told at the start.",
            Integer(0..=1_000_000_000),
            &mut self.max_connections,
        );
        visit.field(
            "connection_timeout",
            "Seconds from a connection's beginning to the end of its first request's head.",
            Integer(1..=86_400),
            &mut self.connection_timeout,
        );
        visit.field(
            "keep_alive_timeout",
            "Seconds that a connection may be silent between two requests.",
            Integer(1..=86_400),
            &mut self.keep_alive_timeout,
        );
        visit.field(
            "request_buffer_size",
            "Bytes asked of the kernel by one receive. It bounds no request: see [limits].",
            Integer(1024..=1_048_576),
            &mut self.request_buffer_size,
        );
        visit.field(
            "response_buffer_size",
            "Bytes of answers gathered for one connection before they are sent. It bounds no answer.",
            Integer(1024..=16_777_216),
            &mut self.response_buffer_size,
        );
    }
}
