//! One worker's sites: which site, which route, and what they answer.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::{Overlay, Request, Response, Service};
use shearwater_files::resolve::{BadPath, resolve};
use shearwater_files::{FileCache, Files};

use crate::error_pages;
use crate::fixed::{ALLOW, FixedAnswer};
use crate::plain_page::PlainPages;
use crate::plan::{Action, Plan};
use crate::ways::{Way, Ways};

/// Fields of an error that hold whatever is sent with it (RFC 9110 sections 15.5.6, 15.5.17, 10.2.3
/// and 12.5.5: another client may not get the error).
const OF_ERRORS: [&str; 4] = ["Allow", "Content-Range", "Retry-After", "Vary"];

/// All sites, as one worker serves them.
pub struct SiteService {
    plan: Arc<Plan>,
    files: Vec<Files>,
    overlays: Vec<Rc<Overlay>>,
    fixed: Vec<FixedAnswer>,
    plain_pages: PlainPages,
    ways: RefCell<Ways>,
    places: RefCell<Places>,
}

impl fmt::Debug for SiteService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteService").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Where texts are put together; kept for their memory.
#[derive(Default)]
struct Places {
    name: Vec<u8>,
    location: String,
}

impl SiteService {
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        let cache = FileCache::new(plan.cache);
        Self {
            files: plan.folders.iter().map(|folder| folder.files_in(&cache)).collect(),
            overlays: plan.overlays.iter().cloned().map(Rc::new).collect(),
            fixed: plan.fixed.iter().map(FixedAnswer::new).collect(),
            plain_pages: PlainPages::new(),
            ways: RefCell::new(Ways::new()),
            places: RefCell::default(),
            plan,
        }
    }

    /// Looks up where a request leads; also why its path names nothing, which no route has.
    #[cold]
    fn find(&self, host: &[u8], path: &[u8], text: &str) -> (Way, Option<BadPath>) {
        let number = self.plan.hosts.find(host);
        let site = &self.plan.sites[number as usize];
        let name = &mut self.places.borrow_mut().name;
        let (rule, bad) = match resolve(text, name) {
            Ok(_) => (site.routes.find(name), None),
            Err(bad) => (0, Some(bad)),
        };
        let way = Way { site: number, rule: site.rules[rule as usize] };
        if bad.is_none() {
            self.ways.borrow_mut().note(host, path, way);
        }
        (way, bad)
    }

    /// What stands in every answer of a way.
    #[inline]
    fn overlay(&self, way: &Way, response: &mut Response<'_>) {
        if let Some(overlay) = way.rule.overlay {
            response.overlay(&self.overlays[overlay as usize]);
        }
    }

    /// Answers; an error that says nothing for itself with its page.
    #[inline(always)]
    fn act(&self, way: &Way, request: &Request<'_>, response: &mut Response<'_>) {
        self.overlay(way, response);
        let is_whole = match way.rule.action {
            Action::Files(folder) => {
                self.files[folder as usize].respond(request, response);
                false
            }
            Action::Fixed(fixed) => self.fixed[fixed as usize].respond(request, response),
            Action::Redirect(redirect) => {
                let location = &mut self.places.borrow_mut().location;
                let redirects = &self.plan.sites[way.site as usize].redirects;
                redirects[redirect as usize].respond(request, location, response);
                true
            }
            Action::Nothing => {
                response.unhandled_target(request, ALLOW);
                false
            }
        };
        if !is_whole && response.status_code() >= 400 {
            self.dress(way, request, response);
        }
    }

    /// Sends an error with its page.
    #[cold]
    fn dress(&self, way: &Way, request: &Request<'_>, response: &mut Response<'_>) {
        let status = response.status_code();
        let pages = &self.plan.sites[way.site as usize].pages[way.rule.pages as usize];
        if let Some(page) = error_pages::of(pages, status) {
            // What was said of a file is not said of the page.
            response.keep_fields(&OF_ERRORS);
            let files = &self.files[page.folder as usize];
            if files.respond_page(&page.path, status, request, response) {
                return;
            }
        }
        self.plain_pages.respond(request, response);
    }

    /// A path that names nothing: no route has it. Files know what to say of it.
    #[cold]
    fn unnamed(&self, bad: BadPath, way: &Way, request: &Request<'_>, response: &mut Response<'_>) {
        self.overlay(way, response);
        match way.rule.action {
            Action::Files(folder) => self.files[folder as usize].respond(request, response),
            _ if bad == BadPath::NoName => drop(response.unhandled_target(request, ALLOW)),
            _ => {
                response.status(400).text("Bad Request\n");
            }
        }
        if response.status_code() >= 400 {
            self.dress(way, request, response);
        }
    }
}

impl Service for SiteService {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let head = request.head();
        let (host, path) = (head.host_bytes(), head.path_bytes());
        if let Some(way) = self.ways.borrow().get(host, path) {
            return self.act(way, request, response);
        }
        let (way, bad) = self.find(host, path, request.path());
        match bad {
            None => self.act(&way, request, response),
            Some(bad) => self.unnamed(bad, &way, request, response),
        }
    }
}
