//! What is served: a folder, or the welcome page.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use shearwater::{Method, Request, Response, Service};
use shearwater_files::{CacheLimits, Files, Folder};
use shearwater_precompress::Format;
use shearwater_site::Sites;

use crate::failure::Failure;
use crate::intent::{of_file, of_missing};

/// Served without an argument where it exists.
const DEFAULT_FOLDER: &str = "public";

const WELCOME: &str = include_str!("welcome.html");

/// Allows the style and the icon of the welcome page and nothing else. A test compares the hash with the style.
const WELCOME_POLICY: &str = "default-src 'none'; style-src 'sha256-PMvTGH0ZyTzRKTkKVi/egYSjJzZsHpkAttMhoZiZiNc='; img-src data:; base-uri 'none'; form-action 'none'";

/// What is served, before any worker has started.
#[derive(Debug, Clone)]
pub(crate) enum Site {
    /// The files of a folder.
    Folder {
        /// As the operator knows it.
        path: PathBuf,
        /// The folder itself.
        folder: Folder,
    },
    /// The sites of a configuration.
    Sites {
        /// Checked, with their folders open.
        sites: Sites,
        /// As the operator knows them.
        described: String,
        /// Their folders.
        roots: Vec<Root>,
    },
    /// The page that is part of the program.
    Welcome,
}

/// A folder that is served, and the formats that siblings of its files are sent in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) formats: Vec<Format>,
}

impl Site {
    /// The folders that are served.
    pub(crate) fn roots(&self) -> Vec<Root> {
        match self {
            Self::Folder { path, .. } => vec![Root { path: path.clone(), formats: Format::ALL.to_vec() }],
            Self::Sites { roots, .. } => roots.clone(),
            Self::Welcome => Vec::new(),
        }
    }

    /// Opens the folder that was asked for, or settles what is served without one: a folder of a certain name in `base`, where it is there.
    pub(crate) fn open(asked: Option<&Path>, base: &Path) -> Result<Self, Failure> {
        let default = base.join(DEFAULT_FOLDER);
        let path = match asked {
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
            meant.unwrap_or_else(|| Failure::start(refusal(path, &error)))
        })
    }

    /// Returns warnings about what is served. Those of configured sites are about their keys, and not among these.
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

    /// The site as one worker serves it, which keeps so much in memory.
    pub(crate) fn service(&self, cache: CacheLimits) -> SiteService {
        match self {
            Self::Folder { folder, .. } => SiteService::Files(folder.files_with(cache)),
            Self::Sites { sites, .. } => SiteService::Sites(sites.service()),
            Self::Welcome => SiteService::Welcome,
        }
    }
}

/// What is served, in a few words.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, .. } => path.display().fmt(f),
            Self::Sites { described, .. } => f.write_str(described),
            Self::Welcome => f.write_str("a welcome page: name a folder, or make one called public here"),
        }
    }
}

/// Why a folder can't be served, and what to do.
pub(crate) fn refusal(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no folder {path}: name one that exists"),
        io::ErrorKind::NotADirectory => format!("{path} is a file: name the folder that it is in"),
        io::ErrorKind::PermissionDenied => format!("{path} may not be read by this user"),
        _ => format!("{path} can't be opened: {error}"),
    }
}

/// Answers for one worker.
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
