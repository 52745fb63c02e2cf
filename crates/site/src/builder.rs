//! Builds the tables of sites, and checks their options.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::OnceLock;

use shearwater_files::{CacheStatistics, Folder};

use crate::error_pages::{find_pages, merge_pages};
use crate::guards::{Guards, PlannedGuards, attachment, restricting};
use crate::headers::{self, Changes};
use crate::hosts::{HostPattern, Hosts, parse_host};
use crate::https::{Challenges, ClearRules, HSTS, hsts_value, is_hsts, without_hsts};
use crate::limits::{ROUTES_MAX, SITES_MAX};
use crate::options::{
    Content, ErrorPage, Fixed, Headers, InvalidValue, Mistakes, Options, Redirect, Route, Site, invalid,
};
use crate::plan::{PlannedPage, RouteAction, RouteMatch, RouteRule, SitePlan, SitesPlan, number};
use crate::redirect::RedirectTarget;
use crate::responses;
use crate::routes::{PathPattern, RouteTable, segments};

/// Checks sites and builds their tables.
///
/// # Errors
/// Every mistake.
pub(crate) fn build(options: Options) -> Result<SitesPlan, Mistakes> {
    let mut mistakes = Mistakes::default();
    if !(1..=SITES_MAX).contains(&options.sites.len()) {
        mistakes.add("site", invalid(format!("expected 1 to {SITES_MAX} sites"), ""));
        return Err(mistakes);
    }
    let hosts = hosts(&options.sites, &mut mistakes);
    let (headers, fixed) = (DistinctValues::new(), DistinctValues::new());
    let mut shared =
        SharedTables { folders: &options.folders, headers, fixed, warnings: Mistakes::default() };
    let each = options.sites.iter().enumerate();
    let sites: Vec<SitePlan> =
        each.map(|(at, site)| build_site(at, site, &mut shared, &mut mistakes)).collect();
    if !mistakes.list.is_empty() {
        return Err(mistakes);
    }
    let only = match sites.iter().map(|site| &site.rules[..]).collect::<Vec<_>>()[..] {
        [[rule @ RouteRule { action: RouteAction::Files(_), .. }]] => {
            Some(RouteMatch { site: 0, tag: 0, rule: *rule })
        }
        _ => None,
    };
    let SharedTables { mut headers, fixed, warnings, .. } = shared;
    let rules_in_clear = in_clear(&mut headers);
    let has_guards = sites.iter().any(|site| !site.guards.is_empty());
    let has_clear_rules = sites.iter().any(|site| site.clear.is_some());
    let (header_rules, fixed) = (headers.list.iter().map(headers::header_rules).collect(), fixed.list);
    let Options { folders, cache, .. } = options;
    let statistics = CacheStatistics::default();
    Ok(SitesPlan {
        folders,
        cache,
        statistics,
        hosts,
        sites,
        header_rules,
        rules_in_clear,
        has_clear_rules,
        has_guards,
        has_checks: has_guards || has_clear_rules,
        https_port: OnceLock::new(),
        challenges: Challenges::default(),
        fixed,
        only,
        warnings,
    })
}

/// Returns the numbers of all changes without HSTS.
fn in_clear(headers: &mut DistinctValues<Changes>) -> Vec<Option<u32>> {
    let all = headers.list.clone();
    let without = all.iter().map(without_hsts);
    without.map(|changes| (!changes.is_empty()).then(|| headers.number_of(&changes))).collect()
}

/// Builds the table of hosts. The default site is the one without hosts, or the first.
fn hosts(sites: &[Site], mistakes: &mut Mistakes) -> Hosts {
    let mut hosts = Hosts::new();
    let mut default = None;
    for (at, site) in sites.iter().enumerate() {
        if site.hosts.is_empty() {
            if let Some(first) = default {
                let help = format!("add `hosts`: site[{first}] is the default already");
                mistakes.add(format!("site[{at}]"), invalid("second site without `hosts`", help));
            }
            default.get_or_insert(at);
        }
        for (index, text) in site.hosts.iter().enumerate() {
            let added = parse_host(text).and_then(|pattern| match hosts.insert(&pattern, number(at)) {
                None => Ok(()),
                Some(known) => Err(invalid("duplicate host name", format!("site[{known}] has it already"))),
            });
            if let Err(invalid) = added {
                mistakes.add(format!("site[{at}].hosts[{index}]"), invalid);
            }
        }
    }
    hosts.set_default(number(default.unwrap_or(0)));
    hosts
}

