//! The built program as its user meets it: arguments in, output, signals and exit codes out.

mod check;
#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod clients;
mod configured;
mod intents;
mod keys;
mod memory;
mod messages;
mod output;
mod pages;
mod precompress;
mod process;
mod refusals;
mod replaced;
mod signals;
mod sites;
mod system;
mod transport;
