//! Responds with a file as the page of another status.

use shearwater::Response;
use shearwater::engine::Request;
use shearwater_io::fs::OpenError;

use super::{Finder, NameBuffers, needs_disk};
use crate::cache::cached_file::FileContent;
use crate::disk::load::Loaded;
use crate::disk::work::{DiskWork, FoundResult, WaitingRequest};
use crate::now::Now;
use crate::resolve::search::is_missing;

/// Result of looking for a page.
pub(crate) enum Page {
    Sent,
    /// It can't be sent, and the response is unchanged.
    Missing,
    /// Another thread reads it.
    Waits(WaitingRequest),
}

impl Finder {
    /// Responds with a file as the page of a status. `found` is the result of earlier work for it.
    pub(crate) fn respond_page(
        &mut self,
        name: &[u8],
        status: u16,
        found: Option<FoundResult>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Page {
        let now = Now::of(request);
        name.clone_into(&mut self.names.file);
        let (content, was_patient) = match found {
            Some(Err(_)) => {
                self.store.disk.failed(now);
                return Page::Missing;
            }
            Some(Ok(found)) if self.take_root(&found) => {
                (self.keep_page(found.loaded.as_ref(), request, found.now), found.is_patient)
            }
            Some(Ok(_)) => (Err(OpenError::WouldBlock), false),
            None => {
                self.look_up_root(now);
                self.store.disk.waits = !response.can_be_deferred();
                let was_patient = self.store.disk.waits;
                let content = match self.store.known_file(&mut self.names.file, request, now) {
                    Some(content) => Ok(content),
                    None => {
                        name.clone_into(&mut self.names.requested);
                        let loaded = self.load(None, request, now);
                        self.keep_page(loaded.as_ref(), request, now)
                    }
                };
                self.store.disk.waits = false;
                (content, was_patient)
            }
        };
        match content {
            Ok(content) => {
                content.reply_page(status, response);
                Page::Sent
            }
            Err(error) if needs_disk(&error, was_patient) => {
                // The page of a request that has waited in vain would double its wait.
                if self.store.disk.has_failed_lately(now) {
                    return Page::Missing;
                }
                let is_patient = self.store.recent_file(&mut self.names.file, request, now).is_none();
                let work = DiskWork::new(name, None, None, request, is_patient);
                Page::Waits(self.store.disk.wait_for(work, None, now))
            }
            Err(error) => {
                if !is_missing(&error) {
                    response.report_file(self.path_of(name), error);
                }
                Page::Missing
            }
        }
    }

    /// Caches a file that was loaded as a page. Without a free descriptor, the recently checked version is sent.
    fn keep_page(
        &mut self,
        loaded: Result<&Loaded, &OpenError>,
        request: &Request<'_>,
        now: Now,
    ) -> Result<FileContent, OpenError> {
        let Self { store, names: NameBuffers { file, .. }, .. } = self;
        match loaded {
            Ok(Loaded::File(loaded)) => Ok(store.keep(loaded, file, request, now)),
            Ok(_) => Err(OpenError::NotFound),
            Err(error @ OpenError::Descriptors) => {
                store.recent_file(file, request, now).ok_or_else(|| error.clone())
            }
            Err(error) => {
                if !matches!(error, OpenError::WouldBlock) {
                    store.evict(file);
                }
                Err(error.clone())
            }
        }
    }
}
