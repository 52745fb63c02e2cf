//! One site of the plan: its redirects and routes, each with its headers and error pages.

use std::collections::HashMap;

use shearwater::Overlay;
use shearwater_files::Folder;
use shearwater_files::resolve::resolve;

use crate::error_pages;
use crate::fixed;
use crate::follow::returns;
use crate::headers::{self, Changes};
use crate::limits::ROUTES_MAX;
use crate::mistakes::{Mistake, Mistakes, Place};
use crate::options::{Content, ErrorPage, Fixed, Headers, Redirect as RedirectOptions, Route, Site};
use crate::pattern::{Pattern, segments};
use crate::plan::{Action, Rule, SitePlan, number, site_name};
use crate::redirect::Redirect;
use crate::routes::Routes;

/// What the sites have in common.
pub(crate) struct Shared<'f> {
    pub(crate) folders: &'f [Folder],
    pub(crate) overlays: Vec<Overlay>,
    pub(crate) fixed: Vec<Fixed>,
    /// What can be served, but is hardly meant.
    pub(crate) doubts: Mistakes,
    /// Those of the overlays, and of the fixed answers, that are there already: most sites have the same.
    known_changes: HashMap<Changes, u32>,
    known_fixed: HashMap<Fixed, u32>,
}

impl<'f> Shared<'f> {
    pub(crate) fn new(folders: &'f [Folder]) -> Self {
        Self {
            folders,
            overlays: Vec::new(),
            fixed: Vec::new(),
            doubts: Mistakes::default(),
            known_changes: HashMap::new(),
            known_fixed: HashMap::new(),
        }
    }

    fn overlay(&mut self, changes: &Changes) -> Option<u32> {
        if let Some(&known) = self.known_changes.get(changes) {
            return Some(known);
        }
        let overlay = headers::overlay(changes)?;
        let new = number(self.overlays.len());
        self.overlays.push(overlay);
        self.known_changes.insert(changes.clone(), new);
        Some(new)
    }

    fn fixed(&mut self, answer: &Fixed) -> u32 {
        if let Some(&known) = self.known_fixed.get(answer) {
            return known;
        }
        let new = number(self.fixed.len());
        self.fixed.push(answer.clone());
        self.known_fixed.insert(answer.clone(), new);
        new
    }
}

/// The rule of requests that no route has.
const OWN: u32 = 0;

/// Builds a site's tables.
pub(crate) fn build<'a>(
    at: usize,
    site: &'a Site,
    shared: &'a mut Shared<'_>,
    mistakes: &'a mut Mistakes,
) -> SitePlan {
    let mut builder = Builder {
        at,
        name: site_name(at, site),
        plan: SitePlan {
            routes: Routes::new(OWN),
            rules: Vec::new(),
            redirects: Vec::new(),
            pages: Vec::new(),
        },
        paths: vec!["/*"],
        changes: Changes::new(),
        shared,
        mistakes,
    };
    builder.own(site);
    if site.redirects.len() + site.routes.len() > ROUTES_MAX {
        let why = format!("it has more than {ROUTES_MAX} routes and redirects");
        builder.mistake(Place::Site(at), "", why);
        return builder.plan;
    }
    let redirects = site.redirects.iter().enumerate();
    redirects.for_each(|(index, redirect)| builder.redirect(index, redirect));
    let routes = site.routes.iter().enumerate();
    routes.for_each(|(index, route)| builder.route(index, route));
    builder.pages(site);
    let redirects = site.redirects.iter().enumerate();
    redirects.for_each(|(index, redirect)| builder.check_return(index, redirect));
    builder.check_root(site);
    builder.plan
}

/// A site on its way.
struct Builder<'a, 'f> {
    at: usize,
    name: String,
    plan: SitePlan,
    /// The paths of the rules, in their order.
    paths: Vec<&'a str>,
    /// The site's own field changes.
    changes: Changes,
    shared: &'a mut Shared<'f>,
    mistakes: &'a mut Mistakes,
}

