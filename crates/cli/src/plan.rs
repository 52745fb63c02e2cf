//! Everything that is settled before anything is bound: the command line and the configuration, merged and checked.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use shearwater::{Limits, Server, Timeouts};
use shearwater_config::limits::CONFIG_BYTES_MAX;
use shearwater_config::{self as config, Choices, Config, Diagnostics, Findings, Level, SiteTls};

use crate::access_log::{self, PlannedLog};
use crate::admin::{self, PlannedAdmin};
use crate::args::Serve;
use crate::diagnostics::MessageOptions;
use crate::failure::Failure;
use crate::flag_site::{FlagSite, only_for_a_folder};
use crate::intent::of_missing;
use crate::other_servers;
use crate::proxies;
use crate::settings::{self, FixedSetting, Listening};
use crate::site::Site;
use crate::sites;
use crate::tls::{self, TlsPlan};

/// A server that is ready to bind.
pub(crate) struct Plan {
    pub(crate) server: Server,
    pub(crate) site: Site,
    /// A folder or sites were named.
    pub(crate) is_configured: bool,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    /// Settings that a reload doesn't change.
    pub(crate) fixed: Vec<FixedSetting>,
    /// TLS, if any address has it.
    pub(crate) tls: Option<TlsPlan>,
    /// Addresses to listen on, for reports.
    pub(crate) addresses: Vec<String>,
    /// Worker threads; 0: one per core.
    pub(crate) workers: u16,
    /// Memory per worker for unfinished requests, in bytes.
    pub(crate) buffered_bytes_max: usize,
    /// The access log, if one is configured.
    pub(crate) log: Option<PlannedLog>,
    /// The admin listener, if one is configured.
    pub(crate) admin: Option<PlannedAdmin>,
    /// Level and format of messages to standard error.
    pub(crate) messages: MessageOptions,
    /// Keys that flags override, a line each.
    pub(crate) overridden: Vec<String>,
    /// Warnings about keys of the configuration file.
    pub(crate) file_warnings: Option<Diagnostics>,
}

impl Plan {
    /// Reads the configuration and opens the folders to serve.
    pub(crate) fn new(serve: &Serve) -> Result<Self, Failure> {
        tls::check_flags(serve)?;
        // Each folder takes a descriptor. If the limit can't be raised, binding reports it.
        drop(shearwater::engine::raise_descriptor_limit());
        let (mut config, site, file_warnings) = match &serve.config {
            Some(path) => read(path, serve)?,
            None => (Config::default(), None, None),
        };
        let file = serve.config.as_deref().unwrap_or(Path::new(""));
        let is_configured = site.is_some() || serve.dir.is_some();
        let by_flags = FlagSite::of(serve);
        let mut site = match (site, &serve.dir) {
            (Some(_), Some(dir)) => {
                if let Some(failure) = of_missing(dir).filter(|_| !dir.exists()) {
                    return Err(failure);
                }
                let (dir, file) = (dir.display(), file.display());
                let message = format!("both the folder {dir} and the sites of {file} are given");
                return Err(Failure::usage_helped(message, "name one of them"));
            }
            (Some(site), None) => match only_for_a_folder(serve) {
                Some((flag, key)) => return Err(wrong_flag(flag, key, file)),
                None => site,
            },
            (None, dir) => {
                let base = file.parent().unwrap_or(file);
                let workers = serve.workers.unwrap_or(config.server.workers);
                let cache = settings::cache(&config.cache, workers);
                Site::open(dir.as_deref(), base, cache, &by_flags)?
            }
        };
        let mut overridden = override_server(serve, &mut config.server);
        overridden.extend(tls::override_keys(serve, &by_flags, &mut config));
        if let Some(listen) = &serve.listen
            && config.sites.iter().any(|site| site.tls != SiteTls::Off)
        {
            return Err(plain_address(listen, file));
        }
        let listening = settings::listening(serve, &by_flags, &config, &mut overridden);
        let tls = tls::plan(&config, &by_flags, &listening)?;
        let Listening { server, addresses, .. } = listening;
        site.warnings.extend(tls::check::flag_warnings(&by_flags));
        if let Some(port) = config.tls.redirect_port.or_else(|| tls.as_ref()?.port()) {
            site.sites.set_https_port(port);
        }
        let log = access_log::plan(serve, &config.log, &mut overridden)?;
        let driver = settings::driver(config.server.driver);
        let admin = admin::plan(serve, &config.admin, driver, &mut overridden)?;
        let (limits, timeouts) = (settings::limits(&config), settings::timeouts(&config));
        let workers = config.server.workers;
        Ok(Self {
            server: settings::apply(&config, server).limits(limits).timeouts(timeouts),
            site,
            is_configured,
            limits,
            timeouts,
            fixed: settings::fixed(&config),
            file_warnings,
            tls,
            addresses,
            workers,
            buffered_bytes_max: limits.buffered_bytes(usize::from(workers)),
            log,
            admin,
            messages: MessageOptions {
                level: if serve.verbose { Level::Debug } else { config.logging.level },
                format: config.logging.format,
            },
            overridden,
        })
    }

