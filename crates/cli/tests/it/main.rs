//! The built program as its user meets it: arguments in, output, signals and exit codes out.

mod banner;
mod check;
#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod clients;
mod config_text;
mod configured;
mod drivers;
mod folder;
mod help;
mod intents;
mod keys;
mod memory;
mod misconfigured;
mod output;
mod pages;
mod precompress;
mod process;
mod refusals;
mod replaced;
mod reports;
mod signals;
mod sites;
mod summary;
mod system;
mod transport;
