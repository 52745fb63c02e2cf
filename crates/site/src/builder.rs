//! Builds the tables of one site, and checks its options.

use std::collections::HashMap;

use shearwater::HeaderRules;
use shearwater_files::Folder;
use shearwater_files::resolve::path::resolve;

use crate::error_pages;
use crate::fixed;
use crate::headers::{self, Changes};
use crate::limits::ROUTES_MAX;
use crate::mistakes::{Invalid, Mistakes, invalid};
use crate::options::{Content, ErrorPage, Fixed, Headers, Redirect as RedirectOptions, Route, Site};
use crate::plan::{Action, Page, Rule, SitePlan, number};
use crate::redirect::{Redirect, returns};
use crate::routes::{Pattern, Routes, segments};

/// Parts that sites share.
pub(crate) struct Shared<'f> {
    folders: &'f [Folder],
    pub(crate) header_rules: Vec<HeaderRules>,
    pub(crate) fixed: Vec<Fixed>,
    pub(crate) warnings: Mistakes,
    /// Numbers of the header_rules and fixed responses: most sites have the same ones.
    known_changes: HashMap<Changes, u32>,
    known_fixed: HashMap<Fixed, u32>,
}

impl<'f> Shared<'f> {
    pub(crate) fn new(folders: &'f [Folder]) -> Self {
        Self {
            folders,
            header_rules: Vec::new(),
            fixed: Vec::new(),
            warnings: Mistakes::default(),
            known_changes: HashMap::new(),
            known_fixed: HashMap::new(),
        }
    }

    fn header_rules(&mut self, changes: &Changes) -> Option<u32> {
        if let Some(&known) = self.known_changes.get(changes) {
            return Some(known);
        }
        let header_rules = headers::header_rules(changes)?;
        let new = number(self.header_rules.len());
        self.header_rules.push(header_rules);
        self.known_changes.insert(changes.clone(), new);
        Some(new)
    }

    fn fixed(&mut self, fixed: &Fixed) -> u32 {
        if let Some(&known) = self.known_fixed.get(fixed) {
            return known;
        }
        let new = number(self.fixed.len());
        self.fixed.push(fixed.clone());
        self.known_fixed.insert(fixed.clone(), new);
        new
    }
}

/// The rule of requests without a route.
const OWN: u32 = 0;

/// Builds the tables of a site.
pub(crate) fn build<'a>(
    at: usize,
    site: &'a Site,
    shared: &'a mut Shared<'_>,
    mistakes: &'a mut Mistakes,
) -> SitePlan {
    let plan =
        SitePlan { routes: Routes::new(OWN), rules: Vec::new(), redirects: Vec::new(), pages: Vec::new() };
    let key = format!("site[{at}]");
    let keys = vec![key.clone()];
    let mut builder = Builder { key, plan, keys, changes: Changes::new(), shared, mistakes };
    builder.add_own_rule(site);
    if site.redirects.len() + site.routes.len() > ROUTES_MAX {
        let message = format!("site with more than {ROUTES_MAX} routes and redirects");
        builder.mistake("", invalid(message, ""));
        return builder.plan;
    }
    for (index, redirect) in site.redirects.iter().enumerate() {
        builder.add_redirect(index, redirect);
    }
    for (index, route) in site.routes.iter().enumerate() {
        builder.add_route(index, route);
    }
    builder.add_error_pages(site);
    for (index, redirect) in site.redirects.iter().enumerate() {
        builder.check_loop(index, redirect);
    }
    builder.check_root();
    builder.plan
}

struct Builder<'a, 'f> {
    /// The site's key.
    key: String,
    plan: SitePlan,
    /// Keys of the rules, in their order.
    keys: Vec<String>,
    /// The site's header changes.
    changes: Changes,
    shared: &'a mut Shared<'f>,
    mistakes: &'a mut Mistakes,
}

impl Builder<'_, '_> {
    /// Adds a mistake at a key within the site's.
    fn mistake(&mut self, key: &str, invalid: Invalid) {
        self.mistakes.add(format!("{}{key}", self.key), invalid);
    }

    fn warning(&mut self, key: String, message: &str, help: &str) {
        self.shared.warnings.add(key, invalid(message, help));
    }

    /// Adds the rule of requests without a route.
    fn add_own_rule(&mut self, site: &Site) {
        self.changes = self.check_headers(&site.headers, "");
        let header_rules = self.shared.header_rules(&self.changes);
        let action = self.action(&site.content, "");
        self.check_required_headers(Some(&site.content), &self.changes.clone(), "");
        self.plan.rules.push(Rule { action, header_rules, pages: 0 });
        self.plan.pages.push(Vec::new());
    }

    /// Returns the valid header changes.
    fn check_headers(&mut self, headers: &Headers, key: &str) -> Changes {
        let (changes, wrong) = headers::changes(headers);
        for (header, invalid) in wrong {
            self.mistake(&format!("{key}.headers.{header}"), invalid);
        }
        changes
    }

    fn action(&mut self, content: &Content, key: &str) -> Action {
        match content {
            Content::Nothing => Action::Nothing,
            Content::Files(folder) if *folder < self.shared.folders.len() => Action::Files(number(*folder)),
            Content::Files(folder) => {
                self.mistake(key, invalid(format!("there is no folder {folder}"), ""));
                Action::Nothing
            }
            Content::Fixed(fixed) => {
                if let Err((name, invalid)) = fixed::check(fixed) {
                    self.mistake(&format!("{key}.respond.{name}"), invalid);
                }
                Action::Fixed(self.shared.fixed(fixed))
            }
        }
    }

    fn check_required_headers(&mut self, content: Option<&Content>, changes: &Changes, key: &str) {
        if let Some(Content::Fixed(fixed)) = content
            && let Err(invalid) = fixed::check_headers(fixed, changes)
        {
            self.mistake(&format!("{key}.respond.status"), invalid);
        }
    }

