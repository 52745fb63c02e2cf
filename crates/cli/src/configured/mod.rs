//! From the command line and the configuration to what the pieces of the program take: a file for each section.

mod cache;
pub(crate) mod file;
mod folder;
mod limits;
mod listen;
mod logging;
mod performance;
mod server;
mod sites;
mod timeouts;

use shearwater::{Limits, Server, Timeouts};
use shearwater_config::Config;
use shearwater_files::CacheLimits;

use self::listen::Listening;
use crate::args::Serve;
use crate::failure::Failure;
use crate::site::Site;
use crate::warnings::Warnings;

/// What is to be done, settled before anything is bound.
pub(crate) struct Plan {
    pub(crate) server: Server,
    pub(crate) site: Site,
    pub(crate) cache: CacheLimits,
    /// Where it will listen, as it is told.
    pub(crate) addresses: Vec<String>,
    /// Threads; 0: one per core.
    pub(crate) workers: u16,
    /// Memory that each of them holds at most for unfinished requests, in bytes.
    pub(crate) buffered_bytes_max: usize,
    /// What flags of the command line have replaced in the file, a line each.
    pub(crate) replaced: Vec<String>,
    pub(crate) warnings: Warnings,
}

/// Settles everything that can be settled without binding.
pub(crate) fn plan(serve: &Serve) -> Result<Plan, Failure> {
    let mut config = match &serve.config {
        Some(path) => file::read(path)?,
        None => Config::default(),
    };
    let mut replaced = server::replace(serve, &mut config.server);
    let listening = Listening::of(serve, &config, &mut replaced);
    let cache = cache::limits(&config.cache);
    // Each folder holds a descriptor. Where the limit can't be had, binding says so.
    drop(shearwater::raise_descriptor_limit());
    let (site, doubts) = sites::open(serve, &config, cache)?;
    let warnings = Warnings { of_file: config.refuse_all(doubts), others: site.warnings() };

    let (mut limits, mut timeouts) = (Limits::default(), Timeouts::default());
    limits::apply(&config.limits, &mut limits);
    timeouts::apply(&config.timeouts, &mut timeouts);
    performance::apply(&config.performance, &mut limits, &mut timeouts);
    let mut server = server::apply(&config.server, listening.server())
        .limits(limits)
        .timeouts(timeouts)
        .verbosity(logging::verbosity(&config.logging));
    if config.performance.max_connections > 0 {
        server = server.connections_max(config.performance.max_connections);
    }
    let (addresses, workers) = (listening.names(), config.server.workers);
    let buffered_bytes_max = limits.buffered_bytes(usize::from(workers));
    Ok(Plan { server, site, cache, addresses, workers, buffered_bytes_max, replaced, warnings })
}