/// Parts that sites share.
struct SharedTables<'f> {
    folders: &'f [Folder],
    headers: DistinctValues<Changes>,
    fixed: DistinctValues<Fixed>,
    warnings: Mistakes,
}

/// Values by number, each once: most sites have the same header changes and fixed responses.
struct DistinctValues<T> {
    list: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> DistinctValues<T> {
    fn new() -> Self {
        Self { list: Vec::new(), numbers: HashMap::new() }
    }

    /// Returns the number of a value, a new one if it isn't there.
    fn number_of(&mut self, value: &T) -> u32 {
        if let Some(&known) = self.numbers.get(value) {
            return known;
        }
        let new = number(self.list.len());
        self.list.push(value.clone());
        self.numbers.insert(value.clone(), new);
        new
    }
}

impl SharedTables<'_> {
    /// Returns the number of changes, unless there are none.
    fn header_rules(&mut self, changes: &Changes) -> Option<u32> {
        (!changes.is_empty()).then(|| self.headers.number_of(changes))
    }
}

/// Name of a site without hosts. No host is written like this.
const DEFAULT_NAME: &str = "(default)";

/// The rule of requests without a route.
const OWN: u32 = 0;

/// Builds the tables of a site.
fn build_site<'a>(
    at: usize,
    site: &'a Site,
    shared: &'a mut SharedTables<'_>,
    mistakes: &'a mut Mistakes,
) -> SitePlan {
    let plan = SitePlan {
        name: site.hosts.first().map_or(DEFAULT_NAME, String::as_str).into(),
        tag: 0,
        clear: None,
        routes: RouteTable::new(OWN),
        rules: Vec::new(),
        redirects: Vec::new(),
        guards: Vec::new(),
        pages: Vec::new(),
    };
    let key = format!("site[{at}]");
    let keys = vec![key.clone()];
    let mut builder = Builder { key, plan, keys, changes: Changes::new(), hsts: None, shared, mistakes };
    builder.add_clear_rules(site);
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
        builder.add_route(index, route, site);
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
    /// The value of HSTS.
    hsts: Option<String>,
    shared: &'a mut SharedTables<'f>,
    mistakes: &'a mut Mistakes,
}

impl Builder<'_, '_> {
    /// Adds a mistake at a key within the site's.
    fn mistake(&mut self, key: &str, invalid: InvalidValue) {
        self.mistakes.add(format!("{}{key}", self.key), invalid);
    }

    fn warning(&mut self, key: String, message: &str, help: &str) {
        self.shared.warnings.add(key, invalid(message, help));
    }

    /// Adds the rules of requests in clear.
    fn add_clear_rules(&mut self, site: &Site) {
        match site.hsts.as_ref().map(hsts_value).transpose() {
            Ok(value) => self.hsts = value,
            Err(invalid) => self.mistake(".hsts", invalid),
        }
        if !site.https_only && site.hsts.is_none() {
            return;
        }
        let exact = site.hosts.iter().find_map(|host| match parse_host(host) {
            Ok(HostPattern::Exact(name)) => Some(name.into()),
            _ => None,
        });
        self.plan.clear = Some(ClearRules {
            are_redirected: site.https_only,
            has_hsts: site.hsts.is_some(),
            host: exact,
            has_any_host: site.hosts.is_empty(),
        });
    }

    /// Returns the number of changes and HSTS, unless there are none.
    fn header_rules(&mut self, changes: &Changes) -> Option<u32> {
        match &self.hsts {
            None => self.shared.header_rules(changes),
            Some(value) => {
                let hsts = (HSTS.to_owned(), Some(value.clone()));
                self.shared.header_rules(&[&changes[..], &[hsts]].concat())
            }
        }
    }

