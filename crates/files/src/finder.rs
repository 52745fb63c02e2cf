//! Finds the file that a target names and responds with it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use shearwater::{Request, Response};
use shearwater_io::fs::{OpenError, Opened, Root};

use crate::cached_file::CachedFile;
use crate::candidate::PAGE_EXTENSION;
use crate::content::Content;
use crate::file_cache::FolderCaches;
use crate::listing::{self, Listings};
use crate::lookups::Lookups;
use crate::navigation::Navigation;
use crate::now::Now;
use crate::options::Hidden;
use crate::resolve::{self, Named, Shape};
use crate::search::{Found, Search};
use crate::settings::Settings;
use crate::store::{FoundFile, Store};
use crate::{redirect, refuse};

/// File lookup of one worker in one folder.
pub(crate) struct Finder {
    /// The folder's path in reports.
    path: Arc<Path>,
    settings: Arc<Settings>,
    names: NameBuffers,
    lookups: Lookups,
    store: Store,
    listings: Listings,
}

/// Reused buffers for names.
#[derive(Default)]
struct NameBuffers {
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
    pub(crate) fn new(root: Root, path: Arc<Path>, settings: Arc<Settings>, caches: FolderCaches) -> Self {
        let lookups = Lookups::new(caches.lookups);
        let listings = Listings::new(caches.listings, caches.names);
        let store = Store::new(root, Arc::clone(&settings), caches.limits, caches.files);
        Self { path, settings, names: NameBuffers::default(), lookups, store, listings }
    }

