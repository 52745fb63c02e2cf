//! Routing: an app's definitions are compiled once, at startup, into a table that all workers share.

mod compile;
mod exact;
mod node;
mod route;
mod table;
mod worker;

pub(crate) use compile::{Definitions, Registered};
pub(crate) use route::Handler;
pub use route::{Route, RouteMethod};
pub(crate) use table::Target;
pub use worker::{Routes, RoutesService};
