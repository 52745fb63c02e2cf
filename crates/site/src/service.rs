//! Checked sites, and one worker's service: finds the site and route of a request, and responds.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::{Context, GuardsPassed, HeaderRules, Request};
use shearwater::{Response, Service};
use shearwater_files::resolve::path::{BadPath, resolve};
use shearwater_files::{CacheStatistics, FileCache, Files, Folder};

use crate::builder;
use crate::error_pages::{ErrorPages, PageSet};
use crate::https::HTTPS_PORT;
use crate::options::{Mistakes, Options};
use crate::plan::{RouteAction, RouteMatch, SitesPlan, prefix_len};
use crate::responses::{ALLOW, FixedResponse};
use crate::route_cache::RouteCache;

/// Checked sites, shared by the workers.
#[derive(Clone)]
pub struct Sites(Arc<SitesPlan>);

impl Sites {
    /// Checks sites and builds their tables.
    ///
    /// # Errors
    /// Every mistake: invalid hosts, paths, targets, headers and values, duplicates, redirect loops, exceeded limits.
    pub fn new(options: Options) -> Result<Self, Mistakes> {
        builder::build(options).map(|plan| Self(Arc::new(plan)))
    }

    /// Returns probable mistakes, by what is in the folders now: missing error pages, redirect loops by files, missing indexes.
    #[must_use]
    pub fn warnings(&self) -> &Mistakes {
        &self.0.warnings
    }

    /// Returns the statistics of the workers' caches, which sites that replace these continue.
    #[must_use]
    pub fn cache_statistics(&self) -> CacheStatistics {
        self.0.statistics.clone()
    }

    /// Takes over the open folders of present sites that are the same, so that each has one descriptor, the counts of their
    /// caches, and what guards know of clients.
    #[must_use]
    pub fn sharing_folders(mut self, present: &Self) -> Self {
        let known = FoldersByPath::new(&present.0.folders);
        if let Some(plan) = Arc::get_mut(&mut self.0) {
            plan.statistics = present.0.statistics.clone();
            for folder in &mut plan.folders {
                if let Some(same) = known.find(folder) {
                    *folder = present.0.folders[same].clone();
                }
            }
            for site in &mut plan.sites {
                let same = present.0.sites.iter().find(|present| present.name == site.name);
                for planned in &mut site.guards {
                    let present =
                        same.and_then(|site| site.guards.iter().find(|known| known.key == planned.key));
                    present.into_iter().for_each(|present| planned.guards.continue_from(&present.guards));
                }
            }
        }
        self
    }

    /// Numbers the sites for listeners of finished exchanges ([`FinishedExchange::tag`]), by the first host of each or
    /// `(default)`. Sites that are already shared with services keep their numbers; without this call all have 0.
    ///
    /// [`FinishedExchange::tag`]: shearwater::FinishedExchange::tag
    pub fn set_tags(&mut self, tag: impl Fn(&str) -> u16) {
        if let Some(plan) = Arc::get_mut(&mut self.0) {
            plan.sites.iter_mut().for_each(|site| site.tag = tag(&site.name));
            if let (Some(only), [site]) = (&mut plan.only, &plan.sites[..]) {
                only.tag = site.tag;
            }
        }
    }

    /// Sets the port that requests in clear are redirected to, as soon as it is known. Without this call it is 443; only the
    /// first call counts.
    pub fn set_https_port(&self, port: u16) {
        self.0.https_port.get_or_init(|| port);
    }

    /// Returns the port that requests in clear are redirected to, if it was set.
    #[must_use]
    pub fn https_port(&self) -> Option<u16> {
        self.0.https_port.get().copied()
    }

    /// Responds to challenges of certificate authorities (`/.well-known/acme-challenge/TOKEN`, RFC 8555 section 8.3) on all sites,
    /// in clear. Workers call `find` with the token of each such request. Sites that are already shared with services keep
    /// theirs.
    pub fn answer_challenges(&mut self, find: impl Fn(&str) -> Option<String> + Send + Sync + 'static) {
        if let Some(plan) = Arc::get_mut(&mut self.0) {
            plan.challenges.0 = Some(Arc::new(find));
            plan.has_clear_rules = true;
            plan.has_checks = true;
        }
    }

    /// Returns a service for one worker, with a cache of its own.
    #[must_use]
    pub fn service(&self) -> SiteService {
        SiteService::new(Arc::clone(&self.0), None)
    }

    /// Returns a service for one worker, with the caches of its present one.
    ///
    /// A folder keeps them if it is the same directory at the same path, with the same options and the same bounds of the
    /// cache. What the present service has cached of other folders is freed along with it.
    #[must_use]
    pub fn service_after(&self, present: &SiteService) -> SiteService {
        SiteService::new(Arc::clone(&self.0), Some(present))
    }
}

