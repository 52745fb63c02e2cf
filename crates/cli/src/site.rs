//! Content to serve: the sites of a configuration, a folder, or the welcome page.

use std::io;
use std::path::{Path, PathBuf};

use shearwater::{Running, Server};
use shearwater_files::{
    BadOption, CacheFigures, CacheLimits, Folder, FolderError, FolderOptions, compression_figures,
};
use shearwater_metrics::{CacheCounts, CompressionCounts, Metrics};
use shearwater_precompress::Coding;
use shearwater_site::{self as site, Content, Fixed, Headers, Mistakes, Options, Route, Sites};

use crate::failure::Failure;
use crate::flag_site::FlagSite;
use crate::guards;
use crate::intent::{of_file, of_missing};

/// Served without an argument if it exists.
const DEFAULT_FOLDER: &str = "public";

const WELCOME: &str = include_str!("welcome.html");

/// Allows the style and the icon of the welcome page only. A test compares the hash with the style.
const WELCOME_POLICY: &str = "default-src 'none'; style-src 'sha256-PMvTGH0ZyTzRKTkKVi/egYSjJzZsHpkAttMhoZiZiNc='; img-src data:; base-uri 'none'; form-action 'none'";

/// Content to serve, opened and checked.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) sites: Sites,
    /// Description for reports.
    pub(crate) description: String,
    /// The folder, or each site with its folders, for the start report.
    pub(crate) lines: Vec<String>,
    /// Guards, for `check`.
    pub(crate) guarded: Vec<String>,
    pub(crate) roots: Vec<Root>,
    /// Further files that were read: of users.
    pub(crate) files: Vec<PathBuf>,
    /// Warnings that don't refer to keys of a configuration, a line each.
    pub(crate) warnings: Vec<String>,
}

/// A folder with the formats of precompressed files to send from it.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) folder: Folder,
    pub(crate) formats: Vec<Coding>,
}

impl Site {
    /// Numbers the sites for metrics, before they are shared.
    pub(crate) fn count_by(&mut self, metrics: Option<&Metrics>) {
        if let Some(metrics) = metrics {
            self.sites.set_tags(|name| metrics.site_tag(name));
            let cache = self.sites.cache_statistics();
            metrics.set_cache(move || {
                let CacheFigures { files, bytes, hits, misses, .. } = cache.figures();
                CacheCounts { files, bytes, hits, misses }
            });
            metrics.set_compression(|| {
                let figures = compression_figures();
                CompressionCounts {
                    bytes: figures.bytes,
                    done: figures.compressions,
                    bytes_in: figures.bytes_in,
                    bytes_out: figures.bytes_out,
                    evictions: figures.evictions,
                    rejections: figures.rejections,
                }
            });
        }
    }

    /// Starts a server of the sites.
    pub(crate) fn start(&self, server: Server) -> Result<Running, shearwater::Error> {
        let sites = self.sites.clone();
        let running = server.start_service(move |_| sites.service())?;
        if let Some(address) = running.start_report().secure_addresses.first() {
            // It has no effect unless the system picked the port.
            self.sites.set_https_port(address.port());
        }
        Ok(running)
    }

    /// Opens a folder; without one, the folder `public` in `base` if it exists, or the welcome page.
    pub(crate) fn open(
        folder: Option<&Path>,
        base: &Path,
        cache: CacheLimits,
        by_flags: &FlagSite,
    ) -> Result<Self, Failure> {
        let default = base.join(DEFAULT_FOLDER);
        let path = match folder {
            Some(path) => path,
            None if default.is_dir() => &default,
            None if by_flags.files != FolderOptions::default() => {
                let error = "`--listing`, `--spa` and other flags about files need a folder";
                return Err(Failure::usage_helped(error, "name it: `shearwater FOLDER`, or create ./public"));
            }
            None => return Self::welcome(cache, by_flags),
        };
        let opened = match Folder::open_with(path, &by_flags.files) {
            Ok(folder) => path.canonicalize().map(|path| (folder, path)),
            Err(FolderError::Open(error)) => Err(error),
            Err(FolderError::Option(option)) => return Err(of_option(&option)),
        };
        let (folder, path) = opened.map_err(|error| {
            let meant = match error.kind() {
                io::ErrorKind::NotFound => of_missing(path),
                io::ErrorKind::NotADirectory if path.is_file() => Some(of_file(path)),
                _ => None,
            };
            meant.unwrap_or_else(|| {
                let (message, help) = cant_open(path, &error);
                Failure::usage_with_help(message, help)
            })
        })?;
        let (missing, of_root) = (folder.missing(), folder.clone());
        let content = site::Site { content: Content::Files(0), ..of_flags(by_flags) };
        let sites =
            Sites::new(Options { folders: vec![folder], cache, sites: vec![content] }).map_err(invalid)?;
        let (description, formats) = (path.display().to_string(), Coding::ALL.to_vec());
        let warnings = sites.warnings().list.iter();
        let warnings = warnings.map(|warning| match flag_of(&warning.key) {
            Some(flag) => format!("{description}: {} with `{flag}`", warning.message),
            None => format!("{description}: {}", warning.message.replace("`listing = true`", "`--listing`")),
        });
        let mut warnings: Vec<_> = warnings.collect();
        if !missing.is_empty() {
            warnings
                .push(format!("{description}: no index.html, so with --spa paths without a file get a 404"));
        }
        let lines = vec![description.clone()];
        let roots = vec![Root { path, folder: of_root, formats }];
        Ok(Self { sites, description, lines, roots, warnings, guarded: Vec::new(), files: Vec::new() })
    }