    /// Adds the rule of requests without a route.
    fn add_own_rule(&mut self, site: &Site) {
        self.changes = self.check_headers(&site.headers, "");
        let changes = restricting(site.security_headers, self.changes.clone());
        let (header_rules, guards) = self.plan_guards("", &site.guards, &changes, "");
        let action = self.action(&site.content, "");
        self.check_required_headers(Some(&site.content), &self.changes.clone(), "");
        self.plan.rules.push(RouteRule { action, header_rules, pages: 0, guards });
        self.plan.pages.push(Vec::new());
    }

    /// Adds guards. `of` names the table that they were written in. Returns the numbers of the header rules and of the guards.
    fn plan_guards(&mut self, of: &str, guards: &Guards, changes: &Changes, key: &str) -> (Option<u32>, u32) {
        if guards.is_empty() {
            return (self.header_rules(changes), 0);
        }
        let planned =
            PlannedGuards::new(of.to_owned(), guards.clone(), changes, |all| self.header_rules(all));
        match planned {
            Ok((planned, header_rules)) => {
                self.plan.guards.push(planned);
                (header_rules, number(self.plan.guards.len()))
            }
            Err(invalid) => {
                self.mistake(&format!("{key}.cors"), invalid);
                (None, 0)
            }
        }
    }

    /// Returns the valid header changes.
    fn check_headers(&mut self, headers: &Headers, key: &str) -> Changes {
        let (changes, wrong) = headers::changes(headers);
        if self.hsts.is_some() && changes.iter().any(|(name, _)| is_hsts(name)) {
            let help = "remove one of them; `hsts` keeps the header out of responses in clear";
            self.mistake(
                &format!("{key}.headers"),
                invalid(format!("both `hsts` and the header {HSTS}"), help),
            );
        }
        for (header, invalid) in wrong {
            self.mistake(&format!("{key}.headers.{header}"), invalid);
        }
        changes
    }

    fn action(&mut self, content: &Content, key: &str) -> RouteAction {
        match content {
            Content::Nothing => RouteAction::Nothing,
            Content::Files(folder) if *folder < self.shared.folders.len() => {
                RouteAction::Files(number(*folder))
            }
            Content::Files(folder) => {
                self.mistake(key, invalid(format!("there is no folder {folder}"), ""));
                RouteAction::Nothing
            }
            Content::Fixed(fixed) => {
                if let Err((name, invalid)) = responses::check(fixed) {
                    self.mistake(&format!("{key}.respond.{name}"), invalid);
                }
                RouteAction::Fixed(self.shared.fixed.number_of(fixed))
            }
        }
    }

    fn check_required_headers(&mut self, content: Option<&Content>, changes: &Changes, key: &str) {
        if let Some(Content::Fixed(fixed)) = content
            && let Err(invalid) = responses::check_headers(fixed, changes)
        {
            self.mistake(&format!("{key}.respond.status"), invalid);
        }
    }

    fn add_redirect(&mut self, index: usize, redirect: &Redirect) {
        let key = format!(".redirect[{index}]");
        let pattern = match PathPattern::parse(&redirect.from) {
            Ok(pattern) => pattern,
            Err(invalid) => return self.mistake(&format!("{key}.from"), invalid),
        };
        let before_star = match &pattern {
            PathPattern::Beneath(name) => Some(segments(name)),
            PathPattern::Exact(_) => None,
        };
        let target = match RedirectTarget::new(redirect.status, &redirect.to, before_star) {
            Ok(target) => target,
            Err(invalid) => return self.mistake(&format!("{key}.to"), invalid),
        };
        let rule = number(self.plan.rules.len());
        if let Some(known) = self.plan.routes.insert(&pattern, rule) {
            return self.duplicate_path(&format!("{key}.from"), known);
        }
        let action = RouteAction::Redirect(number(self.plan.redirects.len()));
        self.plan.redirects.push(target);
        self.keys.push(format!("{}{key}", self.key));
        self.plan.rules.push(RouteRule { action, ..self.plan.rules[OWN as usize] });
    }

