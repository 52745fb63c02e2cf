//! Thread-per-core HTTP/1.1 workers over any [`Driver`](shearwater_io::Driver).
//!
//! A worker owns its driver, its connections, its timers and its buffers, and shares no mutable state with
//! the others on the hot path. The modules in the order in which a request passes them:
//!
//! `worker` (the turn, and the one `match` on events) → `accept` → `request_loop` (read, parse, call, encode, flush) →
//! `connection` (the state between two events, and the close).

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod accept;
mod acceptor;
mod addresses;
mod binding;
mod block;
mod body;
mod body_budget;
mod buffer;
mod call;
mod connection;
mod content_type;
mod context;
mod control;
mod counters;
mod deadline;
mod deferral;
mod deferred;
mod descriptors;
mod disconnects;
mod drain;
mod eviction;
mod field_lines;
mod handling;
mod header_rules;
mod heartbeat;
mod holders;
mod idle_trim;
mod lifecycle;
mod limit_warning;
pub mod limits;
mod listen_address;
mod listening_socket;
mod open_file_cache;
mod options;
mod outputs;
mod page_pool;
mod panics;
mod pending_call;
mod pieces;
mod preamble;
mod prebuilt;
mod refuse;
mod reports;
mod request;
mod request_loop;
mod respond;
mod response;
mod running;
mod served;
mod server;
mod service;
mod start_error;
mod start_report;
mod summary;
mod table;
mod thread;
mod timer;
mod upgrade;
mod watchdog;
mod wheel;
mod worker;
mod worker_state;

pub use call::{Call, Gone};
pub use context::Context;
pub use control::{Control, End, Notice};
pub use counters::Totals;
pub use descriptors::raise_descriptor_limit;
pub use field_lines::FieldLines;
pub use header_rules::{HeaderRules, On};
pub use limit_warning::{LimitWarning, Wanted};
pub use limits::{Limits, Timeouts};
pub use listen_address::{ListenAddress, UNIX_MODE};
pub use listening_socket::ListeningSocket;
pub use options::{AcceptMode, DriverChoice, Options, TcpOptions};
pub use pieces::Pieces;
pub use prebuilt::Prebuilt;
pub use request::{ConnectionId, Request};
pub use response::Response;
pub use running::{Failure, Running, Summary};
pub use server::Server;
pub use service::{BodyPolicy, Service};
pub use start_error::StartError;
pub use start_report::StartReport;
pub use upgrade::{ConnectionGuard, HandedOver};
pub use worker::{Setup, Worker};

pub use shearwater_http1 as http1;
pub use shearwater_io as io;
pub use shearwater_tasks as tasks;
