//! The built program as its user meets it: arguments in, output, signals and exit codes out.

#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod commands;
mod configured;
mod keys;
mod messages;
mod output;
mod pages;
mod process;
mod replaced;
mod resources;
mod signals;
mod sites;
