//! Responds to requests with the files of a folder: finds the file that a target names, and sends it.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shearwater::engine::KnownField;

use shearwater::{Method, Request, Response, Service};
use shearwater_io::fs::{OpenError, Opened};

use crate::cache::lookups::{Known, Lookups};
use crate::cache::store::FileStore;
use crate::listing::{ListedFolder, Listings};
use crate::negotiation::names_media_type;
use crate::now::Now;
use crate::options::Hidden;
use crate::reply::errors;
use crate::resolve::path::{Shape, resolve_in_place};
use crate::resolve::search::{Search, SearchResult, is_missing};
use crate::settings::FolderSettings;

/// Methods that files support (RFC 9110 section 10.2.1).
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// The files of a folder, served by one worker.
///
/// A cached file is checked for changes when it is requested, at most twice a second. So a change shows within a
/// second, and each response is of one version.
///
/// A larger file is sent from its descriptor, with the length that it has when the response begins. The connection ends
/// short of `Content-Length`, which the client detects, only if a change may have touched these bytes: the file became
/// shorter, or was written to without growing. All other changes leave the response whole: the file grows (a log), is
/// replaced by a rename, moved or removed, or gets another mode, owner, name or date (`chmod`, `chown`, `ln`, `touch`).
/// The last bytes of each piece are sent only after a check.
///
/// The check compares length and times. These can't distinguish a date that was set (`touch`) from a write, so a file
/// whose download takes longer is watched as well (Linux: inotify). A date that was set counts as a write for files
/// beyond [`WATCHES_MAX`](shearwater_io::limits::WATCHES_MAX) and where no watch is available: on other systems,
/// without `/proc`, beyond the user's limit of inotify instances. So does a modification date that is set alone (`touch
/// -m`), which the system reports as a write. The check misses:
///
/// - a file that is rewritten and longer afterwards (`cp` of a longer file over it). It passes for one that has grown,
///   unless the bytes at the promised end differ (the last 1 KiB, compared for longer downloads if they are in memory);
/// - a `write` that began before the response: its times are set when it begins (ext4; XFS blocks readers meanwhile). A
///   file is sent half written between two writes: write it under another name and rename it;
/// - a `write` in progress at the check or made by another machine (NFS), if mode, owner or both dates were set during
///   the download;
/// - a write after which the date is set back, where there is no watch;
/// - stores through a shared mapping into pages that are already dirty;
/// - before Linux 6.13 or on file systems other than ext4, XFS, Btrfs and tmpfs: a change within the same tick (1 to 10
///   ms) as the one before the head;
/// - the first change of a file after `SENDFILE_AFTER_S` without one, if it happens while the last bytes are in flight: the
///   system sends the file's own pages (`sendfile`), which change with the file. Before that time they are copied.
///
/// Disk work blocks the worker's thread and with it the worker's other connections: opening files, reading their
/// metadata, looking for siblings, reading files into the cache, listing folders. Pieces of 128 KiB and more that
/// aren't in the page cache are read ahead by another thread, where the file system supports it.
///
/// A sibling `NAME.br`, `NAME.zst` or `NAME.gz` is sent instead of `NAME` to clients that accept its coding. Neither of
/// its times may be before that of `NAME`, and it must not record another content length
/// ([`is_current_sibling`](shearwater_io::fs::is_current_sibling)).
pub struct Files {
    finder: RefCell<Finder>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Files {
    pub(crate) fn new(finder: Finder) -> Self {
        Self { finder: RefCell::new(finder) }
    }

    /// Responds with the file at `path`, such as `/404.html`, as the page of this status.
    ///
    /// The file is sent whole, in the client's preferred coding, and without validators, ranges and `Cache-Control`.
    /// Path options don't apply: the file may be hidden, and is sent even if its own path would be redirected.
    ///
    /// Returns false and leaves the response unchanged if the file is missing or not readable. Earlier changes of the
    /// response are kept, so pass a fresh one.
    ///
    /// # Panics
    /// If `status` is not a final status, 200 to 599.
    pub fn respond_page(
        &self,
        path: &str,
        status: u16,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        let name = path.strip_prefix('/').unwrap_or(path).as_bytes();
        self.finder.borrow_mut().respond_page(name, status, request, response)
    }
}

impl Service for Files {
    /// Responds with the file that the path names, after a mount's prefix ([`App::mount`](shearwater::App::mount)).
    ///
    /// `GET` and `HEAD` get a file, its folder's index, the requested parts (`206`, `416`), a redirect to the folder's
    /// path with a slash, the result of preconditions (`304`, `412`), or an error. `OPTIONS` gets `Allow`, other
    /// methods get `405` and unknown ones `501`.
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match request.method() {
            Method::Get | Method::Head => self.finder.borrow_mut().respond(request, response),
            _ => {
                response.unhandled_method(request, ALLOW);
            }
        }
    }
}

