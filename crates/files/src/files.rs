//! Responds to requests with the files of a folder: finds the file that a target names, and sends it.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::KnownField;

use shearwater::{Method, Request, Response, Service};
use shearwater_io::fs::{OpenError, Opened};

use crate::cache::cached_file::CachedFile;
use crate::cache::lookups::{Known, Lookups};
use crate::cache::store::FileStore;
use crate::disk::WouldBlock;
use crate::disk::work::DiskWork;
use crate::folder::FolderNumber;
use crate::listing::Listings;
use crate::listing::names::ListedFolder;
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
/// # Disks
///
/// A worker doesn't wait for a disk: it opens and reads what is in the kernel's caches, and leaves the rest to one of the
/// folder's threads ([`DISK_THREADS_MAX`](crate::limits::DISK_THREADS_MAX)). Folders are always read there. Meanwhile the
/// request is [deferred](Response::retry_when): the service is called again with it, and only its last response counts.
/// So a handler that calls `respond` itself may run more than once for a request; a router's middleware doesn't. A
/// request that the disk delays by more than [`DISK_WAIT_S_MAX`](crate::limits::DISK_WAIT_S_MAX) gets a `503`.
///
/// The worker still waits before Linux 5.12 and on other systems; where the page cache can't be asked (`EOPNOTSUPP`:
/// overlayfs), for contents of a file whose name is cached; below a local folder, for file systems of a server that are
/// mounted there; for less than 128 KiB of a file that isn't cached by the server itself, if its pages were evicted
/// since it was opened last; for the `stat` of a cached file or a sibling, if the kernel has evicted its name within a
/// minute, or that of a missing sibling after a change of the directory. Pieces of 128 KiB and more that aren't in the
/// page cache are read ahead by other threads.
///
/// A sibling `NAME.br`, `NAME.zst` or `NAME.gz` is sent instead of `NAME` to clients that accept its coding. Neither of
/// its times may be before that of `NAME`, it must begin as its coding does and must not record another content length
/// ([`is_current_sibling`](shearwater_io::fs::is_current_sibling)).
///
/// Clones share their caches.
#[derive(Clone)]
pub struct Files {
    finder: Rc<RefCell<Finder>>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Files {
    pub(crate) fn new(finder: Finder) -> Self {
        Self { finder: Rc::new(RefCell::new(finder)) }
    }

    /// Responds with the file at `path`, such as `/404.html`, as the page of this status.
    ///
    /// The file is sent whole, in the client's preferred coding, and without validators, ranges and `Cache-Control`.
    /// Path options don't apply: the file may be hidden, and is sent even if its own path would be redirected.
    ///
    /// Returns false and leaves the response unchanged if the file is missing or not readable. Earlier changes of the
    /// response are kept, so pass a fresh one. Returns true if the disk must be waited for: then the service is called
    /// again.
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
    /// Removes the folder's entries from the caches when it is dropped.
    pub(crate) _number: FolderNumber,
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
    /// Name of the file that is tried first, if it isn't that of the path.
    first: Vec<u8>,
}

impl Finder {
    /// Responds to `GET` and `HEAD`.
    pub(crate) fn respond(&mut self, request: &Request<'_>, response: &mut Response<'_>) {
        let (name, resolved) = match resolve_in_place(request.path(), &mut self.names.decoded) {
            Ok(resolved) => resolved,
            // The prefix of a mount, without a slash.
            Err(_) if request.path().is_empty() => return errors::redirect_to_folder(request, response),
            Err(_) => return errors::not_found(response),
        };
        if resolved.is_hidden && self.settings.hidden == Hidden::Deny {
            return errors::not_found(response);
        }
        let now = Now::of(request);
        // Most requests end here: a file in memory that was checked recently, no other coding.
        let first = self.settings.candidates.first(name, resolved.shape, &mut self.names.first);
        let fresh = first.and_then(|file| self.store.fresh(file, now));
        if let Some(cached) = fresh.as_ref().filter(|cached| cached.siblings.is_empty()) {
            self.store.count_hit();
            return cached.version.reply(&cached.content, request, response);
        }
        let known = fresh.map(Known::Cached);
        let has_other_name = match known.or_else(|| self.lookups.known(name, now, &mut self.names.file)) {
            Some(Known::Cached(cached)) => {
                self.store.count_hit();
                let file = &mut self.names.file;
                match reply_cached(&mut self.store, cached, file, request, response, now) {
                    Ok(()) => return,
                    Err(WouldBlock) => true,
                }
            }
            Some(Known::OtherName) => true,
            None => false,
        };
        name.clone_into(&mut self.names.requested);
        self.respond_from_disk(has_other_name, resolved.shape, request, response, now);
    }

