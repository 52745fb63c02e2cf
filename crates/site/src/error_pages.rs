//! Error pages: a site's own files, and built-in pages.

use std::rc::Rc;
use std::sync::Arc;

use shearwater::Response;
use shearwater::engine::{Around, Request};
use shearwater_files::Files;
use shearwater_files::resolve::path::resolve_setting;

use crate::options::{ErrorPage, InvalidValue, invalid};
use crate::plan::{PlannedPage, RouteAction, SitePlan, SitesPlan, prefix_len};
use crate::responses::BuiltInPages;
use crate::routes::bad_path;

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

/// Finds the folders of error pages. Returns the valid pages, and errors by status.
pub(crate) fn find_pages(
    pages: &[ErrorPage],
    plan: &SitePlan,
) -> (Vec<PlannedPage>, Vec<(u16, InvalidValue)>) {
    let mut found: Vec<PlannedPage> = Vec::new();
    let mut wrong = Vec::new();
    for page in pages {
        let status = page.status;
        let is_twice = found.iter().any(|known| known.status == status);
        match locate(page, plan) {
            _ if is_twice => wrong.push((status, invalid("duplicate error page", ""))),
            Ok((folder, path)) => found.push(PlannedPage { status, folder, path }),
            Err(invalid) => wrong.push((status, invalid)),
        }
    }
    (found, wrong)
}

/// Returns the folder of a page, which is that of the route of its path, and its path in the folder.
fn locate(page: &ErrorPage, plan: &SitePlan) -> Result<(u32, Box<str>), InvalidValue> {
    if !(400..=599).contains(&page.status) {
        return Err(invalid("status is not an error", "allowed: 400 to 599"));
    }
    let path = &page.path;
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return Err(invalid(
            "invalid path of an error page",
            "write a path of the site, such as \"/404.html\"",
        ));
    }
    let mut name = Vec::new();
    resolve_setting(path, &mut name).map_err(bad_path)?;
    let rule = plan.routes.find(&name);
    let is_file = !matches!(name.as_slice(), [] | [.., b'/']);
    let Some(name) = String::from_utf8(name).ok().filter(|_| is_file) else {
        return Err(invalid("path of an error page is not a file", ""));
    };
    match plan.rules[rule as usize].action {
        RouteAction::Files(folder) => Ok((folder, format!("/{name}").into())),
        RouteAction::FilesBelow { folder, segments } => {
            let path = format!("/{name}");
            Ok((folder, path[prefix_len(&path, segments)..].into()))
        }
        RouteAction::Redirect(_) => Err(invalid("path of an error page is redirected", "")),
        RouteAction::Fixed(_) | RouteAction::Nothing => {
            Err(invalid("no files are served at the path of an error page", ""))
        }
    }
}

/// Merges the pages of a site into those of its route, which take precedence.
pub(crate) fn merge_pages(site: &[PlannedPage], route: Vec<PlannedPage>) -> Vec<PlannedPage> {
    let is_own = |page: &&PlannedPage| route.iter().any(|own| own.status == page.status);
    let others: Vec<_> = site.iter().filter(|page| !is_own(page)).cloned().collect();
    [route, others].concat()
}
