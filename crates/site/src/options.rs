//! What sites are made of, as the program says it: plain data.

use shearwater_files::{CacheLimits, Folder};

/// All that one server answers.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folders whose files are served; [`Content::Files`] names one by its place here. Each worker keeps files of each of them.
    pub folders: Vec<Folder>,
    /// What each worker keeps in memory of each folder.
    pub cache: CacheLimits,
    /// The sites. The one without hosts, else the first, answers requests for hosts that no site has.
    pub sites: Vec<Site>,
}

/// One site: what is answered to requests for its hosts.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// `example.org` is this host; `*.example.org` is each with one or more labels before that. A host of its own goes before a star, and
    /// the longer one before the shorter. Case, port and a dot at the end make no difference.
    pub hosts: Vec<String>,
    /// What is answered where no route says otherwise.
    pub content: Content,
    /// Fields of its answers.
    pub headers: Headers,
    /// What is sent in the place of errors.
    pub error_pages: Vec<ErrorPage>,
    /// Paths that have moved. They go before routes of the same path.
    pub redirects: Vec<Redirect>,
    /// Paths that are answered otherwise than the rest of the site.
    pub routes: Vec<Route>,
}

/// What is answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Content {
    /// `404`.
    #[default]
    Nothing,
    /// The files of a folder, by its place in [`Options::folders`]. The whole path of the request names the file beneath it.
    Files(usize),
    /// Always the same.
    Fixed(Fixed),
}

/// An answer that is always the same. One that is no error has `GET`, `HEAD` and `OPTIONS`; an error is one whatever the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fixed {
    /// A status of 200 to 599 that needs nothing else: no redirect, no `206`. A `401` needs a `WWW-Authenticate` among the
    /// fields that are set, a `407` a `Proxy-Authenticate`.
    pub status: u16,
    /// The body's media type.
    pub media_type: String,
    /// The body. An error without one is sent with its error page.
    pub body: Vec<u8>,
}

/// A path of a site, and what is different there.
///
/// Of several routes that a path has, the one for this very path goes first, then the longest.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// `/a` is this path; `/a/*` is `/a` and all that is beneath it. It is compared with the path as files are looked up by it: decoded,
    /// and several slashes in a row are one. A slash at the end makes another path of `/a`. A percent sign is written `%25`, a star `%2A`.
    pub path: String,
    /// What is answered; that of the site where there is none.
    pub content: Option<Content>,
    /// Fields of its answers, over and above those of the site.
    pub headers: Headers,
    /// What is sent in the place of errors; those of the site for statuses that have none here.
    pub error_pages: Vec<ErrorPage>,
}

/// A path that has moved. Whatever the method, the answer names the new place.
#[derive(Debug, Clone)]
pub struct Redirect {
    /// As [`Route::path`].
    pub from: String,
    /// A path, or a URL with `http://` or `https://`. `{rest}` in it is what the star stands for. The request's query is kept unless it has one
    /// of its own.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// Default of [`Redirect::status`]: for good, and with the same method.
pub const REDIRECT_STATUS: u16 = 308;

/// Changes to the fields of answers.
///
/// They are made to every answer, errors and `304` among them, with two exceptions. Fields that say how long an answer may be
/// kept, or which version of the content it is (`Cache-Control`, `Expires`, `ETag` and their like), are not set in errors: a page that isn't there is not to
/// stay away for a year. Those that say what the content is (`Content-…`) are set with `2xx` and `304` only. What is removed is removed
/// from all.
///
/// The server's own pages (folder lists, and errors without a page of the site) have a `Content-Security-Policy` that allows exactly their content.
/// A site's `Content-Security-Policy` and `Content-Security-Policy-Report-Only` don't apply to them; all other changes do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// Name and value. It takes the place of what the answer has of this name; only `Vary` stands beside it, for to lose that
    /// would give one client's answer to another.
    pub set: Vec<(String, String)>,
    /// Names.
    pub remove: Vec<String>,
}

/// What is sent in the place of an error; the status stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorPage {
    /// 400 to 599.
    pub status: u16,
    /// A path of the site where files are served. Where there is no such file the error is sent without it.
    pub path: String,
}