    /// Returns the built-in welcome page.
    fn welcome(cache: CacheLimits, by_flags: &FlagSite) -> Result<Self, Failure> {
        let media_type = "text/html; charset=utf-8".to_owned();
        let page = Fixed { status: 200, media_type, body: WELCOME.as_bytes().to_vec() };
        let policy = ("Content-Security-Policy".to_owned(), WELCOME_POLICY.to_owned());
        let route = Route {
            path: "/".to_owned(),
            content: Some(Content::Fixed(page)),
            headers: Headers { set: vec![policy], remove: Vec::new() },
            ..Route::default()
        };
        let content = site::Site { routes: vec![route], ..of_flags(by_flags) };
        let sites =
            Sites::new(Options { folders: Vec::new(), cache, sites: vec![content] }).map_err(invalid)?;
        let description = "a welcome page (to serve files, name a folder or create ./public)".to_owned();
        let lines = vec![description.clone()];
        let (roots, warnings, guarded, files) = Default::default();
        Ok(Self { sites, description, lines, guarded, roots, files, warnings })
    }
}

/// Returns a site without content, with the names and TLS of flags.
fn of_flags(by_flags: &FlagSite) -> site::Site {
    let FlagSite { hosts, headers, error_pages, cors, .. } = by_flags.clone();
    let guards = if cors { guards::any_origin() } else { site::Guards::default() };
    let https_only = by_flags.is_encrypted();
    site::Site { hosts, https_only, guards, headers, error_pages, ..site::Site::default() }
}

fn invalid(mistakes: Mistakes) -> Failure {
    let Some(first) = mistakes.list.into_iter().next() else { return Failure::usage("invalid site") };
    let flag = flag_of(&first.key).unwrap_or_else(|| "--domain".to_owned());
    Failure::usage_with_help(format!("`{flag}`: {}", first.message), first.help)
}

/// Returns the flag about headers or error pages that sets a key of a site.
fn flag_of(key: &str) -> Option<String> {
    let key = key.strip_prefix("site[0].")?;
    match key.split_once('.').unwrap_or((key, "")) {
        ("cors", "") => Some("--cors".to_owned()),
        ("headers", name) => Some(format!("--header {}", name.strip_prefix("set.")?)),
        ("error_pages", status) => Some(format!("--error-page {status}")),
        _ => None,
    }
}

/// Returns the error for the value of a flag about files.
fn of_option(option: &BadOption) -> Failure {
    let flag = option.option.replace('_', "-");
    Failure::usage(format!("`--{flag}`: invalid value: {}", option.why))
}

/// Returns a message, and perhaps help, for a folder that can't be opened.
pub(crate) fn cant_open(path: &Path, error: &io::Error) -> (String, Option<String>) {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            (format!("no such folder: {path}"), Some("create it, or name another one".to_owned()))
        }
        io::ErrorKind::NotADirectory => {
            (format!("{path} is a file"), Some("name the folder that it is in".to_owned()))
        }
        io::ErrorKind::PermissionDenied => (format!("permission denied: {path}"), None),
        _ => (format!("can't open {path}: {error}"), None),
    }
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine};
    use sha2::{Digest, Sha256};

    use super::{WELCOME, WELCOME_POLICY};

    #[test]
    fn the_policy_allows_the_style_of_the_welcome_page() {
        let (_, rest) = WELCOME.split_once("<style>").expect("a style");
        let (style, rest) = rest.split_once("</style>").expect("its end");
        let hash = format!("style-src 'sha256-{}';", BASE64_STANDARD.encode(Sha256::digest(style)));
        assert!(WELCOME_POLICY.contains(&hash), "{WELCOME_POLICY} has another hash than {hash}");
        assert!(!rest.contains("<style") && !WELCOME.contains("style=") && !WELCOME.contains("<script"));
    }
}
