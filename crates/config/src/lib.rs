//! The configuration of the program: TOML text in, checked plain data and located errors out.
//!
//! [`Config::parse`] does all of it: `toml` parses the syntax with spans, `sections` lists the keys and their meaning, `rules` read one
//! kind of value each. Each key has one entry, in its section's list: it is read, printed and documented from there. Whether a host name,
//! a path or a header is valid is decided by the crates that use them; their findings are located and reported here.

#![forbid(unsafe_code)]

mod config;
mod context;
mod diagnostics;
pub mod limits;
mod manual;
mod print;
/// Rules for values: how each kind is read, written and described.
mod rules {
    pub(crate) mod collections;
    pub(crate) mod numbers;
    pub(crate) mod strings;
}
mod section;
/// The tables of the file, each with the one list of its keys.
mod sections {
    pub(crate) mod admin;
    pub(crate) mod files;
    pub(crate) mod guards;
    pub(crate) mod limits;
    pub(crate) mod log;
    pub(crate) mod server;
    pub(crate) mod site;
    pub(crate) mod tls;
}
mod unknown;

pub use config::{Config, Finding, Findings, key_named};
pub use diagnostics::{Diagnostics, Problem};
pub use manual::manual;
pub use print::{page, print_default, print_effective};
pub use rules::numbers::{parse_duration, parse_size};
pub use rules::strings::Choices;
pub use sections::admin::Admin;
pub use sections::files::{CacheControl, Coding, Hidden, Serving, Symlinks};
pub use sections::guards::{BasicAuth, Cors, Guarding, RateLimit};
pub use sections::limits::{Cache, Limits, Performance, Timeouts};
pub use sections::log::{Log, StatusClass};
pub use sections::server::{
    Accept, Address, ClientHeader, Driver, Level, Listen, Logging, MessageFormat, Order, ProxyProtocol,
    Server,
};
pub use sections::site::{Download, Headers, Redirect, Respond, Route, Site};
pub use sections::tls::{
    Acme, ClearRequests, Directory, Eab, Hsts, Pair, Protocol, Secret, SiteTls, Tls, TlsVersion,
};
pub use unknown::{Unsupported, nearest, unsupported};
