//! Error pages: a site's own files, and built-in pages.

use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::Around;
use shearwater::{Request, Response};
use shearwater_files::Files;

use crate::plan::SitesPlan;
use crate::responses::BuiltInPages;

/// Headers of an error that its page keeps (RFC 9110 sections 15.5.6, 15.5.17, 10.2.3, 12.5.5 and 11.6.1).
const OF_ERRORS: [&str; 5] = ["Allow", "Content-Range", "Retry-After", "Vary", "WWW-Authenticate"];

/// The error pages of all sites, on one worker.
pub(crate) struct ErrorPages {
    plan: Arc<SitesPlan>,
    files: Vec<Files>,
    built_in: Rc<BuiltInPages>,
}

impl ErrorPages {
    pub(crate) fn new(plan: Arc<SitesPlan>, files: Vec<Files>) -> Self {
        Self { plan, files, built_in: Rc::new(BuiltInPages::new()) }
    }

    /// Replaces the body of an error with its page, now or once the response is complete.
    #[cold]
    pub(crate) fn surround(
        self: &Rc<Self>,
        pages: PageSet,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        if !response.around(self, pages.key()) {
            self.replace(pages, request, response);
        }
    }

    fn replace(&self, pages: PageSet, request: &Request<'_>, response: &mut Response<'_>) {
        let status = response.status_code();
        if status < 400 {
            return;
        }
        let built_in = Rc::clone(&self.built_in);
        let otherwise =
            move |request: &Request<'_>, response: &mut Response<'_>| built_in.respond(request, response);
        let pages = &self.plan.sites[pages.site as usize].pages[pages.number as usize];
        let Some(page) = pages.iter().find(|page| page.status == status) else {
            return otherwise(request, response);
        };
        // Headers of the missing file don't apply to the page.
        response.keep_fields(&OF_ERRORS);
        let files = &self.files[page.folder as usize];
        files.respond_page(&page.path, status, request, response, otherwise);
    }
}

/// Replaces the errors of folders that had to wait for the disk.
impl Around for ErrorPages {
    fn response(self: Rc<Self>, key: u64, request: &Request<'_>, response: &mut Response<'_>) {
        self.replace(PageSet::of(key), request, response);
    }
}

/// The error pages of a route: a site, and the number of its set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSet {
    pub(crate) site: u16,
    pub(crate) number: u32,
}

impl PageSet {
    fn key(self) -> u64 {
        u64::from(self.site) << 32 | u64::from(self.number)
    }

    fn of(key: u64) -> Self {
        Self { site: (key >> 32) as u16, number: key as u32 }
    }
}
