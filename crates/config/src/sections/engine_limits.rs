//! `[limits]`: what is held back from clients. The names are those of `docs/limits.md`.

use crate::fields::{Fields, Visit};
use crate::rules::{Integer, Optional};

/// What is held back from clients. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Size of a request's head; `431` beyond.
    pub head_bytes_max: u32,
    /// Length of the request target; `414` beyond.
    pub target_bytes_max: u32,
    /// Number of fields in a head; `431` beyond.
    pub fields_max: u16,
    /// Size of a body; `413` beyond.
    pub body_bytes_max: u64,
    /// Memory that a worker holds for unfinished requests; `503` beyond. None: a share of the memory there is.
    pub buffered_bytes_max: Option<u64>,
    /// Connections that one address may hold; 0: no bound.
    pub connections_per_address_max: u32,
    /// Requests answered on one connection; 0: no bound.
    pub requests_per_connection_max: u32,
    /// Pace at which a body has to arrive; 0: no bound.
    pub body_bytes_per_second_min: u32,
    /// Pace at which a client has to take what it is sent; 0: some progress is enough.
    pub send_bytes_per_second_min: u32,
    /// Bytes read and thrown away after a last answer.
    pub linger_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 65_536,
            target_bytes_max: 8192,
            fields_max: 100,
            body_bytes_max: 10_485_760,
            buffered_bytes_max: None,
            connections_per_address_max: 0,
            requests_per_connection_max: 0,
            body_bytes_per_second_min: 240,
            send_bytes_per_second_min: 240,
            linger_bytes_max: 67_108_864,
        }
    }
}

impl Fields for Limits {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "head_bytes_max",
            "Size of a request's head; 431 beyond.",
            Integer(64..=1_073_741_824),
            &mut self.head_bytes_max,
        );
        visit.field(
            "target_bytes_max",
            "Length of a request's target (path and query); 414 beyond.",
            Integer(1..=1_073_741_824),
            &mut self.target_bytes_max,
        );
        visit.field(
            "fields_max",
            "Fields in a request's head; 431 beyond.",
            Integer(1..=65_534),
            &mut self.fields_max,
        );
        visit.field(
            "body_bytes_max",
            "Size of a request's body; 413 beyond.",
            Integer(0..=1_099_511_627_776),
            &mut self.body_bytes_max,
        );
        visit.field(
            "buffered_bytes_max",
            "Memory that a worker holds for unfinished requests, in bytes; beyond, the connection that holds most gets a 503. Without it: a \
             quarter of the memory there is, divided among the workers, 256 MiB at most; what it comes to is told at the start.",
            Optional(Integer(65_536..=1_099_511_627_776)),
            &mut self.buffered_bytes_max,
        );
        visit.field(
            "connections_per_address_max",
            "Connections that one address may hold, an IPv6 /64 counting as one; a further one is reset. 0: no bound.",
            Integer(0..=4_294_967_295),
            &mut self.connections_per_address_max,
        );
        visit.field(
            "requests_per_connection_max",
            "Requests answered on one connection; the last answer says so. 0: no bound.",
            Integer(0..=4_294_967_295),
            &mut self.requests_per_connection_max,
        );
        visit.field(
            "body_bytes_per_second_min",
            "Pace at which a body has to arrive; 408 below it. 0: no bound.",
            Integer(0..=4_294_967_295),
            &mut self.body_bytes_per_second_min,
        );
        visit.field(
            "send_bytes_per_second_min",
            "Pace at which a client has to take what it is sent, on an average of timeouts.write_ms; reset below it. \
             0: some progress is enough.",
            Integer(0..=4_294_967_295),
            &mut self.send_bytes_per_second_min,
        );
        visit.field(
            "linger_bytes_max",
            "Bytes read and thrown away after a last answer, so that it arrives; reset beyond.",
            Integer(0..=4_294_967_295),
            &mut self.linger_bytes_max,
        );
    }

    fn example() -> Self {
        Self { buffered_bytes_max: Some(268_435_456), ..Self::default() }
    }
}