    fn add_redirect(&mut self, index: usize, redirect: &RedirectOptions) {
        let key = format!(".redirect[{index}]");
        let pattern = match Pattern::parse(&redirect.from) {
            Ok(pattern) => pattern,
            Err(invalid) => return self.mistake(&format!("{key}.from"), invalid),
        };
        let before_star = match &pattern {
            Pattern::Beneath(name) => Some(segments(name)),
            Pattern::Exact(_) => None,
        };
        let target = match Redirect::new(redirect.status, &redirect.to, before_star) {
            Ok(target) => target,
            Err(invalid) => return self.mistake(&format!("{key}.to"), invalid),
        };
        let rule = number(self.plan.rules.len());
        if let Some(known) = self.plan.routes.insert(&pattern, rule) {
            return self.duplicate_path(&format!("{key}.from"), known);
        }
        let action = Action::Redirect(number(self.plan.redirects.len()));
        self.plan.redirects.push(target);
        self.keys.push(format!("{}{key}", self.key));
        self.plan.rules.push(Rule { action, ..self.plan.rules[OWN as usize] });
    }

    fn add_route(&mut self, index: usize, route: &Route) {
        let key = format!(".route[{index}]");
        let own = self.plan.rules[OWN as usize];
        let action = match &route.content {
            Some(content) => self.action(content, &key),
            None => own.action,
        };
        let header_rules = if route.headers == Headers::default() {
            self.check_required_headers(route.content.as_ref(), &self.changes.clone(), &key);
            own.header_rules
        } else {
            let changes = self.check_headers(&route.headers, &key);
            let changes = headers::merge(&self.changes, changes);
            self.check_required_headers(route.content.as_ref(), &changes, &key);
            self.shared.header_rules(&changes)
        };
        let rule = number(self.plan.rules.len());
        // Its error pages are added when all routes are known.
        self.plan.rules.push(Rule { action, header_rules, pages: 0 });
        self.keys.push(format!("{}{key}", self.key));
        let known = match Pattern::parse(&route.path) {
            Ok(pattern) => self.plan.routes.insert(&pattern, rule),
            Err(invalid) => return self.mistake(&format!("{key}.path"), invalid),
        };
        // A redirect takes precedence over a route of the same path.
        if let Some(first) = known.filter(|&known| self.plan.redirect_of(known).is_none()) {
            self.duplicate_path(&format!("{key}.path"), first);
        }
    }

    fn duplicate_path(&mut self, key: &str, known: u32) {
        let help = format!("{} has it already", self.keys[known as usize]);
        self.mistake(key, invalid("duplicate path", help));
    }

    /// Adds the error pages of the site and its routes.
    fn add_error_pages(&mut self, site: &Site) {
        self.plan.pages[0] = self.find_pages(&site.error_pages, "");
        let first = self.plan.first_route();
        let with_pages = site.routes.iter().enumerate().filter(|(_, route)| !route.error_pages.is_empty());
        for (index, route) in with_pages {
            let own = self.find_pages(&route.error_pages, &format!(".route[{index}]"));
            let pages = error_pages::merge(&self.plan.pages[0], own);
            self.plan.rules[first + index].pages = number(self.plan.pages.len());
            self.plan.pages.push(pages);
        }
    }

    fn find_pages(&mut self, pages: &[ErrorPage], key: &str) -> Vec<Page> {
        let (found, wrong) = error_pages::find(pages, &self.plan);
        for (status, invalid) in wrong {
            self.mistake(&format!("{key}.error_pages.{status}"), invalid);
        }
        let folders = self.shared.folders;
        for page in found.iter().filter(|page| !folders[page.folder as usize].has_file(&page.path)) {
            let key = format!("{}{key}.error_pages.{}", self.key, page.status);
            self.warning(key, "no such file", "without it, the built-in error page is sent");
        }
        found
    }

    /// Warns about a folder without an index that serves `/`.
    fn check_root(&mut self) {
        let rule = self.plan.routes.find(b"") as usize;
        let Action::Files(folder) = self.plan.rules[rule].action else { return };
        if let Some(why) = self.shared.folders[folder as usize].no_index() {
            self.warning(self.keys[rule].clone(), &why, "");
        }
    }

    /// Reports a redirect whose target redirects back to it: an error by the options, a warning by files.
    fn check_loop(&mut self, index: usize, redirect: &RedirectOptions) {
        let folders = self.shared.folders;
        let at = |folder: u32| &folders[folder as usize];
        let key = format!(".redirect[{index}].to");
        if returns(&self.plan, &redirect.from, &|folder, path| at(folder).leads_to(path)) {
            self.mistake(&key, invalid("redirect loop", "the target leads back to `from`"));
        } else if returns(&self.plan, &redirect.from, &|folder, path| at(folder).leads_to_now(path)) {
            let help = "files in the folder redirect the target back to `from`";
            self.warning(format!("{}{key}", self.key), "redirect loop", help);
        }
    }
}

impl SitePlan {
    /// Returns the redirect of a rule.
    pub(crate) fn redirect_of(&self, rule: u32) -> Option<u32> {
        match self.rules[rule as usize].action {
            Action::Redirect(redirect) => Some(redirect),
            _ => None,
        }
    }

    /// Returns the rule of the first route, after the site's own and those of its redirects.
    fn first_route(&self) -> usize {
        1 + self.redirects.len()
    }

    /// Returns the rule of a request's path, if the path is valid.
    pub(crate) fn rule_of(&self, path: &str) -> Option<u32> {
        let mut name = Vec::new();
        resolve(path, &mut name).ok()?;
        Some(self.routes.find(&name))
    }
}
