//! Thread-per-core HTTP/1.1 workers over any [`Driver`](shearwater_io::Driver).
//!
//! A worker owns its driver, connections, timers and buffers. It shares no mutable state with the others on the hot path.
//! `worker` has the turn and the one `match` on events; below it, `request_loop` reads, parses, calls, encodes and flushes,
//! `handlers` and `exchanges` do so for handlers that respond later, and `reconcile` has all that happens to a connection between
//! two events, and its close. The rooms: `connection` and `exchange` (their states), `request`, `response`, `deferred` (the
//! handler's side of a later response), `proxies` (clients' addresses behind them), `timers`, `memory`, `observe`
//! (listeners for finished exchanges), and `server` around the workers.

#![forbid(unsafe_code)]

mod connection;
mod deferred {
    pub(crate) mod call;
    pub(crate) mod calls;
    pub(crate) mod clock;
    pub(crate) mod coding;
    pub(crate) mod deferral;
    pub(crate) mod guards;
    pub(crate) mod inbound;
    pub(crate) mod outbound;
    pub(crate) mod shared;
    pub(crate) mod stream;
    mod upgrade;
}
mod exchange;
mod http2;
mod leaving;
pub mod limits;
mod memory {
    /// "No index": an absent neighbor, address or state.
    pub(crate) const NONE: u32 = u32::MAX;

    pub(crate) mod buffer;
    pub(crate) mod eviction;
    pub(crate) mod spare;
}
mod observe {
    pub(crate) mod finished;
    pub(crate) mod ledger;
    pub(crate) mod record;
    mod stream_records;
}
mod proxies;
mod request;
mod response;
mod server;
mod service;
mod timers {
    pub(crate) mod wheel;
}
mod tunnel;
mod upgrade;
mod wire {
    pub(crate) mod http1;
    pub(crate) mod http2;
}
mod worker;

pub use deferred::call::{Call, Gone};
pub use deferred::deferral::Around;
pub use limits::{Limits, Timeouts};
pub use observe::finished::{ExchangeListener, FinishedExchange};
pub use observe::record::ExchangeEnd;
pub use proxies::ProxyOptions;
pub use proxies::forwarded::ClientHeader;
pub use proxies::header::{ProxyHeader, ProxyHeaderError, parse as parse_proxy_header};
pub use proxies::trusted::{TrustedProxies, TrustedProxyError};
pub use request::guards::GuardsPassed;
pub use request::tls_session::TlsSession;
pub use request::{ConnectionId, Request};
pub use response::Response;
pub use response::coder::StreamCoder;
pub use response::head::FieldLines;
pub use response::header_rules::{HeaderRules, On};
pub use response::inspect::Content;
pub use response::pieces::Pieces;
pub use response::prebuilt::Prebuilt;
pub use server::Server;
pub use server::address_change::{AddressChange, AddressesChanging};
pub use server::addresses::{ListenAddress, ListeningSocket, PassedListener, UNIX_MODE};
pub use server::control::{Control, End};
pub use server::counters::Totals;
pub use server::host::{Host, HostedWorker, NextRun, WorkerPosition};
pub use server::messages::{Message, MessageLevel};
pub use server::notice::Notice;
pub use server::options::{AcceptMode, DriverChoice, Http2Options, Options, TcpOptions};
pub use server::passing::{PassingListeners, SuccessorEnd};
pub use server::raise_descriptor_limit;
pub use server::reload::{Reload, ReloadError, Reloading};
pub use server::running::{Running, Summary, ThreadFailure};
pub use server::start::{LimitWarning, StartReport, Wanted};
pub use server::start_error::StartError;
pub use server::watchdog::Progress;
pub use service::{BodyPolicy, Context, Service, percent_decoded};
pub use upgrade::{ConnectionGuard, HandedOver};
pub use worker::{Setup, Worker};

pub use shearwater_http1 as http1;
pub use shearwater_io as io;
pub use shearwater_tasks as tasks;
