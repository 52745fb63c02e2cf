//! The configuration of the program: TOML text in, checked plain data and located errors out.
//!
//! [`Config::parse`] does all of it: `toml` parses the syntax with spans, `sections` lists the keys and their meaning, `rules` read one
//! kind of value each. Each key has one entry, in its section's list: it is read, printed and documented from there. Whether a host name,
//! a path or a header is valid is decided by the crates that use them; their findings are located and reported here.

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod config;
mod conflicts;
mod context;
mod diagnostics;
mod effective;
pub mod limits;
mod locate;
mod names;
mod reference;
mod rules;
mod section;
mod sections;
mod toml_writer;
mod unsupported;
mod variables;

pub use config::{Config, Finding, Findings};
pub use diagnostics::{Diagnostics, Problem, Severity};
pub use effective::print_effective;
pub use names::nearest;
pub use reference::{page, print_default};
pub use rules::units::{parse_duration, parse_size};
pub use sections::files::{Applies, CacheControl, Coding, Hidden, Serving, Symlinks};
pub use sections::headers::Headers;
pub use sections::limits::{Cache, Limits, Performance, Timeouts};
pub use sections::listen::{Address, Listen};
pub use sections::server::{Accept, Driver, Level, Logging, Order, Server};
pub use sections::site::{Redirect, Respond, Route, Site};
pub use unsupported::{Unsupported, unsupported};
