//! The built program as its user meets it: arguments in, output, signals and exit codes out.

mod banner;
#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod folder;
mod help;
mod output;
mod process;
mod refusals;
mod signals;
mod sites;
mod transport;
