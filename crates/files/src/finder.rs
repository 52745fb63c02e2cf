//! Finds the file that a target names, and responds with it.

pub(crate) mod page;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use shearwater::Response;
use shearwater::engine::{KnownField, Request};
use shearwater_compress::negotiation::choose_coding;
use shearwater_io::fs::OpenError;

use crate::cache::cached_file::{CachedFile, FileContent};
use crate::cache::lookups::Lookups;
use crate::cache::store::FileStore;
use crate::disk::load::{Load, Loaded};
use crate::disk::work::{DiskWork, Found, FoundResult, WaitingRequest};
use crate::disk::worker::DiskFailure;
use crate::folder::FolderNumber;
use crate::leaving_links::LeavingLink;
use crate::listing::Listings;
use crate::negotiation::names_media_type;
use crate::now::Now;
use crate::options::Hidden;
use crate::reply::errors;
use crate::resolve::path::{Shape, resolve_in_place};
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
    /// Name of the file, or of the one that an error is about.
    file: Vec<u8>,
    /// Name of the file that is tried first, if it isn't that of the path.
    first: Vec<u8>,
}

/// A response needs work on another thread.
struct NeedsDisk {
    /// An open that a wait may fix is to be repeated.
    is_patient: bool,
}

impl Finder {
    /// Responds to `GET` and `HEAD`, or returns the disk work that must be waited for first.
    #[inline(always)]
    pub(crate) fn respond(
        &mut self,
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
        let mut is_looked_up = false;
        let of_lookup = || {
            is_looked_up = self.lookups.fresh(name, now, file);
            if is_looked_up { self.store.fresh(file, now) } else { None }
        };
        if let Some(cached) = fresh.or_else(of_lookup)
            && reply_cached(&mut self.store, cached, file, request, response, now)
        {
            return None;
        }
        name.clone_into(&mut self.names.requested);
        self.respond_unchecked(is_looked_up, resolved.shape, request, response)
    }