impl fmt::Debug for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sites").field("sites", &self.0.sites.len()).finish_non_exhaustive()
    }
}

/// Open folders by path: there may be thousands.
struct FoldersByPath<'a> {
    folders: &'a [Folder],
    by_path: HashMap<&'a Path, Vec<usize>>,
}

impl<'a> FoldersByPath<'a> {
    fn new(folders: &'a [Folder]) -> Self {
        let mut by_path: HashMap<_, Vec<_>> = HashMap::new();
        for (index, folder) in folders.iter().enumerate() {
            by_path.entry(folder.path()).or_default().push(index);
        }
        Self { folders, by_path }
    }

    /// Returns the index of the same folder.
    fn find(&self, folder: &Folder) -> Option<usize> {
        let at_path = self.by_path.get(folder.path())?;
        at_path.iter().copied().find(|&index| self.folders[index].is_same(folder))
    }
}

/// All sites, served by one worker.
pub struct SiteService {
    plan: Arc<SitesPlan>,
    files: Vec<Files>,
    file_cache: FileCache,
    header_rules: Vec<Rc<HeaderRules>>,
    fixed: Vec<FixedResponse>,
    error_pages: Rc<ErrorPages>,
    cache: RefCell<RouteCache>,
    scratch: RefCell<Scratch>,
}

impl fmt::Debug for SiteService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteService").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Reusable buffers.
#[derive(Default)]
struct Scratch {
    name: Vec<u8>,
    location: String,
}

impl SiteService {
    fn new(plan: Arc<SitesPlan>, present: Option<&Self>) -> Self {
        let present = present.filter(|present| present.plan.cache == plan.cache);
        let file_cache =
            present.map_or_else(|| plan.statistics.cache(plan.cache), |present| present.file_cache.clone());
        let kept = present.map(|present| (FoldersByPath::new(&present.plan.folders), &present.files));
        let files = |folder: &Folder| {
            let same = kept.as_ref().and_then(|(folders, files)| Some(&files[folders.find(folder)?]));
            same.map_or_else(|| folder.files_in(&file_cache), Files::clone)
        };
        let files: Vec<Files> = plan.folders.iter().map(files).collect();
        Self {
            error_pages: Rc::new(ErrorPages::new(Arc::clone(&plan), files.clone())),
            files,
            file_cache,
            header_rules: plan.header_rules.iter().cloned().map(Rc::new).collect(),
            fixed: plan.fixed.iter().map(FixedResponse::new).collect(),
            cache: RefCell::new(RouteCache::new()),
            scratch: RefCell::default(),
            plan,
        }
    }

    /// Looks up the rule of a request. An invalid path has the rule of the site.
    #[cold]
    fn find(&self, host: &[u8], path: &[u8], text: &str) -> (RouteMatch, Option<BadPath>) {
        let number = self.plan.hosts.find(host);
        let site = &self.plan.sites[number as usize];
        let name = &mut self.scratch.borrow_mut().name;
        let (rule, bad) = match resolve(text, name) {
            Ok(_) => (site.routes.find(name), None),
            Err(bad) => (0, Some(bad)),
        };
        let found = RouteMatch { site: number as u16, tag: site.tag, rule: site.rules[rule as usize] };
        if bad.is_none() {
            self.cache.borrow_mut().insert(host, path, found);
        }
        (found, bad)
    }

    /// Responds by a rule. An error without a body of its own gets an error page.
    #[inline(always)]
    fn act(
        &self,
        found: &RouteMatch,
        bad: Option<BadPath>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        response.exchange_tag(found.tag);
        let mut header_rules = found.rule.header_rules;
        if self.plan.has_checks {
            let Some(checked) = self.check(found, request, response) else { return };
            header_rules = checked;
        }
        if let Some(header_rules) = header_rules {
            response.header_rules(&self.header_rules[header_rules as usize]);
        }
        let is_whole = match (found.rule.action, bad) {
            // Folders choose the status of an invalid path themselves.
            (RouteAction::Files(folder), _) => {
                self.files[folder as usize].respond(request, response);
                false
            }
            (RouteAction::FilesBelow { folder, segments }, _) => {
                respond_below(&self.files[folder as usize], segments, request, response);
                false
            }
            (RouteAction::Fixed(fixed), None) => self.fixed[fixed as usize].respond(request, response),
            (RouteAction::Redirect(redirect), None) => {
                let location = &mut self.scratch.borrow_mut().location;
                let redirects = &self.plan.sites[found.site as usize].redirects;
                redirects[redirect as usize].respond(request, location, response);
                true
            }
            (RouteAction::Nothing, None) | (_, Some(_)) => {
                response.unhandled_target(request, ALLOW);
                false
            }
        };
        if !is_whole && (response.status_code() >= 400 || response.is_deferred()) {
            self.add_error_page(found, request, response);
        }
    }

