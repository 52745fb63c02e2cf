//! The configuration of the program: TOML text in, checked plain data out.
//!
//! [`Config::parse`] is the whole way: `toml` (tables with the place of each key and value) → `sections` (which keys there are, what
//! each means, what may stand there) → `rules` (one kind of value each) → `conflicts` (what is right by itself but not together).
//! Each key stands in one list, its section's `Fields::fields`: what is read, what the defaults are printed from, what the
//! effective configuration is printed from, and the page of the documentation.

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod checks;
mod conceal;
mod config;
mod conflicts;
mod default_text;
mod effective_text;
mod errors;
mod fields;
pub mod limits;
mod locate;
mod manual;
mod names;
mod not_built;
mod page;
mod pen;
mod reader;
mod reading;
mod rows;
mod rules;
mod sections;
mod source;
mod substitute;

pub use config::Config;
pub use default_text::print_default;
pub use effective_text::print_effective;
pub use errors::{Errors, Problem};
pub use names::nearest;
pub use not_built::{NotBuilt, not_built};
pub use page::page;
pub use sections::cache::Cache;
pub use sections::cache_control::{Applies, CacheControl};
pub use sections::engine_limits::Limits;
pub use sections::headers::Headers;
pub use sections::listen::{Address, Listen};
pub use sections::logging::{Level, Logging};
pub use sections::performance::Performance;
pub use sections::redirect::Redirect;
pub use sections::respond::Respond;
pub use sections::route::{Pattern, Route};
pub use sections::server::{Accept, Driver, Order, Server};
pub use sections::serving::{Coding, Hidden, Serving, Symlinks};
pub use sections::site::Site;
pub use sections::timeouts::Timeouts;