    /// Responds with a file that wasn't checked recently, or returns the work that finds it. The name of one that
    /// `is_looked_up` is in the buffer.
    #[inline(never)]
    fn respond_unchecked(
        &mut self,
        is_looked_up: bool,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<WaitingRequest> {
        let now = Now::of(request);
        let is_looked_up = !self.look_up_root(now) && is_looked_up;
        self.store.disk.waits = !response.can_be_deferred();
        let result = match self.known_file(is_looked_up, shape, request, now) {
            Some(content) => {
                content.reply(request, response);
                Ok(())
            }
            None => {
                let (loaded, waits) = (self.load(Some(shape), request, now), self.store.disk.waits);
                self.respond_loaded(loaded.as_ref(), waits, shape, request, response, now)
            }
        };
        self.store.disk.waits = false;
        result.err().map(|needs| self.wait(&needs, shape, request, now))
    }

    /// Returns a file that is cached and unchanged, or open; also one that was found within 500 ms under another name.
    fn known_file(
        &mut self,
        is_looked_up: bool,
        shape: Shape,
        request: &Request<'_>,
        now: Now,
    ) -> Option<FileContent> {
        let Self { settings, names: NameBuffers { requested, file, first, .. }, store, .. } = self;
        if !is_looked_up {
            settings.candidates.first(requested, shape, first)?.clone_into(file);
        }
        store.known_file(file, request, now)
    }

    /// Loads the file of the requested name, if that takes no wait.
    fn load(&mut self, shape: Option<Shape>, request: &Request<'_>, now: Now) -> Result<Loaded, OpenError> {
        let Self { settings, names: NameBuffers { requested, file, .. }, store, .. } = self;
        let accepted = || request.head().all(KnownField::AcceptEncoding);
        let load = Load {
            disk: store.disk.access(),
            settings,
            limits: store.limits,
            name: requested,
            shape,
            query: request.query(),
            choose: &|codings| choose_coding(accepted(), codings, &settings.codings),
            known: Some(store),
            known_names: None,
            now,
        };
        load.load(file)
    }

    /// Has another thread search for the file.
    #[cold]
    fn wait(&mut self, needs: &NeedsDisk, shape: Shape, request: &Request<'_>, now: Now) -> WaitingRequest {
        let requested = &self.names.requested[..];
        let is_listing = self.settings.candidates.listing;
        let query = request.query().filter(|_| is_listing);
        let names = if is_listing { self.listings.known_names(requested, request, now) } else { None };
        let work = DiskWork::new(requested, Some(shape), query, request, needs.is_patient);
        self.store.disk.wait_for(work, names, now)
    }

    /// Responds with the result of disk work, or returns further work. There is none after the `last`.
    pub(crate) fn respond_found(
        &mut self,
        found: FoundResult,
        is_last: bool,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<WaitingRequest> {
        let Ok((name, resolved)) = resolve_in_place(request.path(), &mut self.names.decoded) else {
            errors::not_found(response);
            return None;
        };
        name.clone_into(&mut self.names.requested);
        let (shape, now) = (resolved.shape, Now::of(request));
        let needs = match found {
            Ok(found) if self.take_root(&found) => {
                self.names.file.clone_from(&found.file);
                let (loaded, is_patient) = (found.loaded.as_ref(), found.is_patient);
                match self.respond_loaded(loaded, is_patient, shape, request, response, found.now) {
                    Ok(()) => return None,
                    Err(needs) => needs,
                }
            }
            Ok(_) => NeedsDisk { is_patient: false },
            Err(failure) => {
                self.disk_failed(failure, response, now);
                return None;
            }
        };
        if is_last {
            self.disk_failed(DiskFailure::Busy, response, now);
            return None;
        }
        Some(self.wait(&needs, shape, request, now))
    }

    fn disk_failed(&mut self, failure: DiskFailure, response: &mut Response<'_>, now: Now) {
        self.store.disk.failed(now);
        errors::disk_failed(self.path_of(&self.names.requested), failure, response);
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

    /// Takes over the root of a result. Returns false if the result is of a former root, and worthless.
    fn take_root(&mut self, found: &Found) -> bool {
        let is_another = self.store.take_root(found);
        if is_another == Some(true) {
            self.lookups.clear();
            self.listings.clear();
        }
        is_another.is_some()
    }

    /// Responds with what was loaded; its name is in the buffer. Work that `was_patient` isn't repeated for what a wait may
    /// fix.
    fn respond_loaded(
        &mut self,
        loaded: Result<&Loaded, &OpenError>,
        was_patient: bool,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> Result<(), NeedsDisk> {
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => return self.respond_error(error, was_patient, shape, request, response, now),
        };
        let NameBuffers { requested, file, first, .. } = &mut self.names;
        let first = self.settings.candidates.first(requested, shape, first);
        let is_file = matches!(loaded, Loaded::File(loaded) if !loaded.is_fallback);
        for missing in [Some(&requested[..]), first].into_iter().flatten() {
            if !is_file || file != missing {
                self.store.evict(missing);
            }
        }
        match loaded {
            Loaded::File(loaded) if loaded.is_fallback => {
                let content = self.store.keep(loaded, file, request, now);
                self.respond_fallback(&content, request, response, now);
            }
            Loaded::File(loaded) => {
                let content = self.store.keep(loaded, file, request, now);
                if first == Some(&file[..]) {
                    // It is found without a lookup.
                    self.lookups.remove(requested);
                } else {
                    // A cached name is served without a look-up of the root, so it must not outlast the last one.
                    self.lookups.note(requested, file, self.store.root_checked(now));
                }
                content.reply(request, response);
            }
            Loaded::OtherName(name) => errors::redirect_to_name(name, request, response),
            Loaded::Folder => errors::redirect_to_folder(request, response),
            Loaded::List(list) => {
                let is_sent = self.listings.respond(requested, list.as_ref(), request, response, now);
                return if is_sent { Ok(()) } else { Err(NeedsDisk { is_patient: true }) };
            }
            Loaded::Status(status) => errors::status(*status, response),
            Loaded::Nothing => errors::not_found(response),
        }
        Ok(())
    }

    /// Responds to a file that can't be opened: as it was recently if no descriptor is free, or not at all if it must be
    /// waited for.
    #[cold]
    fn respond_error(
        &mut self,
        error: &OpenError,
        was_patient: bool,
        shape: Shape,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> Result<(), NeedsDisk> {
        let recent = match error {
            OpenError::WouldBlock | OpenError::Descriptors => self.recent_file(shape, request, now),
            _ => None,
        };
        if let (OpenError::Descriptors, Some(content)) = (error, &recent) {
            content.reply(request, response);
            return Ok(());
        }
        if needs_disk(error, was_patient) {
            return Err(NeedsDisk { is_patient: recent.is_none() });
        }
        let NameBuffers { requested, file, first, .. } = &mut self.names;
        let first = self.settings.candidates.first(requested, shape, first);
        [Some(&requested[..]), first].into_iter().flatten().for_each(|missing| self.store.evict(missing));
        // The open has just looked the path up, so this waits for no disk; each call to a file server may wait.
        let root = self.store.disk.root();
        let is_local = matches!(error, OpenError::Escapes) && !root.is_remote();
        let link = if is_local { LeavingLink::in_path(root, &self.path, file) } else { None };
        let (is_fallback, is_by_path) = (self.settings.spa.as_ref() == Some(file), is_page(requested));
        errors::cant_open(self.path_of(&self.names.file), error, link.as_ref(), response);
        if is_fallback && !is_by_path {
            response.field("Vary", "Accept");
        }
        Ok(())
    }

    /// Returns the requested file as it was when it was checked recently.
    fn recent_file(&self, shape: Shape, request: &Request<'_>, now: Now) -> Option<FileContent> {
        let (mut first, mut file) = (Vec::new(), Vec::new());
        let requested = &self.names.requested[..];
        let first = self.settings.candidates.first(requested, shape, &mut first);
        let of_first = first.and_then(|first| self.store.recent_file(&mut first.to_vec(), request, now));
        of_first.or_else(|| {
            let is_known = self.lookups.recent(requested, now, &mut file);
            is_known.then(|| self.store.recent_file(&mut file, request, now)).flatten()
        })
    }

    /// Responds with the fallback file to navigation requests, else with `404`.
    fn respond_fallback(
        &self,
        content: &FileContent,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) {
        let NameBuffers { requested, file, .. } = &self.names;
        let is_by_path = is_page(requested);
        if is_by_path {
            self.lookups.note(requested, file, self.store.root_checked(now));
        }
        if is_by_path || names_media_type(request.head().all(KnownField::Accept), b"text/html") {
            content.reply(request, response);
        } else {
            errors::not_found(response);
        }
        if !is_by_path {
            response.field("Vary", "Accept");
        }
    }
}

/// Returns whether a name is that of a page, not of a resource of one: its last segment has no extension.
fn is_page(name: &[u8]) -> bool {
    !name.rsplit(|&byte| byte == b'/').next().unwrap_or(name).contains(&b'.')
}

/// Returns whether another thread may get what has failed with this error.
fn needs_disk(error: &OpenError, was_patient: bool) -> bool {
    matches!(error, OpenError::WouldBlock) || error.is_passing() && !was_patient
}

/// Responds with a file that was checked recently, or its sibling. Returns false if that must be loaded. Writes the
/// file's name to `file`.
#[inline(never)]
fn reply_cached(
    store: &mut FileStore,
    cached: Rc<CachedFile>,
    file: &mut Vec<u8>,
    request: &Request<'_>,
    response: &mut Response<'_>,
    now: Now,
) -> bool {
    cached.name.as_ref().clone_into(file);
    let Some(content) = store.preferred(cached, file, request, now) else { return false };
    store.count_hit();
    content.reply(request, response);
    true
}
