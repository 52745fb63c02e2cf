//! The admin listener: `[admin]` and `--admin` as its options, and the sources of its metrics.

use std::io;
use std::net::ToSocketAddrs;
use std::sync::Arc;

use shearwater::{DriverChoice, ListenAddress, Server, StartError};
use shearwater_config as config;
use shearwater_log::Log;
use shearwater_metrics::{Admin, AdminError, AdminOptions, LogCounts, Metrics};

use crate::args::Serve;
use crate::failure::Failure;
use crate::settings;

/// An admin listener that is ready to be bound.
#[derive(Debug, Clone)]
pub(crate) struct PlannedAdmin(AdminOptions);

impl PlannedAdmin {
    /// Returns its address for reports.
    pub(crate) fn address(&self) -> String {
        self.0.listen.to_string()
    }
}

/// Merges `[admin]` with `--admin`. Adds a line to `overridden` if the flag replaces another address.
pub(crate) fn plan(
    serve: &Serve,
    section: &config::Admin,
    driver: DriverChoice,
    overridden: &mut Vec<String>,
) -> Result<Option<PlannedAdmin>, Failure> {
    let of_file = section.listen.as_ref().map(settings::listen_address);
    let of_flag = serve.admin.as_deref().map(resolve).transpose()?;
    if let (Some(flag), Some(given), Some(of_file)) = (&of_flag, &serve.admin, &of_file)
        && flag != of_file
    {
        overridden.push(format!("--admin {given} overrides admin.listen = \"{of_file}\""));
    }
    let Some(listen) = of_flag.or(of_file) else { return Ok(None) };
    let options = AdminOptions { listen, remote: section.remote, driver };
    if options.is_remote() && !options.remote {
        return Err(Failure::usage_helped(
            format!("--admin {}: other machines can reach this address", options.listen),
            "use 127.0.0.1 or unix:PATH, or write `remote = true` into [admin] of a configuration file",
        ));
    }
    Ok(Some(PlannedAdmin(options)))
}

/// Parses the address of `--admin`.
fn resolve(given: &str) -> Result<ListenAddress, Failure> {
    if let Some(path) = given.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return Ok(ListenAddress::unix(path));
    }
    let first = given.to_socket_addrs().map(|mut addresses| addresses.next());
    first.ok().flatten().map(Into::into).ok_or_else(|| {
        Failure::usage_helped(
            format!("--admin {given}: invalid address"),
            "write it as 127.0.0.1:9180 or unix:PATH",
        )
    })
}

/// Creates the metrics of the program.
pub(crate) fn metrics(arguments: &Serve) -> Metrics {
    let metrics = Metrics::new(env!("CARGO_PKG_VERSION"));
    arguments.config.iter().for_each(|file| metrics.set_configuration(&file.display().to_string()));
    metrics
}

/// Binds the admin listener, and makes the server count for it.
pub(crate) fn start(
    planned: PlannedAdmin,
    server: Server,
    metrics: &Metrics,
) -> Result<(Server, Admin), Failure> {
    let address = planned.address();
    let admin = Admin::start(planned.0, metrics).map_err(|error| match &error {
        AdminError::Start(shearwater::Error::Start(StartError::Bind { error: why, .. })) => {
            let help = match why.kind() {
                io::ErrorKind::PermissionDenied => {
                    "use a port from 1024 on, such as `--admin 127.0.0.1:9180`".to_owned()
                }
                _ => format!("another instance of this program may listen on {address}"),
            };
            Failure::system(error.to_string(), Some(help))
        }
        _ => Failure::system(error.to_string(), None),
    })?;
    Ok((metrics.observe(server), admin))
}

/// Sets the access log as a source of metrics.
pub(crate) fn count_log(metrics: &Metrics, log: &Arc<Log>, destination: &str) {
    let (log, destination) = (Arc::clone(log), destination.to_owned());
    metrics.set_log(move || {
        let counts = log.counts();
        LogCounts {
            destination: destination.clone(),
            written: counts.written,
            dropped: counts.dropped,
            is_failing: counts.is_failing,
        }
    });
}
