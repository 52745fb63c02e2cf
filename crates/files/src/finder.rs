//! Finds the file that a target names and responds with it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use shearwater::{Request, Response};
use shearwater_io::fs::{OpenError, Opened, Root};

use crate::candidate::PAGE;
use crate::content::Content;
use crate::file_cache::Shelves;
use crate::held::Held;
use crate::listing::{self, Listings};
use crate::lookups::Lookups;
use crate::navigation::Navigation;
use crate::now::Now;
use crate::options::Hidden;
use crate::plan::Plan;
use crate::resolve::{self, Named, Shape};
use crate::search::{Found, Search};
use crate::store::{FoundFile, Store};
use crate::{redirect, refuse};

/// File lookup of one worker in one folder.
pub(crate) struct Finder {
    /// The folder's path in reports.
    path: Arc<Path>,
    plan: Arc<Plan>,
    names: Names,
    lookups: Lookups,
    store: Store,
    listings: Listings,
}

/// Reused buffers for names.
#[derive(Default)]
struct Names {
    /// Name of the request's path, if it had to be decoded.
    decoded: Vec<u8>,
    /// Name of the request's path, if it isn't in memory.
    asked: Vec<u8>,
    /// Name of the file.
    file: Vec<u8>,
    /// Canonical name, for redirects.
    other: Vec<u8>,
}

impl Finder {
    pub(crate) fn new(root: Root, path: Arc<Path>, plan: Arc<Plan>, shelves: Shelves) -> Self {
        let lookups = Lookups::new(shelves.lookups);
        let listings = Listings::new(shelves.listings, shelves.names);
        let store = Store::new(root, Arc::clone(&plan), shelves.limits, shelves.files);
        Self { path, plan, names: Names::default(), lookups, store, listings }
    }