    /// Responds to a request in clear that is redirected, or that doesn't pass its guards. Else returns its header rules.
    #[inline(never)]
    fn check(
        &self,
        found: &RouteMatch,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<Option<u32>> {
        let is_clear = self.plan.has_clear_rules && !request.is_secure();
        if is_clear && self.respond_in_clear(found, request, response) {
            return None;
        }
        self.run_guards(found, is_clear, request, response)?;
        Some(self.plan.header_rules(found, request, is_clear))
    }

    /// Runs the guards of a match that haven't run yet. Returns the number passed; `None` if one of them has responded.
    fn run_guards(
        &self,
        found: &RouteMatch,
        is_clear: bool,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<GuardsPassed> {
        let Some(guards) = self.plan.guards(found) else { return Some(request.guards_outside()) };
        if let Some(header_rules) = self.plan.header_rules(found, request, is_clear) {
            response.header_rules(&self.header_rules[header_rules as usize]);
        }
        let passed = guards.check(request, response);
        if passed.is_none() && (response.status_code() >= 400 || response.is_deferred()) {
            self.add_error_page(found, request, response);
        }
        passed
    }

    fn add_error_page(&self, found: &RouteMatch, request: &Request<'_>, response: &mut Response<'_>) {
        let pages = PageSet { site: found.site, number: found.rule.pages };
        self.error_pages.surround(pages, request, response);
    }

    /// Responds to a request in clear that is a challenge, or that its site redirects to `https`.
    #[inline(never)]
    fn respond_in_clear(
        &self,
        found: &RouteMatch,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        let plan = &self.plan;
        if plan.challenges.respond(request, response) {
            return true;
        }
        let Some(rules) = plan.redirect_to_https(found, request) else { return false };
        if let Some(header_rules) = plan.header_rules(found, request, true) {
            response.header_rules(&self.header_rules[header_rules as usize]);
        }
        let port = plan.https_port.get().copied().unwrap_or(HTTPS_PORT);
        let location = &mut self.scratch.borrow_mut().location;
        if !rules.redirect((found.site, &plan.hosts, port), request, location, response) {
            self.add_error_page(found, request, response);
        }
        true
    }
}

/// Responds with a file named by the path after its first segments.
#[inline(never)]
fn respond_below(files: &Files, segments: u8, request: &Request<'_>, response: &mut Response<'_>) {
    let mount_len = request.mount().len() + prefix_len(request.path(), segments);
    let prefix = StrippedPrefix { mount_len, is_method_known: request.is_method_known() };
    files.respond(&request.within(&prefix), response);
}

/// Hides a prefix of the path from a folder.
#[derive(Clone, Copy)]
struct StrippedPrefix {
    mount_len: usize,
    is_method_known: bool,
}

impl Context for StrippedPrefix {
    fn param(&self, _: &str) -> Option<&str> {
        None
    }

    fn mount_len(&self) -> usize {
        self.mount_len
    }

    fn knows_method(&self, _: &str) -> bool {
        self.is_method_known
    }

    fn kept(&self) -> Option<Rc<dyn Context>> {
        Some(Rc::new(*self))
    }
}

impl Service for SiteService {
    fn guard(&self, request: &Request<'_>, response: &mut Response<'_>) -> Option<GuardsPassed> {
        let head = request.head();
        let found = match self.plan.only {
            Some(only) => only,
            None => self.find(head.host_bytes(), head.path_bytes(), request.path()).0,
        };
        let is_clear = self.plan.has_clear_rules && !request.is_secure();
        // The redirect comes first.
        if is_clear && self.plan.redirect_to_https(&found, request).is_some() {
            return Some(request.guards_outside());
        }
        response.exchange_tag(found.tag);
        self.run_guards(&found, is_clear, request, response)
    }

    fn has_guards(&self) -> bool {
        self.plan.has_guards
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        if let Some(only) = &self.plan.only {
            return self.act(only, None, request, response);
        }
        let head = request.head();
        let (host, path) = (head.host_bytes(), head.path_bytes());
        if let Some(found) = self.cache.borrow().get(host, path) {
            return self.act(found, None, request, response);
        }
        let (found, bad) = self.find(host, path, request.path());
        self.act(&found, bad, request, response);
    }
}
