//! What every command stands on that starts a server and looks at it from outside: the programs, the process, a client on one
//! connection, served folders, seeded numbers and the report.

pub(crate) mod answer;
pub(crate) mod body_source;
pub(crate) mod client;
pub(crate) mod common;
pub(crate) mod conclusion;
pub(crate) mod counters;
pub(crate) mod drivers;
pub(crate) mod folder;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod random;
pub(crate) mod report;
pub(crate) mod server;
pub(crate) mod trouble;
