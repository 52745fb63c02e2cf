//! Finds the file that a target names, and responds with it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use shearwater::Response;
use shearwater::engine::{KnownField, Request};
use shearwater_io::fs::{OpenError, Opened};

use crate::cache::cached_file::CachedFile;
use crate::cache::lookups::Lookups;
use crate::cache::store::FileStore;
use crate::disk::WouldBlock;
use crate::disk::work::{DiskWork, Found, WaitingRequest};
use crate::folder::FolderNumber;
use crate::leaving_links::LeavingLink;
use crate::listing::Listings;
use crate::listing::names::ListedFolder;
use crate::negotiation::names_media_type;
use crate::now::Now;
use crate::options::Hidden;
use crate::reply::errors;
use crate::resolve::path::{Shape, resolve_in_place};
use crate::resolve::search::{Search, SearchResult, is_missing};
use crate::settings::FolderSettings;

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

/// Result of looking for a page.
pub(crate) enum Page {
    Sent,
    /// It can't be sent, and the response is unchanged.
    Missing,
    /// Another thread reads it.
    Waits(WaitingRequest),
}

impl Finder {
    /// Responds to `GET` and `HEAD`, or returns the disk work that must be waited for first. `found` are the results of
    /// this request's earlier work; `None` in the first call.
    // Each of its two callers has a copy: most requests end here.
    #[inline(always)]
    pub(crate) fn respond(
        &mut self,
        found: Option<&[Rc<Found>]>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<WaitingRequest> {
        let (name, resolved) = match resolve_in_place(request.path(), &mut self.names.decoded) {
            Ok(found) if !found.1.is_hidden || self.settings.hidden != Hidden::Deny => found,
            // The prefix of a mount, without a slash.
            Err(_) if request.path().is_empty() => {
                errors::redirect_to_folder(request, response);
                return None;
            }
            Ok(_) | Err(_) => {
                errors::not_found(response);
                return None;
            }
        };
        let now = Now::of(request);
        // Most requests end here: a file in memory that was checked recently, no other coding.
        let first = self.settings.candidates.first(name, resolved.shape, &mut self.names.first);
        let fresh = first.and_then(|file| self.store.fresh(file, now));
        if let Some(cached) = fresh.as_ref().filter(|cached| cached.siblings.is_empty()) {
            self.store.count_hit();
            cached.version.reply(&cached.content, request, response);
            return None;
        }
        let file = &mut self.names.file;
        let of_lookup = || self.lookups.fresh(name, now, file).then(|| self.store.fresh(file, now)).flatten();
        if let Some(cached) = fresh.or_else(of_lookup) {
            self.store.count_hit();
            if reply_cached(&mut self.store, cached, file, request, response, now).is_ok() {
                return None;
            }
        }
        name.clone_into(&mut self.names.requested);
        self.respond_from_disk(found, resolved.shape, request, response)
    }

    /// Responds with a file that wasn't checked recently, or returns the work that finds it.
    #[inline(never)]
    fn respond_from_disk(
        &mut self,
        found: Option<&[Rc<Found>]>,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<WaitingRequest> {
        let now = Now::of(request);
        self.store.disk.begin(found, response);
        let valid_from = self.store.disk.valid_from(now);
        let is_done = self.respond_uncached(shape, request, response, valid_from).is_ok();
        let waiting = if is_done { None } else { self.wait_for_disk(shape, request, response, now) };
        self.store.disk.end();
        waiting
    }

    /// Has another thread search for the file, or responds with the failure.
    #[cold]
    fn wait_for_disk(
        &mut self,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> Option<WaitingRequest> {
        let (requested, is_listing) = (&self.names.requested[..], self.settings.candidates.listing);
        let work = DiskWork::search(requested, shape, is_listing, request);
        let names = if is_listing { self.listings.known_names(requested, request, now) } else { None };
        match self.store.disk.wait_for(work, names, now) {
            Ok(waiting) => Some(waiting),
            Err(failure) => {
                errors::disk_failed(self.path_of(&self.names.requested), failure, response);
                None
            }
        }
    }

    /// Responds with a file that wasn't checked recently: found within 500 ms under another name, cached and unchanged,
    /// open, or to be searched for.
    fn respond_uncached(
        &mut self,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> Result<(), WouldBlock> {
        self.look_up_root(now);
        let Self { settings, names: NameBuffers { requested, file, first, .. }, store, lookups, .. } = self;
        let content = if lookups.fresh(requested, now, file) {
            store.file(file, request, now).ok()
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

    /// Responds with a file as the page of a status. `found` is as in [`respond`](Self::respond).
    pub(crate) fn respond_page(
        &mut self,
        name: &[u8],
        status: u16,
        found: Option<&[Rc<Found>]>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Page {
        let now = Now::of(request);
        self.store.disk.begin(found, response);
        let valid_from = self.store.disk.valid_from(now);
        self.look_up_root(valid_from);
        name.clone_into(&mut self.names.file);
        let page = match self.store.file(&mut self.names.file, request, valid_from) {
            Ok(content) => {
                content.reply_page(status, response);
                Page::Sent
            }
            Err(error) if WouldBlock::is(&error) || self.store.disk.may_mend(&error) => {
                // The page of a request that has waited in vain would double its wait.
                let work = DiskWork::file(name, request);
                let may_wait = !self.store.disk.has_failed_lately(now);
                let waiting = may_wait.then(|| self.store.disk.wait_for(work, None, now).ok());
                waiting.flatten().map_or(Page::Missing, Page::Waits)
            }
            Err(error) => {
                if !is_missing(&error) {
                    response.report_file(self.path_of(name), error);
                }
                Page::Missing
            }
        };
        self.store.disk.end();
        page
    }

    /// Returns the path of a file, for a report.
    #[cold]
    fn path_of(&self, name: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(name))
    }

    /// Looks up the root's path again, at most every 500 ms. Clears all caches if it has changed.
    fn look_up_root(&mut self, now: Now) {
        if self.store.look_up_root(now) {
            self.lookups.clear();
            self.listings.clear();
        }
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
            let is_looked_up = of_first.is_none() && self.lookups.recent(requested, now, file);
            let of_lookup = if is_looked_up { self.store.recently_cached(file, now) } else { None };
            if let Some(cached) = of_first.or(of_lookup) {
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
                        let content = self.store.opened_file(opened, file, request, now)?;
                        if first == Some(&file[..]) {
                            // It is found without a lookup.
                            self.lookups.remove(requested);
                        } else {
                            // A cached name is served without a look-up of the root, so it must not outlast the last one.
                            let since = self.store.root_checked(now);
                            self.lookups.note(requested, file, since);
                        }
                        content.reply(request, response);
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
        // The open has just looked the path up, so this waits for no disk; each call to a file server may wait.
        let root = self.store.disk.root();
        let is_local = matches!(error, OpenError::Escapes) && !root.is_remote();
        let link = if is_local { LeavingLink::in_path(root, &self.path, name) } else { None };
        errors::cant_open(self.path_of(name), error, link.as_ref(), response);
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
            Ok(content) if is_navigation => {
                if is_by_path {
                    self.lookups.note(requested, file, self.store.root_checked(now));
                }
                content.reply(request, response);
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
