//! Options of a folder, one plain struct per feature. They read no files; [`FolderOptions::check`] validates them.

use std::fmt;
use std::io;

use shearwater_io::fs::{Coding, Links};

use crate::resolve::path::{BadPath, resolve_setting};

/// Options of a folder.
///
/// By default the index is `index.html` and names that begin with a dot are not found. Links are followed if their
/// target is inside, and precompressed files are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderOptions {
    /// Selection of a path's file.
    pub find: FindOptions,
    /// Handling of names that begin with a dot. Default [`Hidden::Deny`].
    pub hidden: Hidden,
    /// Symbolic links that are followed. Default [`Links::Inside`].
    pub symlinks: Links,
    /// Lists a folder without an index, as HTML or JSON by `Accept`. Default false.
    pub listing: bool,
    /// Codings of precompressed files, the preferred one first where a client accepts several equally. Default Brotli,
    /// Zstandard, gzip; empty: none.
    pub precompressed: Vec<Coding>,
    /// Compresses text and [similar types](shearwater_compress::is_compressible) of 1 KiB to
    /// [`COMPRESSED_FILE_BYTES_MAX`](crate::limits::COMPRESSED_FILE_BYTES_MAX) on the fly, unless a precompressed file of
    /// the coding exists or `Cache-Control` has `no-transform`. Default false.
    ///
    /// The first request for a file's version gets it as it is, while another thread compresses it; later ones get the
    /// result, by Brotli, Zstandard or gzip as the client prefers. A file that has changed within two seconds isn't
    /// compressed yet.
    pub compress: bool,
    /// Media types that differ from the built-in ones.
    pub media_types: MediaTypeOptions,
    /// Rules for `Cache-Control`; the first that matches a file applies. Default none.
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
            compress: false,
            media_types: MediaTypeOptions::default(),
            cache_control: Vec::new(),
        }
    }
}

/// Selection of a path's file: the first candidate that exists.
///
/// Without `try_files`, a path with a trailing slash gets the folder's index. Any other path gets the file of this
/// name; if that is a folder, the response is `301` to the path with a slash, so that relative links in its index work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindOptions {
    /// Names of a folder's index; the first that exists is sent. Default `index.html`. At most
    /// [`INDEX_NAMES_MAX`](crate::limits::INDEX_NAMES_MAX).
    pub index: Vec<String>,
    /// Candidates for a path, tried in this order; at most [`TRY_FILES_MAX`](crate::limits::TRY_FILES_MAX). Default
    /// empty.
    ///
    /// Candidates are percent-decoded like the paths of requests: write `%25` for a percent sign. `{path}` is
    /// replaced by the request's decoded path, with a leading and without a trailing slash: `{path}` is the file itself, `{path}/`
    /// a folder with its index (and its list, if enabled), `{path}.html` and `/pages{path}.html` are files. A candidate
    /// without `{path}` is a fixed file, such as `/index.html`, sent with `200`. The last may be a status such as
    /// `=404`. For a path with a trailing slash, only candidates that begin with `{path}/` or have no `{path}` are
    /// tried.
    pub try_files: Vec<String>,
    /// Fallback file, by its path, sent with `200` to navigation requests for missing files: the last segment of the
    /// path has no extension, or `Accept` names `text/html`. (A missing script should stay missing.) Default none.
    pub spa: Option<String>,
    /// Serves pages without extension: `/about` gets `about.html`. `/about.html`, `/about/` (unless it is a folder with
    /// an index or a list) and `/a/index.html` are redirected with `308` to the canonical path of the file. Default
    /// false.
    pub clean_urls: bool,
}

impl Default for FindOptions {
    fn default() -> Self {
        Self { index: vec!["index.html".to_owned()], try_files: Vec::new(), spa: None, clean_urls: false }
    }
}

/// Handling of names that begin with a dot, anywhere in a path. `/.well-known/` itself is never hidden (RFC 8615).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Hidden {
    /// They are not found, whether they exist or not.
    #[default]
    Deny,
    /// They are served like others.
    Serve,
}

/// Media types that differ from the built-in ones ([`media_type`](crate::media_type)). They are sent as written: text
/// without a `charset` stays without.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaTypeOptions {
    /// Types by extension, without its dot and case-insensitive. At most
    /// [`MEDIA_TYPES_MAX`](crate::limits::MEDIA_TYPES_MAX), including those by name.
    pub by_extension: Vec<(String, String)>,
    /// Types by whole file name in any folder, such as `LICENSE`, case-sensitive. They come before those by extension.
    pub by_name: Vec<(String, String)>,
    /// Type of files with an unknown extension. Default `application/octet-stream`.
    pub otherwise: Option<String>,
    /// Charset of the built-in text types. Default `utf-8`; an empty one sends none.
    pub charset: Option<String>,
}

/// A rule for `Cache-Control`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRule {
    /// Files that the rule applies to.
    pub files: FileMatch,
    /// Value of the header, such as `no-cache` or `public, max-age=31536000, immutable`.
    pub value: String,
}

/// Selection of a rule's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileMatch {
    /// Files of a media type, `text/html`, or of a group of types, `image/*`. Parameters are ignored.
    Type(String),
    /// One file by its path in the folder, `/sw.js`, or several by a wildcard, `/assets/*`, `*.js`, `/a/*.css`. This is
    /// the path of the file that is sent, not of the request: `/` may be `/index.html`. It is percent-decoded like the
    /// path of a request: write `%25` for a percent sign and `%2A` for a star.
    Path(String),
}

/// An invalid value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadOption {
    /// Name of the option, such as `try_files`.
    pub option: &'static str,
    /// The value.
    pub value: String,
    /// The reason.
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

/// Error of opening a folder.
#[derive(Debug)]
pub enum FolderError {
    /// An option is invalid.
    Option(BadOption),
    /// The folder is missing or not readable.
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

/// Resolves the path of a fixed file in an option, percent-decoded like the path of a request.
pub(crate) fn file_name(option: &'static str, path: &str) -> Result<Vec<u8>, BadOption> {
    let bad = |why| BadOption::new(option, path, why);
    let segments = path.strip_prefix('/').ok_or_else(|| bad("a path begins with a slash"))?;
    if let Some(why) = segments.split('/').find_map(bad_segment) {
        return Err(bad(why));
    }
    decoded(path).map_err(bad)
}

/// Resolves a path in an option to a name, like the path of a request.
///
/// # Errors
/// The reason why the path has no name.
pub(crate) fn decoded(path: &str) -> Result<Vec<u8>, &'static str> {
    let mut name = Vec::new();
    match resolve_setting(path, &mut name) {
        Ok(_) => Ok(name),
        Err(BadPath::Escape) => {
            Err("a percent sign is followed by two hexadecimal digits (a real one is written %25)")
        }
        Err(BadPath::Dots) => Err("it has . or .. in it"),
        Err(BadPath::NoName) => Err("a name must not contain a slash or a NUL"),
    }
}

/// Returns the error in one segment of a file's path.
pub(crate) fn bad_segment(segment: &str) -> Option<&'static str> {
    match segment {
        "" => Some("empty name: a path names a file, with one slash between names"),
        "." | ".." => Some("it has . or .. in it"),
        _ if segment.contains('\0') => Some("a name must not contain a NUL"),
        _ if segment.contains(['{', '}']) => {
            Some("braces are reserved for {path}, which is allowed once and only in try_files")
        }
        _ => None,
    }
}
