//! Content to serve: a folder, the sites of a configuration, or the welcome page.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use shearwater::{Method, Request, Response, Service};
use shearwater_files::{CacheLimits, Files, Folder};
use shearwater_precompress::Format;
use shearwater_site::Sites;

use crate::failure::{Failure, Reason};
use crate::intent::{of_file, of_missing};

/// Served without an argument if it exists.
const DEFAULT_FOLDER: &str = "public";

const WELCOME: &str = include_str!("welcome.html");

/// Allows the style and the icon of the welcome page only. A test compares the hash with the style.
const WELCOME_POLICY: &str = "default-src 'none'; style-src 'sha256-PMvTGH0ZyTzRKTkKVi/egYSjJzZsHpkAttMhoZiZiNc='; img-src data:; base-uri 'none'; form-action 'none'";

/// Content to serve, opened and checked.
#[derive(Debug, Clone)]
pub(crate) enum Site {
    /// The files of a folder.
    Folder {
        /// Its path for reports.
        path: PathBuf,
        folder: Folder,
    },
    /// The sites of a configuration.
    Sites {
        sites: Sites,
        /// Description for reports.
        described: String,
        roots: Vec<Root>,
    },
    /// The built-in welcome page.
    Welcome,
}

/// A folder with the formats of precompressed files to send from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) formats: Vec<Format>,
}

impl Site {
    /// Returns the folders to serve.
    pub(crate) fn roots(&self) -> Vec<Root> {
        match self {
            Self::Folder { path, .. } => vec![Root { path: path.clone(), formats: Format::ALL.to_vec() }],
            Self::Sites { roots, .. } => roots.clone(),
            Self::Welcome => Vec::new(),
        }
    }

    /// Opens a folder; without one, the folder `public` in `base` if it exists, or the welcome page.
    pub(crate) fn open(folder: Option<&Path>, base: &Path) -> Result<Self, Failure> {
        let default = base.join(DEFAULT_FOLDER);
        let path = match folder {
            Some(path) => path,
            None if default.is_dir() => &default,
            None => return Ok(Self::Welcome),
        };
        Self::folder(path).map_err(|error| {
            let meant = match error.kind() {
                io::ErrorKind::NotFound => of_missing(path),
                io::ErrorKind::NotADirectory if path.is_file() => Some(of_file(path)),
                _ => None,
            };
            meant.unwrap_or_else(|| {
                let (message, help) = cant_open(path, &error);
                Failure { reason: Reason::Error { message, help }, code: 2 }
            })
        })
    }

    /// Returns warnings about a folder. Those about configured sites refer to keys and are not included.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match self {
            Self::Folder { path, folder } => {
                let no_index =
                    folder.no_index().map(|why| format!("{}: {why} in a configuration", path.display()));
                no_index.into_iter().collect()
            }
            Self::Sites { .. } | Self::Welcome => Vec::new(),
        }
    }

    /// Opens a folder.
    pub(crate) fn folder(path: &Path) -> io::Result<Self> {
        let folder = Folder::open(path)?;
        Ok(Self::Folder { path: path.canonicalize()?, folder })
    }

    /// Returns one worker's service with a cache of this size.
    pub(crate) fn service(&self, cache: CacheLimits) -> SiteService {
        match self {
            Self::Folder { folder, .. } => SiteService::Files(folder.files_with(cache)),
            Self::Sites { sites, .. } => SiteService::Sites(sites.service()),
            Self::Welcome => SiteService::Welcome,
        }
    }
}

/// Formats a description for reports.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, .. } => path.display().fmt(f),
            Self::Sites { described, .. } => f.write_str(described),
            Self::Welcome => f.write_str("a welcome page (to serve files, name a folder or create ./public)"),
        }
    }
}

/// Returns a message, and perhaps help, for a folder that can't be opened.
pub(crate) fn cant_open(path: &Path, error: &io::Error) -> (String, Option<String>) {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => (format!("no such folder: {path}"), None),
        io::ErrorKind::NotADirectory => {
            (format!("{path} is a file"), Some("name the folder that it is in".to_owned()))
        }
        io::ErrorKind::PermissionDenied => (format!("permission denied: {path}"), None),
        _ => (format!("can't open {path}: {error}"), None),
    }
}

/// One worker's service.
pub(crate) enum SiteService {
    Files(Files),
    Sites(shearwater_site::SiteService),
    Welcome,
}

impl Service for SiteService {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match self {
            Self::Files(files) => files.respond(request, response),
            Self::Sites(sites) => sites.respond(request, response),
            Self::Welcome => welcome(request, response),
        }
    }
}

fn welcome(request: &Request<'_>, response: &mut Response<'_>) {
    match (request.method(), request.path()) {
        (Method::Get | Method::Head, "/") => {
            response.field("Content-Security-Policy", WELCOME_POLICY);
            response.content_type("text/html; charset=utf-8").body_static(WELCOME.as_bytes())
        }
        (Method::Get | Method::Head, _) => response.status(404).text("Not Found\n"),
        _ => response.unhandled_method(request, "GET, HEAD, OPTIONS"),
    };
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