    /// Responds to `GET` and `HEAD`.
    pub(crate) fn respond(&mut self, request: &Request<'_>, response: &mut Response<'_>) {
        let Named { name, resolved } = match resolve::named(request.path(), &mut self.names.decoded) {
            Ok(named) => named,
            // The prefix of a mount, without a slash.
            Err(_) if request.path().is_empty() => return redirect::to_directory(request, response),
            Err(bad) => return refuse::path(bad, response),
        };
        if resolved.is_hidden && self.plan.hidden == Hidden::Deny {
            return refuse::open(&OpenError::NotFound, response);
        }
        // Most requests end here: a recent lookup, a file in memory, no other coding.
        if let Some(held) = self.lookups.held(name, Now::of(request)) {
            match held.siblings().is_empty() {
                true => held.reply(request, response),
                false => self.form_of(held, request).reply(request, response),
            }
            return;
        }
        self.names.asked.clear();
        self.names.asked.extend_from_slice(name);
        self.look_up_root(Now::of(request));
        match self.elsewhere(resolved.shape, request) {
            Some(content) => content.reply(request, response),
            None => self.respond_anew(resolved.shape, request, response),
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

    /// Looks up the root's path again, at most every 500 ms, and clears all caches if it has changed.
    fn look_up_root(&mut self, now: Now) {
        if self.store.look_up_root(now) {
            self.lookups.clear();
            self.listings.clear();
        }
    }

    /// Returns a cached file in the coding that the client prefers.
    fn form_of(&mut self, held: Rc<Held>, request: &Request<'_>) -> Content {
        let file = &mut self.names.file;
        file.clear();
        file.extend_from_slice(held.name());
        let form = self.store.form_of_held(&held, file, request);
        form.unwrap_or(Content::Held(held))
    }

    /// Returns a file that isn't in memory but was found within 500 ms: under another name, or open.
    fn elsewhere(&mut self, shape: Shape, request: &Request<'_>) -> Option<Content> {
        let Self { plan, names, lookups, store, .. } = self;
        if lookups.elsewhere(&names.asked, Now::of(request), &mut names.file).is_some() {
            return store.file(&mut names.file, request).ok().map(|found| found.content);
        }
        let is_own = shape == Shape::File && is_own_path(plan, &names.asked);
        if is_own { store.known_file(&mut names.asked, request) } else { None }
    }

    /// Searches for the file on disk and responds with it.
    fn respond_anew(&mut self, shape: Shape, request: &Request<'_>, response: &mut Response<'_>) {
        let search = Search { root: self.store.root(), plan: &self.plan };
        let found = search.find(&self.names.asked, shape, &mut self.names.file);
        if let (Err(OpenError::Descriptors), Some(held)) =
            (&found, self.lookups.held_lately(&self.names.asked, Now::of(request)))
        {
            return self.form_of(held, request).reply(request, response);
        }
        if !matches!(found, Ok(Found::File { .. })) || self.names.file != self.names.asked {
            self.store.forget(&self.names.asked);
        }
        match found {
            Ok(Found::File { opened, is_of_path }) => match self.canonical(is_of_path) {
                Ok(None) => self.respond_file(opened, request, response),
                Ok(Some(name)) => redirect::to_name(name, request, response),
                Err(error) => refuse::open_at(self.path_of(&self.names.other), &error, response),
            },
            Ok(Found::Folder) => redirect::to_directory(request, response),
            Ok(Found::List(folder)) => self.respond_list(&folder, request, response),
            Ok(Found::Status(status)) => refuse::status(status, response),
            Ok(Found::Nothing) => self.respond_missing(shape, request, response),
            Err(error) => self.refuse(&error, response),
        }
    }

    /// Returns the canonical name of the found file if the request used another one.
    fn canonical(&mut self, is_of_path: bool) -> Result<Option<&[u8]>, OpenError> {
        let Self { plan, names, store, .. } = self;
        if !plan.clean_urls || !is_of_path {
            return Ok(None);
        }
        Search { root: store.root(), plan }.canonical(&names.asked, &names.file, &mut names.other)
    }

    fn respond_file(&mut self, opened: Opened, request: &Request<'_>, response: &mut Response<'_>) {
        let found = self.store.opened_file(opened, &mut self.names.file, request);
        self.note(&found, Now::of(request));
        found.content.reply(request, response);
    }

    fn respond_list(&mut self, opened: &Opened, request: &Request<'_>, response: &mut Response<'_>) {
        let (root, name, hidden) = (self.store.root(), &self.names.asked[..], self.plan.hidden);
        let folder = listing::Folder { root, name, hidden };
        if let Err(error) = self.listings.respond(opened, &folder, request, response) {
            refuse::open_at(self.path_of(&self.names.asked), &error, response);
        }
    }

    /// Caches the file in the buffer as the lookup of the requested name.
    fn note(&mut self, found: &FoundFile, now: Now) {
        // A cached name is served without a look-up of the root, so it must not outlast the last one.
        let now = self.store.as_of_root(now);
        let Names { asked, file, .. } = &self.names;
        match &found.held {
            Some(held) => self.lookups.note_held(asked, held, now),
            // A file of the same name is found as fast without an entry.
            None if asked == file => self.lookups.remove(asked),
            None => self.lookups.note_elsewhere(asked, file, now),
        }
    }

    /// Responds if there is no candidate.
    fn respond_missing(&mut self, shape: Shape, request: &Request<'_>, response: &mut Response<'_>) {
        match self.page_behind_slash(shape) {
            Ok(false) => self.respond_spa(request, response),
            Ok(true) => redirect::to_name(&self.names.other, request, response),
            Err(error) => self.refuse(&error, response),
        }
    }

    /// Returns whether the requested name without its trailing slash is a page, and writes that name.
    fn page_behind_slash(&mut self, shape: Shape) -> Result<bool, OpenError> {
        let Self { plan, names: Names { asked, file, other, .. }, store, .. } = self;
        let is_page = Search { root: store.root(), plan }.page_behind_slash(asked, shape, file)?;
        if is_page {
            other.clear();
            other.extend_from_slice(asked.strip_suffix(b"/").unwrap_or(asked));
        }
        Ok(is_page)
    }

    /// Responds with the fallback file to navigation requests, else with `404`.
    fn respond_spa(&mut self, request: &Request<'_>, response: &mut Response<'_>) {
        let Some(spa) = &self.plan.spa else { return refuse::open(&OpenError::NotFound, response) };
        let navigation = Navigation::of(&self.names.asked, &request.head());
        self.names.file.clone_from(spa);
        match self.store.file(&mut self.names.file, request) {
            Ok(found) if navigation != Navigation::No => {
                if navigation == Navigation::Surely {
                    self.note(&found, Now::of(request));
                }
                found.content.reply(request, response);
            }
            Ok(_) => refuse::open(&OpenError::NotFound, response),
            Err(error) => self.refuse(&error, response),
        }
        if navigation != Navigation::Surely {
            response.field("Vary", "Accept");
        }
    }
}

/// Returns whether a file is always served under its own name.
fn is_own_path(plan: &Plan, name: &[u8]) -> bool {
    plan.candidates.begins_with_itself() && !(plan.clean_urls && name.ends_with(PAGE))
}