/// File lookup of one worker in one folder.
pub(crate) struct Finder {
    /// The folder's path in reports.
    pub(crate) path: Arc<Path>,
    pub(crate) settings: Arc<FolderSettings>,
    pub(crate) names: NameBuffers,
    pub(crate) lookups: Lookups,
    pub(crate) store: FileStore,
    pub(crate) listings: Listings,
}

/// Reused buffers for names.
#[derive(Default)]
pub(crate) struct NameBuffers {
    /// Name of the request's path, if it had to be decoded.
    decoded: Vec<u8>,
    /// Name of the request's path, if it isn't in memory.
    requested: Vec<u8>,
    /// Name of the file.
    file: Vec<u8>,
    /// Canonical name, for redirects.
    canonical: Vec<u8>,
}

impl Finder {
    /// Responds to `GET` and `HEAD`.
    pub(crate) fn respond(&mut self, request: &Request<'_>, response: &mut Response<'_>) {
        let (name, resolved) = match resolve_in_place(request.path(), &mut self.names.decoded) {
            Ok(resolved) => resolved,
            // The prefix of a mount, without a slash.
            Err(_) if request.path().is_empty() => return errors::redirect_to_folder(request, response),
            Err(bad) => return errors::bad_path(bad, response),
        };
        if resolved.is_hidden && self.settings.hidden == Hidden::Deny {
            return errors::not_found(response);
        }
        let now = Now::of(request);
        // Most requests end here: a recent lookup, a file in memory, no other coding.
        let known = self.lookups.known(name, now, &mut self.names.file);
        if let Some(Known::Cached(cached)) = known {
            if cached.siblings.is_empty() {
                return cached.version.reply(&cached.content, request, response);
            }
            cached.name.as_ref().clone_into(&mut self.names.file);
            return self.store.preferred(cached, &mut self.names.file, request, now).reply(request, response);
        }
        name.clone_into(&mut self.names.requested);
        self.respond_from_disk(known.is_some(), resolved.shape, request, response, now);
    }

    /// Responds with a file that isn't in memory: found within 500 ms under another name, open, or to be searched for.
    #[inline(never)]
    fn respond_from_disk(
        &mut self,
        has_other_name: bool,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) {
        let is_another_root = self.look_up_root(now);
        let Self { settings, names: NameBuffers { requested, file, .. }, store, .. } = self;
        let content = if has_other_name && !is_another_root {
            store.file(file, request, now).ok().map(|found| found.content)
        } else if shape == Shape::File && settings.candidates.serves_own_name(requested) {
            store.known_file(requested, request, now)
        } else {
            None
        };
        match content {
            Some(content) => content.reply(request, response),
            None => self.search(shape, request, response, now),
        }
    }

    /// Responds with a file as the page of a status. Returns false without changing the response if it can't be sent.
    pub(crate) fn respond_page(
        &mut self,
        name: &[u8],
        status: u16,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        let now = Now::of(request);
        self.look_up_root(now);
        name.clone_into(&mut self.names.file);
        match self.store.file(&mut self.names.file, request, now) {
            Ok(found) => found.content.reply_page(status, response),
            Err(error) => {
                if !is_missing(&error) {
                    response.report_file(self.path_of(name), error);
                }
                return false;
            }
        }
        true
    }