    /// Returns the paths whose changes take effect by a reload.
    pub(crate) fn watched(&self, serve: &Serve) -> Vec<PathBuf> {
        let roots = self.site.roots.iter().map(|root| &root.path);
        let certificates = self.tls.iter().flat_map(|tls| &tls.certificates);
        let pairs = certificates.filter_map(|certificate| match &certificate.source {
            SiteTls::Own(pair) => Some([Some(&pair.cert), Some(&pair.key), pair.client_ca.as_ref()]),
            _ => None,
        });
        // The folder as it was named may be a link, which a deployment changes.
        let own = serve.config.iter().chain(&serve.dir).chain(&self.site.files);
        own.chain(roots).chain(pairs.flatten().flatten()).cloned().collect()
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

/// Returns the error for a flag of a single folder that is given together with sites.
fn wrong_flag(flag: &str, key: &str, file: &Path) -> Failure {
    let message = format!("`{flag}` is for a folder, and {} has sites", file.display());
    Failure::usage_helped(message, format!("write `{key}` into a site of the file"))
}

/// Returns the error for an address without TLS instead of those of sites with TLS.
fn plain_address(listen: &str, file: &Path) -> Failure {
    let message = format!("`--listen {listen}` would be without TLS, which sites of {} have", file.display());
    Failure::usage_helped(
        message,
        "`--https-port PORT` and `--http-port PORT` override the ports of the file",
    )
}

/// Overrides keys of `[server]` with flags. Returns a line for each key of the file that changes.
fn override_server(serve: &Serve, server: &mut config::Server) -> Vec<String> {
    let default = config::Server::default();
    let workers = replace(&mut server.workers, serve.workers, default.workers)
        .map(|(old, new)| format!("--workers {new} overrides server.workers = {old}"));
    let driver = replace(&mut server.driver, serve.driver, default.driver)
        .map(|(old, new)| format!("--driver {} overrides server.driver = {:?}", new.name(), old.name()));
    let accept = replace(&mut server.accept, serve.accept, default.accept)
        .map(|(old, new)| format!("--accept {} overrides server.accept = {:?}", new.name(), old.name()));
    let drain = replace(&mut server.drain_timeout, serve.drain, default.drain_timeout)
        .map(|(old, new)| format!("--drain {new:?} overrides server.drain_timeout = \"{old:?}\""));
    server.pin |= serve.pin;
    [workers, driver, accept, drain].into_iter().flatten().collect()
}

/// Replaces a value by that of a flag. Returns the old and the new one if they differ and the old one is not the default.
fn replace<T: PartialEq + Copy>(value: &mut T, given: Option<T>, default: T) -> Option<(T, T)> {
    let new = given.filter(|given| given != value)?;
    let old = std::mem::replace(value, new);
    (old != default).then_some((old, new))
}

/// Reads a configuration file and opens its sites, for the number of workers of a flag or the file.
fn read(path: &Path, serve: &Serve) -> Result<(Config, Option<Site>, Option<Diagnostics>), Failure> {
    let mut opened = None;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (config, warnings) = read_config(path, |config| {
        let (site, mut findings) = sites::open(config, serve.workers.unwrap_or(config.server.workers));
        opened = site;
        findings.errors.extend(access_log::check(config).errors);
        findings.warnings.extend(access_log::unused(config).filter(|_| serve.log.is_none()));
        findings.errors.extend(proxies::check(config).errors);
        let of_tls = tls::check::check(config, serve.https_port.is_some(), now, tls::READ_PAIR);
        findings.errors.extend(of_tls.errors);
        findings.warnings.extend(of_tls.warnings);
        findings
    })?;
    Ok((config, opened, Some(warnings)))
}

/// Reads a configuration file, and returns it with warnings. `check` finds further problems.
pub(crate) fn read_config(
    path: &Path,
    check: impl FnOnce(&Config) -> Findings,
) -> Result<(Config, Diagnostics), Failure> {
    refuse_special_file(path)?;
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(CONFIG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = valid.split('\n').next_back().unwrap_or_default();
        let (line, column) = (1 + valid.matches('\n').count(), 1 + line.chars().count());
        Failure::usage(format!("file is not UTF-8\n --> {}:{line}:{column}", path.display()))
    })?;
    if let Some(failure) = other_servers::of_text(path, &text) {
        return Err(failure);
    }
    Ok(Config::parse(path, &text, |name| std::env::var(name).ok(), check)?)
}

/// Folders of files that a shell passes to a process: `<(…)`, `/dev/stdin`.
const PASSED: [&str; 2] = ["/dev", "/proc"];

/// Refuses special files that weren't passed to the process: opening a named pipe would block until someone writes.
fn refuse_special_file(path: &Path) -> Result<(), Failure> {
    // A path without metadata can't be opened either.
    let Ok(kind) = std::fs::metadata(path).map(|metadata| metadata.file_type()) else { return Ok(()) };
    if kind.is_file() || kind.is_dir() || PASSED.iter().any(|folder| path.starts_with(folder)) {
        return Ok(());
    }
    let what = if kind.is_fifo() { "a pipe" } else { "a socket or a device" };
    Err(Failure::usage_helped(
        format!("{} is {what}, not a file", path.display()),
        "name a file, or /dev/stdin to read from a pipe",
    ))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::usage_helped(
            format!("no such file: {path}"),
            format!("`shearwater config default > {path}` writes one to start with"),
        ),
        io::ErrorKind::IsADirectory => {
            Failure::usage_helped(format!("{path} is a folder"), "name the configuration file in it")
        }
        io::ErrorKind::PermissionDenied => Failure::usage(format!("permission denied: {path}")),
        _ => Failure::usage(format!("can't read {path}: {error}")),
    }
}
