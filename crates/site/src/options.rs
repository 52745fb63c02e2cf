//! Options of sites: plain data, and mistakes in them.

use std::fmt;
use std::time::Duration;

use shearwater_files::{CacheLimits, Folder};

use crate::guards::Guards;
use crate::limits::MISTAKES_MAX;

/// Options of all sites of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Folders to serve; [`Content::Files`] is an index of this list.
    pub folders: Vec<Folder>,
    /// Limits of each worker's cache, shared by the folders.
    pub cache: CacheLimits,
    /// The sites. The one without hosts, or the first, is the default.
    pub sites: Vec<Site>,
}

/// Content and rules for some hosts.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// `example.org` is this host; `*.example.org` is one or more labels before it. An exact host wins over a star, a longer name over a
    /// shorter. Case, port and a final dot are ignored.
    pub hosts: Vec<String>,
    /// Content of paths without a route.
    pub content: Content,
    /// Redirects requests that came in clear to `https`, before everything else. A challenge of a certificate authority
    /// (`/.well-known/acme-challenge/`) isn't redirected.
    pub https_only: bool,
    /// Has browsers use `https` only.
    pub hsts: Option<Hsts>,
    /// Guards, which run behind the redirect to `https`.
    pub guards: Guards,
    /// Sets headers that restrict browsers, unless `headers` changes them.
    pub security_headers: bool,
    /// Changes to response headers.
    pub headers: Headers,
    /// Error pages.
    pub error_pages: Vec<ErrorPage>,
    /// Redirects. They take precedence over routes of the same path.
    pub redirects: Vec<Redirect>,
    /// Routes with other content or rules than the site.
    pub routes: Vec<Route>,
}

/// Content of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Content {
    /// `404`.
    #[default]
    Nothing,
    /// Files of a folder, an index of [`Options::folders`]. The whole path of a request is looked up beneath it.
    Files(usize),
    /// A fixed response.
    Fixed(Fixed),
}

/// A fixed response. An error is sent for every method, others for `GET`, `HEAD` and `OPTIONS`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fixed {
    /// 200 to 599, except 3xx, 206, 405 and 426. A `401` requires that `WWW-Authenticate` is set in the headers, a `407`
    /// `Proxy-Authenticate`.
    pub status: u16,
    /// Media type of the body.
    pub media_type: String,
    /// The body. An error without one is sent with its error page.
    pub body: Vec<u8>,
}

/// A path or prefix of a site with rules of its own.
///
/// The most specific route of a path wins: the exact path, then the longest prefix.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// `/a` is this path; `/a/*` is `/a` and everything beneath it. Requests match by the decoded path with repeated slashes merged.
    /// `/a/` is another path than `/a`. A percent sign is written `%25`, a star `%2A`.
    pub path: String,
    /// Content; `None`: the site's.
    pub content: Option<Content>,
    /// Looks files up by the path after the prefix: with `/uploads/*`, `/uploads/a` is the file `a` of the folder. Only
    /// for a prefix.
    pub strip_prefix: bool,
    /// Guards; `None`: the site's.
    pub guards: Option<Guards>,
    /// As that of the site.
    pub security_headers: bool,
    /// Has browsers save the files.
    pub download: Option<Download>,
    /// Changes to response headers, in addition to the site's.
    pub headers: Headers,
    /// Error pages, in addition to the site's.
    pub error_pages: Vec<ErrorPage>,
}

/// Files are sent for saving (`Content-Disposition: attachment`, RFC 6266).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Download {
    /// The name for saving; `None`: the last segment of the URL.
    pub name: Option<String>,
}

/// A redirect, for every method.
#[derive(Debug, Clone)]
pub struct Redirect {
    /// As [`Route::path`].
    pub from: String,
    /// A path, or a URL with `http://` or `https://`. `{rest}` is the part of the path that the star matches. The request's query is kept
    /// unless the target has one.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// Default of [`Redirect::status`]: permanent, with the same method.
pub const REDIRECT_STATUS: u16 = 308;

/// Changes to response headers.
///
/// They apply to every response, including errors and `304`, with two exceptions: headers about caching and the version of the content
/// (`Cache-Control`, `Expires`, `ETag`, …) are not set in errors, and headers about the content (`Content-…`) are set with `2xx` and `304`
/// only. Headers are removed from every response.
///
/// Built-in pages (folder listings and errors) have a `Content-Security-Policy` that allows exactly their content. A site's
/// `Content-Security-Policy` and `Content-Security-Policy-Report-Only` don't apply to them; all other changes do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// Names and values. A value replaces that of the response, except for `Vary`, which is added to.
    pub set: Vec<(String, String)>,
    /// Names.
    pub remove: Vec<String>,
}

/// HTTP Strict Transport Security (RFC 6797): `Strict-Transport-Security` in all responses by TLS, and in none in clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hsts {
    /// Time for which a browser uses `https` only. 0 ends that.
    pub max_age: Duration,
    /// Includes all names beneath the host.
    pub subdomains: bool,
    /// Agrees to the lists that browsers are shipped with. It needs `subdomains` and a year.
    pub preload: bool,
}

/// A page for an error; the status stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorPage {
    /// 400 to 599.
    pub status: u16,
    /// A path of the site where files are served. If the file is missing, the built-in page is sent.
    pub path: String,
}

/// A mistake in the options, or something that is probably one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The option as a key of the configuration file, such as `site[0].route[2].path`. Counted from 0.
    pub key: String,
    /// The mistake in one line. It never repeats the value of an option.
    pub message: String,
    /// A way to fix it. It may repeat the value of the option.
    pub help: Option<String>,
}

/// Mistakes, the first [`MISTAKES_MAX`] of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// At most [`MISTAKES_MAX`].
    pub list: Vec<Mistake>,
    /// Number of mistakes beyond that.
    pub left_out: usize,
}

/// An invalid value: a message and help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidValue {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Returns an invalid value, without help if that is empty.
pub(crate) fn invalid(message: impl Into<String>, help: impl Into<String>) -> InvalidValue {
    InvalidValue { message: message.into(), help: Some(help.into()).filter(|help| !help.is_empty()) }
}

impl Mistakes {
    pub(crate) fn add(&mut self, key: impl Into<String>, InvalidValue { message, help }: InvalidValue) {
        match self.list.len() < MISTAKES_MAX {
            true => self.list.push(Mistake { key: key.into(), message, help }),
            false => self.left_out += 1,
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { key, message, help }) in self.list.iter().enumerate() {
            let line_end = if index > 0 { "\n" } else { "" };
            write!(f, "{line_end}{key}: {message}")?;
            help.iter().try_for_each(|help| write!(f, " ({help})"))?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Mistakes {}
