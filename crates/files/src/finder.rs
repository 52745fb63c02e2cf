//! Finds the file that a target names and responds with it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shearwater::{KnownField, Request, Response};
use shearwater_io::fs::{OpenError, Opened};

use crate::cache::cached_file::FileContent;
use crate::cache::lookups::{Known, Lookups};
use crate::cache::store::{FileStore, FoundFile};
use crate::listing::{ListedFolder, Listings};
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
        // Another folder at the root's path empties the caches.
        let has_other_name = !self.look_up_root(now) && known.is_some();
        match self.known_content(has_other_name, resolved.shape, request, now) {
            Some(content) => content.reply(request, response),
            None => self.respond_uncached(resolved.shape, request, response, now),
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

    /// Returns a file that isn't in memory but was found within 500 ms: under another name, or open.
    fn known_content(
        &mut self,
        has_other_name: bool,
        shape: Shape,
        request: &Request<'_>,
        now: Now,
    ) -> Option<FileContent> {
        let Self { settings, names, store, .. } = self;
        if has_other_name {
            return store.file(&mut names.file, request, now).ok().map(|found| found.content);
        }
        let is_own = shape == Shape::File && settings.candidates.serves_own_name(&names.requested);
        if is_own { store.known_file(&mut names.requested, request, now) } else { None }
    }

    /// Searches for the file on disk and responds with it.
    fn respond_uncached(
        &mut self,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) {
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
                        self.respond_found(&found, true, request, response, now);
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

    /// Responds with the file in the buffer. If `is_noted`, caches it as the lookup of the requested name.
    fn respond_found(
        &mut self,
        found: &FoundFile,
        is_noted: bool,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) {
        if is_noted {
            let NameBuffers { requested, file, .. } = &self.names;
            // A cached name is served without a look-up of the root, so it must not outlast the last one.
            self.lookups.note(requested, file, found.cached.as_ref(), self.store.as_of_root(now));
        }
        found.content.reply(request, response);
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
            Ok(found) if is_navigation => self.respond_found(&found, is_by_path, request, response, now),
            Ok(_) => errors::not_found(response),
            Err(error) => errors::cant_open(self.path_of(&self.names.file), &error, response),
        }
        if !is_by_path {
            response.field("Vary", "Accept");
        }
    }
}
