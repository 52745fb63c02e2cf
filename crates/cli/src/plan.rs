//! Everything that is settled before anything is bound: the command line and the configuration, merged and checked.

use std::fmt::Debug;
use std::path::Path;

use shearwater::Server;
use shearwater_config::{self as config, Config, Diagnostics};

use crate::args::{Accept, Driver, Serve};
use crate::config_file;
use crate::failure::Failure;
use crate::listen::Listening;
use crate::settings;
use crate::site::Site;
use crate::sites;

/// A server that is ready to bind.
pub(crate) struct Plan {
    pub(crate) server: Server,
    pub(crate) site: Site,
    /// Addresses to listen on, for reports.
    pub(crate) addresses: Vec<String>,
    /// Worker threads; 0: one per core.
    pub(crate) workers: u16,
    /// Memory per worker for unfinished requests, in bytes.
    pub(crate) buffered_bytes_max: usize,
    /// Keys that flags override, a line each.
    pub(crate) overridden: Vec<String>,
    /// Warnings about keys of the configuration file.
    pub(crate) file_warnings: Option<Diagnostics>,
}

impl Plan {
    /// Reads the configuration and opens the folders to serve.
    pub(crate) fn new(serve: &Serve) -> Result<Self, Failure> {
        // Each folder takes a descriptor. If the limit can't be raised, binding reports it.
        drop(shearwater::raise_descriptor_limit());
        let (mut config, site, file_warnings) = match &serve.config {
            Some(path) => read(path)?,
            None => (Config::default(), None, None),
        };
        let file = serve.config.as_deref().unwrap_or(Path::new(""));
        let site = match (site, &serve.dir) {
            (Some(_), Some(dir)) => {
                let (dir, file) = (dir.display(), file.display());
                let message = format!("both the folder {dir} and the sites of {file} are given");
                return Err(Failure::helped(message, "name one of both"));
            }
            (Some(site), None) => site,
            (None, dir) => {
                let base = file.parent().unwrap_or(file);
                Site::open(dir.as_deref(), base, settings::cache(&config.cache))?
            }
        };
        let mut overridden = override_server(serve, &mut config.server);
        let listening = Listening::new(serve, &config, &mut overridden);
        let limits = settings::limits(&config);
        let workers = config.server.workers;
        Ok(Self {
            server: settings::apply(&config, listening.server())
                .limits(limits)
                .timeouts(settings::timeouts(&config)),
            site,
            file_warnings,
            addresses: listening.names(),
            workers,
            buffered_bytes_max: limits.buffered_bytes(usize::from(workers)),
            overridden,
        })
    }

    /// Formats all warnings; empty if there are none.
    pub(crate) fn warnings(&self) -> String {
        let mut text = self.file_warnings.as_ref().map(ToString::to_string).unwrap_or_default();
        for warning in &self.site.warnings {
            text.push_str(&format!("warning: {warning}\n"));
        }
        text
    }
}

/// Reads a configuration file and opens its sites.
fn read(path: &Path) -> Result<(Config, Option<Site>, Option<Diagnostics>), Failure> {
    let mut opened = None;
    let (config, warnings) = config_file::read(path, |config| {
        let (site, findings) = sites::open(config);
        opened = site;
        findings
    })?;
    Ok((config, opened, Some(warnings)))
}

/// Overrides keys of `[server]` with flags. Returns a line for each key of the file that changes.
fn override_server(serve: &Serve, server: &mut config::Server) -> Vec<String> {
    let default = config::Server::default();
    let mut overridden = Vec::new();
    let mut report = |is_default: bool, flag: String, key: String| {
        if serve.config.is_some() && !is_default {
            overridden.push(format!("--{flag} overrides server.{key}"));
        }
    };
    if let Some(workers) = serve.workers.filter(|&workers| workers != server.workers) {
        let is_default = server.workers == default.workers;
        report(is_default, format!("workers {workers}"), format!("workers = {}", server.workers));
        server.workers = workers;
    }
    if let Some(driver) = serve.driver.map(config_driver).filter(|&driver| driver != server.driver) {
        let is_default = server.driver == default.driver;
        report(is_default, format!("driver {}", name(driver)), format!("driver = {:?}", name(server.driver)));
        server.driver = driver;
    }
    if let Some(accept) = serve.accept.map(config_accept).filter(|&accept| accept != server.accept) {
        let is_default = server.accept == default.accept;
        report(is_default, format!("accept {}", name(accept)), format!("accept = {:?}", name(server.accept)));
        server.accept = accept;
    }
    if let Some(drain) = serve.drain.filter(|&drain| drain != server.drain_timeout) {
        let is_default = server.drain_timeout == default.drain_timeout;
        let key = format!("drain_timeout = \"{:?}\"", server.drain_timeout);
        report(is_default, format!("drain {drain:?}"), key);
        server.drain_timeout = drain;
    }
    server.pin |= serve.pin;
    overridden
}

fn config_accept(accept: Accept) -> config::Accept {
    match accept {
        Accept::Reuseport => config::Accept::Reuseport,
        Accept::Dispatch => config::Accept::Dispatch,
    }
}

fn config_driver(driver: Driver) -> config::Driver {
    match driver {
        Driver::Auto => config::Driver::Auto,
        Driver::Epoll => config::Driver::Epoll,
        Driver::Uring => config::Driver::Uring,
        Driver::Kqueue => config::Driver::Kqueue,
    }
}

/// Returns the name of a choice, which is its variant's in lower case.
fn name(choice: impl Debug) -> String {
    format!("{choice:?}").to_lowercase()
}
