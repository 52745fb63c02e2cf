//! The built program as its user meets it: arguments in, output, signals and exit codes out.

mod access_log;
mod admin;
mod authority;
mod commands;
mod configured;
mod control;
mod diagnostics;
mod directory;
mod faults;
mod https;
mod keys;
mod messages;
mod output;
mod pages;
mod process;
mod reload;
mod resources;
mod service_manager;
mod signals;
mod sites;
mod surroundings;
mod tls_in_service;
mod top;
mod troubleshooting;
mod upgrade;