    /// Responds to `GET` and `HEAD`.
    pub(crate) fn respond(&mut self, request: &Request<'_>, response: &mut Response<'_>) {
        let Named { name, resolved } = match resolve::named(request.path(), &mut self.names.decoded) {
            Ok(named) => named,
            // The prefix of a mount, without a slash.
            Err(_) if request.path().is_empty() => return redirect::to_directory(request, response),
            Err(bad) => return refuse::path(bad, response),
        };
        if resolved.is_hidden && self.settings.hidden == Hidden::Deny {
            return refuse::open(&OpenError::NotFound, response);
        }
        // Most requests end here: a recent lookup, a file in memory, no other coding.
        if let Some(cached) = self.lookups.cached(name, Now::of(request)) {
            match cached.siblings().is_empty() {
                true => cached.reply(request, response),
                false => self.form_of(cached, request).reply(request, response),
            }
            return;
        }
        self.names.requested.clear();
        self.names.requested.extend_from_slice(name);
        self.look_up_root(Now::of(request));
        match self.known_content(resolved.shape, request) {
            Some(content) => content.reply(request, response),
            None => self.respond_uncached(resolved.shape, request, response),
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
        self.look_up_root(Now::of(request));
        let file = &mut self.names.file;
        file.clear();
        file.extend_from_slice(name);
        match self.store.file(file, request) {
            Ok(found) => found.content.reply_page(status, response),
            Err(error) => {
                refuse::report(self.path_of(&self.names.file), &error, response);
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

    /// Responds with the error of the file in the buffer.
    #[cold]
    fn refuse(&self, error: &OpenError, response: &mut Response<'_>) {
        refuse::open_at(self.path_of(&self.names.file), error, response);
    }

    /// Looks up the root's path again, at most every 500 ms. Clears all caches if it has changed.
    fn look_up_root(&mut self, now: Now) {
        if self.store.look_up_root(now) {
            self.lookups.clear();
            self.listings.clear();
        }
    }

    /// Returns a cached file in the coding that the client prefers.
    fn form_of(&mut self, cached: Rc<CachedFile>, request: &Request<'_>) -> Content {
        let file = &mut self.names.file;
        file.clear();
        file.extend_from_slice(cached.name());
        let form = self.store.form_of_cached(&cached, file, request);
        form.unwrap_or(Content::Cached(cached))
    }

    /// Returns a file that isn't in memory but was found within 500 ms: under another name, or open.
    fn known_content(&mut self, shape: Shape, request: &Request<'_>) -> Option<Content> {
        let Self { settings, names, lookups, store, .. } = self;
        if lookups.other_name(&names.requested, Now::of(request), &mut names.file).is_some() {
            return store.file(&mut names.file, request).ok().map(|found| found.content);
        }
        let is_own = shape == Shape::File && is_own_path(settings, &names.requested);
        if is_own { store.known_file(&mut names.requested, request) } else { None }
    }

    /// Searches for the file on disk and responds with it.
    fn respond_uncached(&mut self, shape: Shape, request: &Request<'_>, response: &mut Response<'_>) {
        let search = Search { root: self.store.root(), settings: &self.settings };
        let found = search.find(&self.names.requested, shape, &mut self.names.file);
        if let (Err(OpenError::Descriptors), Some(cached)) =
            (&found, self.lookups.recently_cached(&self.names.requested, Now::of(request)))
        {
            return self.form_of(cached, request).reply(request, response);
        }
        if !matches!(found, Ok(Found::File { .. })) || self.names.file != self.names.requested {
            self.store.evict(&self.names.requested);
        }
        match found {
            Ok(Found::File { opened, depends_on_path }) => match self.canonical(depends_on_path) {
                Ok(None) => self.respond_file(opened, request, response),
                Ok(Some(name)) => redirect::to_name(name, request, response),
                Err(error) => refuse::open_at(self.path_of(&self.names.canonical), &error, response),
            },
            Ok(Found::Folder) => redirect::to_directory(request, response),
            Ok(Found::Listing(folder)) => self.respond_list(&folder, request, response),
            Ok(Found::Status(status)) => refuse::status(status, response),
            Ok(Found::Nothing) => self.respond_missing(shape, request, response),
            Err(error) => self.refuse(&error, response),
        }
    }

    /// Returns the canonical name of the found file if the request used another one.
    fn canonical(&mut self, depends_on_path: bool) -> Result<Option<&[u8]>, OpenError> {
        let Self { settings, names, store, .. } = self;
        if !settings.clean_urls || !depends_on_path {
            return Ok(None);
        }
        Search { root: store.root(), settings }.canonical(&names.requested, &names.file, &mut names.canonical)
    }

    fn respond_file(&mut self, opened: Opened, request: &Request<'_>, response: &mut Response<'_>) {
        let found = self.store.opened_file(opened, &mut self.names.file, request);
        self.note(&found, Now::of(request));
        found.content.reply(request, response);
    }

    fn respond_list(&mut self, opened: &Opened, request: &Request<'_>, response: &mut Response<'_>) {
        let (root, name, hidden) = (self.store.root(), &self.names.requested[..], self.settings.hidden);
        let folder = listing::Folder { root, name, hidden };
        if let Err(error) = self.listings.respond(opened, &folder, request, response) {
            refuse::open_at(self.path_of(&self.names.requested), &error, response);
        }
    }

    /// Caches the file in the buffer as the lookup of the requested name.
    fn note(&mut self, found: &FoundFile, now: Now) {
        // A cached name is served without a look-up of the root, so it must not outlast the last one.
        let now = self.store.as_of_root(now);
        let NameBuffers { requested, file, .. } = &self.names;
        match &found.cached {
            Some(cached) => self.lookups.note_cached(requested, cached, now),
            // A file of the same name is found as fast without an entry.
            None if requested == file => self.lookups.remove(requested),
            None => self.lookups.note_other_name(requested, file, now),
        }
    }

    /// Responds if there is no candidate.
    fn respond_missing(&mut self, shape: Shape, request: &Request<'_>, response: &mut Response<'_>) {
        match self.page_without_slash(shape) {
            Ok(false) => self.respond_spa(request, response),
            Ok(true) => redirect::to_name(&self.names.canonical, request, response),
            Err(error) => self.refuse(&error, response),
        }
    }

    /// Returns whether the requested name without its trailing slash is a page, and writes that name.
    fn page_without_slash(&mut self, shape: Shape) -> Result<bool, OpenError> {
        let Self { settings, names: NameBuffers { requested, file, canonical, .. }, store, .. } = self;
        let is_page = Search { root: store.root(), settings }.page_without_slash(requested, shape, file)?;
        if is_page {
            canonical.clear();
            canonical.extend_from_slice(requested.strip_suffix(b"/").unwrap_or(requested));
        }
        Ok(is_page)
    }

    /// Responds with the fallback file to navigation requests, else with `404`.
    fn respond_spa(&mut self, request: &Request<'_>, response: &mut Response<'_>) {
        let Some(spa) = &self.settings.spa else { return refuse::open(&OpenError::NotFound, response) };
        let navigation = Navigation::of(&self.names.requested, &request.head());
        self.names.file.clone_from(spa);
        match self.store.file(&mut self.names.file, request) {
            Ok(found) if navigation != Navigation::No => {
                if navigation == Navigation::ByPath {
                    self.note(&found, Now::of(request));
                }
                found.content.reply(request, response);
            }
            Ok(_) => refuse::open(&OpenError::NotFound, response),
            Err(error) => self.refuse(&error, response),
        }
        if navigation != Navigation::ByPath {
            response.field("Vary", "Accept");
        }
    }
}

/// Returns whether a file is always served under its own name.
fn is_own_path(settings: &Settings, name: &[u8]) -> bool {
    settings.candidates.tries_itself_first() && !(settings.clean_urls && name.ends_with(PAGE_EXTENSION))
}
