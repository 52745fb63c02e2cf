//! What can be set of a folder: one plain struct per feature. Nothing here reads anything; [`FolderOptions::check`] says what is wrong.

use std::fmt;
use std::io;

use shearwater_io::fs::Links;

use crate::cache_control::CacheRule;
use crate::coding::Coding;
use crate::plan::Plan;

/// How a folder is served. The default: the index of a folder is `index.html`, names that begin with a dot are not found, links are
/// followed whose target is inside, and files that lie ready in a coding are sent in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderOptions {
    /// Which file a path is answered with.
    pub find: FindOptions,
    /// What is done about names that begin with a dot. Default [`Hidden::Deny`].
    pub hidden: Hidden,
    /// The symbolic links that are followed. Default [`Links::Inside`].
    pub symlinks: Links,
    /// Whether a folder without an index is answered with a list of what is in it, as HTML or JSON by `Accept`. Default no.
    pub listing: bool,
    /// The codings that files beside a file are looked for in, the one to be preferred first where a client likes two as much.
    /// Default Brotli, Zstandard, gzip; empty: none.
    pub precompressed: Vec<Coding>,
    /// Media types that differ from the usual ones.
    pub media_types: MediaTypeOptions,
    /// What `Cache-Control` says of a file: the first rule that holds for it. Default none.
    pub cache_control: Vec<CacheRule>,
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self {
            find: FindOptions::default(),
            hidden: Hidden::default(),
            symlinks: Links::default(),
            listing: false,
            precompressed: Coding::ALL.to_vec(),
            media_types: MediaTypeOptions::default(),
            cache_control: Vec::new(),
        }
    }
}

impl FolderOptions {
    /// Looks at all values, and at no file.
    ///
    /// # Errors
    /// The first value that means nothing.
    pub fn check(&self) -> Result<(), BadOption> {
        Plan::new(self).map(drop)
    }
}

/// Which file a path is answered with: the first that there is.
///
/// Without `try_files` a path that ends with a slash is answered with the folder's index, and another one with the file of this name; where
/// that is a folder, with `301` to the path with a slash, so that relative links in its index hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindOptions {
    /// File names that a folder is answered with, the first that it has. Default `index.html`. At most
    /// [`INDEX_NAMES_MAX`](crate::limits::INDEX_NAMES_MAX).
    pub index: Vec<String>,
    /// What is tried for a path, in this order and nothing else; at most [`TRY_FILES_MAX`](crate::limits::TRY_FILES_MAX). Default empty: the usual.
    ///
    /// They are read as the paths of requests, percent-decoded: a percent sign is written `%25`.
    /// `{path}` is the path that was asked for, decoded, with its slash in front and none behind: `{path}` is the file itself,
    /// `{path}/` a folder with its index (and its list, where there is one), `{path}.html` and `/pages{path}.html` are files. What has no `{path}`
    /// is one certain file, such as `/index.html`; it is answered with `200`. The last may be a status such as `=404`.
    /// A path with a slash behind is tried only as a folder, by what begins with `{path}/`, and by what has no `{path}`.
    pub try_files: Vec<String>,
    /// The file, by its path as in a request, that is sent with `200` for what isn't there, where somebody navigates: the last segment of the path has no extension, or
    /// `Accept` names `text/html`. (A missing script should be missing.) Default none.
    pub spa: Option<String>,
    /// Pages have no extension: `/about` is answered with `about.html`, and `/about.html`, `/about/` (unless it is a folder with an index or a list) and
    /// `/a/index.html` with `308` to the one path under which the same file is sent. Default no.
    pub clean_urls: bool,
}

impl Default for FindOptions {
    fn default() -> Self {
        Self { index: vec!["index.html".to_owned()], try_files: Vec::new(), spa: None, clean_urls: false }
    }
}

/// What is done about names that begin with a dot, anywhere in a path. `/.well-known/` itself is never hidden (RFC 8615).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Hidden {
    /// They are not found, whether they are there or not.
    #[default]
    Deny,
    /// They are names like others.
    Serve,
}

/// Media types that differ from the usual ones ([`media_type`](crate::media_type)). Text without a `charset` is given `charset=utf-8`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaTypeOptions {
    /// By extension, without its dot and in any case. At most [`MEDIA_TYPES_MAX`](crate::limits::MEDIA_TYPES_MAX).
    pub by_extension: Vec<(String, String)>,
    /// What a file of unknown extension is. Default `application/octet-stream`.
    pub otherwise: Option<String>,
}

/// A value of an option that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadOption {
    /// The field that it stands in, such as `try_files`.
    pub option: &'static str,
    /// The value.
    pub value: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl BadOption {
    pub(crate) fn new(option: &'static str, value: impl Into<String>, why: &'static str) -> Self {
        Self { option, value: value.into(), why }
    }
}

impl fmt::Display for BadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}: {}", self.option, self.value, self.why)
    }
}

impl std::error::Error for BadOption {}

/// Why a folder can't be served.
#[derive(Debug)]
pub enum FolderError {
    /// An option means nothing.
    Option(BadOption),
    /// There is no folder, or it may not be read.
    Open(io::Error),
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(bad) => bad.fmt(f),
            Self::Open(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FolderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Option(bad) => Some(bad),
            Self::Open(error) => Some(error),
        }
    }
}
