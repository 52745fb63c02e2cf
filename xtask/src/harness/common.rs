//! The options that every command takes which starts a server: which programs, how many workers, which driver.

use std::path::PathBuf;

/// What every trial takes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Common {
    /// The server program to try [default: target/release/shearwater, built first]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) server_bin: Option<PathBuf>,
    /// The example server with the trial routes [default: target/release/examples/trial_server, built first]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) example_bin: Option<PathBuf>,
    /// Worker threads of the server
    #[arg(long, global = true, default_value_t = 2)]
    pub(crate) workers: u32,
    /// Driver of the server: auto, epoll, …
    #[arg(long, global = true, default_value = "auto")]
    pub(crate) driver: String,
    /// Seed of everything random
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the report as one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Keep the temporary folder (served files, server log) and print where it is
    #[arg(long, global = true)]
    pub(crate) keep: bool,
}