    fn add_route(&mut self, index: usize, route: &Route, site: &Site) {
        let key = format!(".route[{index}]");
        let own = self.plan.rules[OWN as usize];
        let action = match &route.content {
            Some(content) => self.action(content, &key),
            None => own.action,
        };
        let changes = self.check_headers(&route.headers, &key);
        let changes = headers::merge(&self.changes, changes);
        self.check_required_headers(route.content.as_ref(), &changes, &key);
        let disposition = route.download.as_ref().map(|download| attachment(download.name.as_deref()));
        let disposition = disposition.map(|value| ("Content-Disposition".to_owned(), Some(value)));
        let changes = headers::merge(&disposition.into_iter().collect(), changes);
        let changes = restricting(route.security_headers, changes);
        let inherits = route.guards.is_none() && route.security_headers == site.security_headers;
        let (header_rules, guards) =
            match inherits && changes == restricting(site.security_headers, self.changes.clone()) {
                true => (own.header_rules, own.guards),
                false => {
                    let of = if route.guards.is_some() { &*route.path } else { "" };
                    let guards = route.guards.as_ref().unwrap_or(&site.guards);
                    self.plan_guards(of, guards, &changes, &key)
                }
            };
        let rule = number(self.plan.rules.len());
        let pattern = PathPattern::parse(&route.path);
        let action = match &pattern {
            Ok(pattern) if route.strip_prefix => self.stripped(action, pattern, &key),
            _ => action,
        };
        // Its error pages are added when all routes are known.
        self.plan.rules.push(RouteRule { action, header_rules, pages: 0, guards });
        self.keys.push(format!("{}{key}", self.key));
        let known = match pattern {
            Ok(pattern) => self.plan.routes.insert(&pattern, rule),
            Err(invalid) => return self.mistake(&format!("{key}.path"), invalid),
        };
        // A redirect takes precedence over a route of the same path.
        if let Some(first) = known.filter(|&known| self.plan.redirect_of(known).is_none()) {
            self.duplicate_path(&format!("{key}.path"), first);
        }
    }

    /// Returns the action without the prefix of a route.
    fn stripped(&mut self, action: RouteAction, pattern: &PathPattern, key: &str) -> RouteAction {
        let PathPattern::Beneath(name) = pattern else {
            let help = "write the path as \"/uploads/*\", or remove it";
            self.mistake(&format!("{key}.strip_prefix"), invalid("path is not a prefix", help));
            return action;
        };
        match (action, u8::try_from(segments(name))) {
            (RouteAction::Files(folder), Ok(segments @ 1..)) => RouteAction::FilesBelow { folder, segments },
            _ => action,
        }
    }

    fn duplicate_path(&mut self, key: &str, known: u32) {
        let help = format!("{} has it already", self.keys[known as usize]);
        self.mistake(key, invalid("duplicate path", help));
    }

    /// Adds the error pages of the site and its routes.
    fn add_error_pages(&mut self, site: &Site) {
        self.plan.pages[0] = self.find_pages(&site.error_pages, "");
        // The rules of routes follow the site's own and those of its redirects.
        let first = 1 + self.plan.redirects.len();
        let with_pages = site.routes.iter().enumerate().filter(|(_, route)| !route.error_pages.is_empty());
        for (index, route) in with_pages {
            let own = self.find_pages(&route.error_pages, &format!(".route[{index}]"));
            let pages = merge_pages(&self.plan.pages[0], own);
            self.plan.rules[first + index].pages = number(self.plan.pages.len());
            self.plan.pages.push(pages);
        }
    }

    fn find_pages(&mut self, pages: &[ErrorPage], key: &str) -> Vec<PlannedPage> {
        let (found, wrong) = find_pages(pages, &self.plan);
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
        let RouteAction::Files(folder) = self.plan.rules[rule].action else { return };
        if let Some(why) = self.shared.folders[folder as usize].no_index() {
            self.warning(self.keys[rule].clone(), &why, "");
        }
    }

    /// Reports a redirect whose target redirects back to it: an error by the options, a warning by files.
    fn check_loop(&mut self, index: usize, redirect: &Redirect) {
        let folders = self.shared.folders;
        let at = |folder: u32| &folders[folder as usize];
        let key = format!(".redirect[{index}].to");
        if self.plan.returns(&redirect.from, &|folder, path| at(folder).leads_to(path)) {
            self.mistake(&key, invalid("redirect loop", "the target leads back to `from`"));
        } else if self.plan.returns(&redirect.from, &|folder, path| at(folder).leads_to_now(path)) {
            let help = "files in the folder redirect the target back to `from`";
            self.warning(format!("{}{key}", self.key), "redirect loop", help);
        }
    }
}