    /// Responds with a file that wasn't checked recently, or has the request called again once another thread has found it.
    #[inline(never)]
    fn respond_from_disk(
        &mut self,
        has_other_name: bool,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) {
        let valid_from = self.store.disk.begin(request, response, now);
        let result = self.respond_uncached(has_other_name, shape, request, response, valid_from);
        if result.is_err() {
            self.wait_for_disk(shape, request, response, now);
        }
        self.store.disk.end();
    }

    #[cold]
    fn wait_for_disk(&mut self, shape: Shape, request: &Request<'_>, response: &mut Response<'_>, now: Now) {
        let (requested, is_listing) = (&self.names.requested[..], self.settings.candidates.listing);
        let work = DiskWork::search(requested, shape, is_listing, request);
        let names = if is_listing { self.listings.known_names(requested, request, now) } else { None };
        if let Err(failure) = self.store.disk.wait_for(work, names, request, response, now) {
            errors::disk_failed(self.path_of(&self.names.requested), failure, response);
        }
    }

    /// Responds with a file that wasn't checked recently: found within 500 ms under another name, cached and unchanged,
    /// open, or to be searched for.
    fn respond_uncached(
        &mut self,
        has_other_name: bool,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> Result<(), WouldBlock> {
        let is_another_root = self.look_up_root(now);
        let Self { settings, names: NameBuffers { requested, file, first, .. }, store, .. } = self;
        let content = if has_other_name && !is_another_root {
            store.file(file, request, now).ok().map(|found| found.content)
        } else if let Some(first) = settings.candidates.first(requested, shape, first) {
            first.clone_into(file);
            store.known_file(file, request, now).ok().flatten()
        } else {
            None
        };
        let Some(content) = content else { return self.search(shape, request, response, now) };
        content.reply(request, response);
        Ok(())
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
        let valid_from = self.store.disk.begin(request, response, now);
        self.look_up_root(valid_from);
        name.clone_into(&mut self.names.file);
        let is_sent = match self.store.file(&mut self.names.file, request, valid_from) {
            Ok(found) => {
                found.content.reply_page(status, response);
                true
            }
            Err(error) if WouldBlock::is(&error) || self.store.disk.may_mend(&error) => {
                let work = DiskWork::file(name, request);
                // After a failure there is no time to wait for the page, too.
                self.store.disk.wait_for(work, None, request, response, now).is_ok()
            }
            Err(error) => {
                if !is_missing(&error) {
                    response.report_file(self.path_of(name), error);
                }
                false
            }
        };
        self.store.disk.end();
        is_sent
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
    fn search(
        &mut self,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> Result<(), WouldBlock> {
        let NameBuffers { requested, file, canonical, first, .. } = &mut self.names;
        let first = self.settings.candidates.first(requested, shape, first);
        let search = Search { disk: &self.store.disk, candidates: &self.settings.candidates };
        let found = search.find(requested, shape, file);
        if matches!(&found, Err(error) if WouldBlock::is(error)) {
            return Err(WouldBlock);
        }
        if let Err(OpenError::Descriptors) = found {
            let of_first = first.and_then(|first| self.store.recently_cached(first, now));
            if let Some(cached) = of_first.or_else(|| self.lookups.recently_cached(requested, now)) {
                return reply_cached(&mut self.store, cached, file, request, response, now);
            }
        }
        let is_file = matches!(found, Ok(SearchResult::File { .. }));
        for missing in [Some(&requested[..]), first].into_iter().flatten() {
            if !is_file || file != missing {
                self.store.evict(missing);
            }
        }
        let result = match found {
            Ok(SearchResult::File { opened, depends_on_path }) => {
                let is_canonical = !self.settings.candidates.clean_urls || !depends_on_path;
                match if is_canonical { Ok(None) } else { search.canonical(requested, file, canonical) } {
                    Ok(None) => {
                        let found = self.store.opened_file(opened, file, request, now)?;
                        if first == Some(&file[..]) {
                            // It is found without a lookup.
                            self.lookups.remove(requested);
                        } else {
                            // A cached name is served without a look-up of the root, so it must not outlast the last one.
                            let since = self.store.root_checked(now);
                            self.lookups.note(requested, file, found.cached.as_ref(), since);
                        }
                        found.content.reply(request, response);
                        Ok(())
                    }
                    Ok(Some(name)) => {
                        errors::redirect_to_name(name, request, response);
                        Ok(())
                    }
                    Err(error) => Err((&self.names.canonical, error)),
                }
            }
            Ok(SearchResult::Folder) => {
                errors::redirect_to_folder(request, response);
                Ok(())
            }
            Ok(SearchResult::Listing(folder)) => return self.respond_list(&folder, request, response, now),
            Ok(SearchResult::Status(status)) => {
                errors::status(status, response);
                Ok(())
            }
            Ok(SearchResult::Nothing) => match search.page_without_slash(requested, file) {
                Ok(Some(page)) => {
                    errors::redirect_to_name(page, request, response);
                    Ok(())
                }
                Ok(None) => return self.respond_spa(request, response, now),
                Err(error) => Err((&self.names.file, error)),
            },
            Err(error) => Err((&self.names.file, error)),
        };
        match result {
            Ok(()) => Ok(()),
            Err((name, error)) => self.cant_open(name, &error, response),
        }
    }

    /// Responds to a file that can't be opened, unless it must be waited for.
    fn cant_open(
        &self,
        name: &[u8],
        error: &OpenError,
        response: &mut Response<'_>,
    ) -> Result<(), WouldBlock> {
        if WouldBlock::is(error) || self.store.disk.may_mend(error) {
            return Err(WouldBlock);
        }
        errors::cant_open(self.path_of(name), error, response);
        Ok(())
    }

    fn respond_list(
        &mut self,
        opened: &Opened,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> Result<(), WouldBlock> {
        let (name, hidden) = (&self.names.requested[..], self.settings.hidden);
        let folder = ListedFolder { opened, name, hidden };
        match self.listings.respond(&self.store.disk, &folder, request, response, now) {
            Ok(()) => Ok(()),
            Err(error) => self.cant_open(name, &error, response),
        }
    }

    /// Responds with the fallback file to navigation requests, else with `404`.
    fn respond_spa(
        &mut self,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> Result<(), WouldBlock> {
        let Some(spa) = &self.settings.spa else {
            errors::not_found(response);
            return Ok(());
        };
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
            Err(error) => self.cant_open(&self.names.file, &error, response)?,
        }
        if !is_by_path {
            response.field("Vary", "Accept");
        }
        Ok(())
    }
}

/// Responds with a file that was checked recently, or its sibling. Writes its name to `file`.
#[inline(never)]
fn reply_cached(
    store: &mut FileStore,
    cached: Rc<CachedFile>,
    file: &mut Vec<u8>,
    request: &Request<'_>,
    response: &mut Response<'_>,
    now: Now,
) -> Result<(), WouldBlock> {
    cached.name.as_ref().clone_into(file);
    store.preferred(cached, file, request, now)?.reply(request, response);
    Ok(())
}
