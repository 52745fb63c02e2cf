//! One worker's sites: which site, which route, and what they answer.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::{Method, Overlay, Request, Response, Service};
use shearwater_files::Files;
use shearwater_files::resolve::{BadPath, resolved};

use crate::error_pages;
use crate::fixed::{ALLOW, FixedAnswer};
use crate::plain_page::PlainPages;
use crate::plan::{Action, Plan, Rule, SitePlan};

/// Fields of an error that hold whatever is sent with it (RFC 9110 sections 15.5.6, 15.5.17 and 10.2.3).
const OF_ERRORS: [&str; 3] = ["Allow", "Content-Range", "Retry-After"];

/// All sites, as one worker serves them.
pub struct SiteService {
    plan: Arc<Plan>,
    files: Vec<Files>,
    overlays: Vec<Rc<Overlay>>,
    fixed: Vec<FixedAnswer>,
    plain_pages: PlainPages,
    places: RefCell<Places>,
}

/// Where texts are put together; kept for their memory.
#[derive(Default)]
struct Places {
    name: Vec<u8>,
    location: String,
}

impl SiteService {
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        Self {
            files: plan.folders.iter().map(|folder| folder.files_with(plan.cache)).collect(),
            overlays: plan.overlays.iter().cloned().map(Rc::new).collect(),
            fixed: plan.fixed.iter().map(FixedAnswer::new).collect(),
            plain_pages: PlainPages::new(),
            places: RefCell::default(),
            plan,
        }
    }

    /// What answers, and the error that has no page of its own yet.
    #[inline]
    fn act(&self, site: &SitePlan, rule: Rule, request: &Request<'_>, response: &mut Response<'_>) {
        let is_whole = match rule.action {
            Action::Files(folder) => {
                self.files[folder as usize].respond(request, response);
                false
            }
            Action::Fixed(fixed) => self.fixed[fixed as usize].respond(request, response),
            Action::Redirect(redirect) => {
                let location = &mut self.places.borrow_mut().location;
                site.redirects[redirect as usize].respond(request, location, response);
                true
            }
            Action::Nothing => {
                nothing(request, response);
                false
            }
        };
        if !is_whole && response.status_code() >= 400 {
            self.dress(site, rule, request, response);
        }
    }

    /// Sends an error with its page.
    #[cold]
    fn dress(&self, site: &SitePlan, rule: Rule, request: &Request<'_>, response: &mut Response<'_>) {
        let status = response.status_code();
        if let Some(page) = error_pages::of(&site.pages[rule.pages as usize], status) {
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
    fn unnamed(&self, bad: BadPath, rule: Rule, request: &Request<'_>, response: &mut Response<'_>) {
        match rule.action {
            Action::Files(folder) => self.files[folder as usize].respond(request, response),
            _ if bad == BadPath::NoName => nothing(request, response),
            _ => {
                response.status(400).text("Bad Request\n");
            }
        }
    }
}

impl Service for SiteService {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let site = &self.plan.sites[self.plan.hosts.find(request.head().host()) as usize];
        let found =
            resolved(request.path(), &mut self.places.borrow_mut().name).map(|name| site.routes.find(name));
        let rule = site.rules[found.unwrap_or(0) as usize];
        if let Some(overlay) = rule.overlay {
            response.overlay(&self.overlays[overlay as usize]);
        }
        match found {
            Ok(_) => self.act(site, rule, request, response),
            Err(bad) => {
                self.unnamed(bad, rule, request, response);
                if response.status_code() >= 400 {
                    self.dress(site, rule, request, response);
                }
            }
        }
    }
}

/// Nothing is served here.
fn nothing(request: &Request<'_>, response: &mut Response<'_>) {
    // The server as a whole (RFC 9110 section 9.3.7).
    match (request.method(), request.path()) {
        (Method::Options, "*") => response.status(204).field("Allow", ALLOW),
        _ => response.status(404).text("Not Found\n"),
    };
}