impl<'a> Builder<'a, '_> {
    fn mistake(&mut self, place: Place, what: &str, why: String) {
        let comma = if what.is_empty() { "" } else { ", " };
        self.mistakes.add(Mistake { place, name: format!("{}{comma}{what}", self.name), why });
    }

    fn doubt(&mut self, place: Place, what: &str, why: &str) {
        let comma = if what.is_empty() { "" } else { ", " };
        let name = format!("{}{comma}{what}", self.name);
        self.shared.doubts.add(Mistake { place, name, why: why.to_owned() });
    }

    /// The rule of what no route says otherwise.
    fn own(&mut self, site: &Site) {
        self.changes = self.changes(&site.headers, None, "");
        let overlay = self.shared.overlay(&self.changes);
        let action = self.action(&site.content, Place::Site(self.at), "");
        self.check_fields(Some(&site.content), &self.changes.clone(), &Place::Site(self.at), "");
        self.plan.rules.push(Rule { action, overlay, pages: 0 });
        self.plan.pages.push(Vec::new());
    }

    /// Field changes, without those that are wrong.
    fn changes(&mut self, headers: &Headers, route: Option<usize>, what: &str) -> Changes {
        let (changes, wrong) = headers::changes(headers);
        for (name, why) in wrong {
            let comma = if what.is_empty() { "" } else { ", " };
            let shown = format!("{what}{comma}header {name}");
            self.mistake(Place::Header { site: self.at, route, name }, &shown, why);
        }
        changes
    }

    /// What answers.
    fn action(&mut self, content: &Content, place: Place, what: &str) -> Action {
        match content {
            Content::Nothing => Action::Nothing,
            Content::Files(folder) if *folder < self.shared.folders.len() => Action::Files(number(*folder)),
            Content::Files(folder) => {
                self.mistake(place, what, format!("there is no folder {folder}"));
                Action::Nothing
            }
            Content::Fixed(answer) => {
                if let Some(why) = fixed::why_not(answer) {
                    self.mistake(place, what, why);
                }
                Action::Fixed(self.shared.fixed(answer))
            }
        }
    }

    /// A fixed answer may need fields.
    fn check_fields(&mut self, content: Option<&Content>, changes: &Changes, place: &Place, what: &str) {
        let Some(Content::Fixed(answer)) = content else { return };
        if let Some(why) = fixed::why_not_with(answer, changes) {
            self.mistake(place.clone(), what, why);
        }
    }

    fn redirect(&mut self, index: usize, redirect: &'a RedirectOptions) {
        let place = Place::Redirect { site: self.at, redirect: index };
        let what = format!("redirect of {}", redirect.from);
        let parsed = Pattern::parse(&redirect.from).and_then(|pattern| {
            let beneath = match &pattern {
                Pattern::Beneath(name) => Some(segments(name)),
                Pattern::Exact(_) => None,
            };
            Ok((pattern, Redirect::new(redirect.status, &redirect.to, beneath)?))
        });
        let (pattern, target) = match parsed {
            Ok(parsed) => parsed,
            Err(why) => return self.mistake(place, &what, why),
        };
        let rule = number(self.plan.rules.len());
        if let Some(known) = self.plan.routes.insert(&pattern, rule) {
            let why = format!("redirect of {} has the same paths", self.paths[known as usize]);
            return self.mistake(place, &what, why);
        }
        let action = Action::Redirect(number(self.plan.redirects.len()));
        self.plan.redirects.push(target);
        self.paths.push(&redirect.from);
        self.plan.rules.push(Rule { action, ..self.plan.rules[OWN as usize] });
    }

    fn route(&mut self, index: usize, route: &'a Route) {
        let place = Place::Route { site: self.at, route: index };
        let what = format!("route {}", route.path);
        let own = self.plan.rules[OWN as usize];
        let action = match &route.content {
            Some(content) => self.action(content, place.clone(), &what),
            None => own.action,
        };
        let overlay = if route.headers == Headers::default() {
            self.check_fields(route.content.as_ref(), &self.changes.clone(), &place, &what);
            own.overlay
        } else {
            let changes = self.changes(&route.headers, Some(index), &what);
            let changes = headers::merge(&self.changes, changes);
            self.check_fields(route.content.as_ref(), &changes, &place, &what);
            self.shared.overlay(&changes)
        };
        let rule = number(self.plan.rules.len());
        // Its error pages are known when all routes are.
        self.plan.rules.push(Rule { action, overlay, pages: 0 });
        self.paths.push(&route.path);
        let known = match Pattern::parse(&route.path) {
            Ok(pattern) => self.plan.routes.insert(&pattern, rule),
            Err(why) => return self.mistake(place, &what, why),
        };
        // A redirect of the same paths goes before it.
        if let Some(first) = known.filter(|&known| self.plan.redirect_of(known).is_none()) {
            let why = format!("route {} has the same paths", self.paths[first as usize]);
            self.mistake(place, &what, why);
        }
    }

    /// The error pages of the site and its routes: each lies where the site's own files are.
    fn pages(&mut self, site: &Site) {
        self.plan.pages[0] = self.pages_of(&site.error_pages, None, "");
        let first = self.plan.first_route();
        for (index, route) in
            site.routes.iter().enumerate().filter(|(_, route)| !route.error_pages.is_empty())
        {
            let own = self.pages_of(&route.error_pages, Some(index), &format!("route {}", route.path));
            let pages = error_pages::merge(&self.plan.pages[0], own);
            self.plan.rules[first + index].pages = number(self.plan.pages.len());
            self.plan.pages.push(pages);
        }
    }

    fn pages_of(&mut self, pages: &[ErrorPage], route: Option<usize>, what: &str) -> Vec<crate::plan::Page> {
        let (found, wrong) = error_pages::find(pages, &self.plan);
        for (status, why) in wrong {
            let comma = if what.is_empty() { "" } else { ", " };
            let shown = format!("{what}{comma}error page of {status}");
            self.mistake(Place::ErrorPage { site: self.at, route, status }, &shown, why);
        }
        let folders = self.shared.folders;
        for page in found.iter().filter(|page| !folders[page.folder as usize].has_file(&page.path)) {
            let comma = if what.is_empty() { "" } else { ", " };
            let place = Place::ErrorPage { site: self.at, route, status: page.status };
            let why = "there is no such file now: while there is none, the error is sent without it";
            self.doubt(place, &format!("{what}{comma}error page of {}", page.status), why);
        }
        found
    }

    /// A folder that answers `/` and has no index may be meant so, or forgotten.
    fn check_root(&mut self, site: &Site) {
        let rule = self.plan.routes.find(b"") as usize;
        let Action::Files(folder) = self.plan.rules[rule].action else { return };
        let Some(why) = self.shared.folders[folder as usize].no_index() else { return };
        let route = rule.checked_sub(self.plan.first_route());
        match route.and_then(|index| Some((index, site.routes.get(index)?))) {
            Some((route, of)) => {
                let place = Place::Route { site: self.at, route };
                self.doubt(place, &format!("route {}", of.path), &why);
            }
            None => self.doubt(Place::Site(self.at), "", &why),
        }
    }

    /// A redirect whose target is redirected back to it would be followed for ever.
    fn check_return(&mut self, index: usize, redirect: &RedirectOptions) {
        let folders = self.shared.folders;
        let at = |folder: u32| &folders[folder as usize];
        let place = Place::Redirect { site: self.at, redirect: index };
        let what = format!("redirect of {}", redirect.from);
        if returns(&self.plan, &redirect.from, &|folder, path| at(folder).leads_to(path)) {
            self.mistake(place, &what, format!("{} leads back to it", redirect.to));
        } else if returns(&self.plan, &redirect.from, &|folder, path| at(folder).leads_to_now(path)) {
            self.doubt(place, &what, "by what is in the folder now, its target leads back to it");
        }
    }
}

impl SitePlan {
    /// The redirect that a rule is, if it is one.
    pub(crate) fn redirect_of(&self, rule: u32) -> Option<u32> {
        match self.rules[rule as usize].action {
            Action::Redirect(redirect) => Some(redirect),
            _ => None,
        }
    }

    /// The rule of the first route: before it stand the site's own and those of its redirects.
    fn first_route(&self) -> usize {
        1 + self.redirects.len()
    }

    /// The rule of a path as a client sends it, if it names anything.
    pub(crate) fn rule_of(&self, path: &str) -> Option<u32> {
        let mut name = Vec::new();
        resolve(path, &mut name).ok()?;
        Some(self.routes.find(&name))
    }
}