    /// Returns the path of a file, for a report.
    #[cold]
    fn path_of(&self, name: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(name))
    }

    /// Looks up the root's path again, at most every 500 ms. Returns true if it has changed, and clears all caches
    /// then.
    fn look_up_root(&mut self, now: Now) -> bool {
        let is_another = self.store.look_up_root(now);
        if is_another {
            self.lookups.clear();
            self.listings.clear();
        }
        is_another
    }

    /// Searches for the file on disk and responds with it.
    fn search(&mut self, shape: Shape, request: &Request<'_>, response: &mut Response<'_>, now: Now) {
        let NameBuffers { requested, file, canonical, .. } = &mut self.names;
        let search = Search { root: &self.store.root, candidates: &self.settings.candidates };
        let found = search.find(requested, shape, file);
        if let (Err(OpenError::Descriptors), Some(cached)) =
            (&found, self.lookups.recently_cached(requested, now))
        {
            cached.name.as_ref().clone_into(file);
            return self.store.preferred(cached, file, request, now).reply(request, response);
        }
        if !matches!(found, Ok(SearchResult::File { .. })) || file != requested {
            self.store.evict(requested);
        }
        match found {
            Ok(SearchResult::File { opened, depends_on_path }) => {
                let is_canonical = !self.settings.candidates.clean_urls || !depends_on_path;
                match if is_canonical { Ok(None) } else { search.canonical(requested, file, canonical) } {
                    Ok(None) => {
                        let found = self.store.opened_file(opened, file, request, now);
                        // A cached name is served without a look-up of the root, so it must not outlast the last one.
                        self.lookups.note(
                            requested,
                            file,
                            found.cached.as_ref(),
                            self.store.root_checked(now),
                        );
                        found.content.reply(request, response);
                    }
                    Ok(Some(name)) => errors::redirect_to_name(name, request, response),
                    Err(error) => errors::cant_open(self.path_of(&self.names.canonical), &error, response),
                }
            }
            Ok(SearchResult::Folder) => errors::redirect_to_folder(request, response),
            Ok(SearchResult::Listing(folder)) => self.respond_list(&folder, request, response, now),
            Ok(SearchResult::Status(status)) => errors::status(status, response),
            Ok(SearchResult::Nothing) => match search.page_without_slash(requested, file) {
                Ok(Some(page)) => errors::redirect_to_name(page, request, response),
                Ok(None) => self.respond_spa(request, response, now),
                Err(error) => errors::cant_open(self.path_of(&self.names.file), &error, response),
            },
            Err(error) => errors::cant_open(self.path_of(&self.names.file), &error, response),
        }
    }

    fn respond_list(
        &mut self,
        opened: &Opened,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) {
        let (root, name, hidden) = (&self.store.root, &self.names.requested[..], self.settings.hidden);
        let folder = ListedFolder { opened, root, name, hidden };
        if let Err(error) = self.listings.respond(&folder, request, response, now) {
            errors::cant_open(self.path_of(&self.names.requested), &error, response);
        }
    }

    /// Responds with the fallback file to navigation requests, else with `404`.
    fn respond_spa(&mut self, request: &Request<'_>, response: &mut Response<'_>, now: Now) {
        let Some(spa) = &self.settings.spa else { return errors::not_found(response) };
        let NameBuffers { requested, file, .. } = &mut self.names;
        // A navigation asks for a page, not for a resource of one: the last segment of its path has no extension, or
        // `Accept` lists `text/html`.
        let last = requested.rsplit(|&byte| byte == b'/').next().unwrap_or(requested);
        let is_by_path = !last.contains(&b'.');
        let is_navigation =
            is_by_path || names_media_type(request.head().all(KnownField::Accept), b"text/html");
        file.clone_from(spa);
        match self.store.file(file, request, now) {
            Ok(found) if is_navigation => {
                if is_by_path {
                    self.lookups.note(requested, file, found.cached.as_ref(), self.store.root_checked(now));
                }
                found.content.reply(request, response);
            }
            Ok(_) => errors::not_found(response),
            Err(error) => errors::cant_open(self.path_of(&self.names.file), &error, response),
        }
        if !is_by_path {
            response.field("Vary", "Accept");
        }
    }
}
