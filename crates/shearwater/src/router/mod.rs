//! Routing: an app's definitions are compiled once, at startup, into a table that all workers share.

mod compile;
mod definitions;
mod exact;
mod method;
mod node;
mod table;
mod worker;

pub(crate) use definitions::{Content, Definitions, PrefixDefinition, Registered, RouteDefinition};
pub use method::RouteMethod;
pub use worker::{Routes, RoutesService};
