//! Sites as workers share them: options, checked once and compiled into immutable tables.

use std::fmt;
use std::sync::Arc;

use shearwater::HeaderRules;
use shearwater_files::{CacheLimits, Folder};

use crate::builder::{self, Shared};
use crate::hosts::{Hosts, parse_host};
use crate::limits::SITES_MAX;
use crate::mistakes::{Mistakes, invalid};
use crate::options::{Fixed, Options, Site};
use crate::redirect::Redirect;
use crate::route_cache::RouteMatch;
use crate::routes::Routes;
use crate::service::SiteService;

/// Checked sites, shared by the workers.
#[derive(Clone)]
pub struct Sites(Arc<Plan>);

impl Sites {
    /// Checks sites and builds their tables.
    ///
    /// # Errors
    /// Every mistake: invalid hosts, paths, targets, headers and values, duplicates, redirect loops, exceeded limits.
    pub fn new(options: Options) -> Result<Self, Mistakes> {
        Plan::new(options).map(|plan| Self(Arc::new(plan)))
    }

    /// Returns probable mistakes, by what is in the folders now: missing error pages, redirect loops by files, missing indexes.
    #[must_use]
    pub fn warnings(&self) -> &Mistakes {
        &self.0.warnings
    }

    /// Returns a service for one worker, with a cache of its own.
    #[must_use]
    pub fn service(&self) -> SiteService {
        SiteService::new(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sites").field("sites", &self.0.sites.len()).finish_non_exhaustive()
    }
}

/// All sites of a server. Numbers are indices in its lists.
pub(crate) struct Plan {
    pub(crate) folders: Vec<Folder>,
    pub(crate) cache: CacheLimits,
    pub(crate) hosts: Hosts,
    pub(crate) sites: Vec<SitePlan>,
    pub(crate) header_rules: Vec<HeaderRules>,
    pub(crate) fixed: Vec<Fixed>,
    /// The match of every request, if there is only one site and it has files and no routes.
    pub(crate) only: Option<RouteMatch>,
    warnings: Mistakes,
}

/// One site.
pub(crate) struct SitePlan {
    pub(crate) routes: Routes,
    /// Rules of the routes.
    pub(crate) rules: Vec<Rule>,
    pub(crate) redirects: Vec<Redirect>,
    /// Sets of error pages.
    pub(crate) pages: Vec<Vec<Page>>,
}

/// How requests of a route are handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) action: Action,
    pub(crate) header_rules: Option<u32>,
    /// A set of error pages.
    pub(crate) pages: u32,
}

/// Source of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Files(u32),
    Fixed(u32),
    Redirect(u32),
}

/// An error page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) folder: u32,
    pub(crate) path: Box<str>,
}

impl Plan {
    fn new(options: Options) -> Result<Self, Mistakes> {
        let mut mistakes = Mistakes::default();
        if !(1..=SITES_MAX).contains(&options.sites.len()) {
            mistakes.add("site", invalid(format!("expected 1 to {SITES_MAX} sites"), ""));
            return Err(mistakes);
        }
        let hosts = hosts(&options.sites, &mut mistakes);
        let mut shared = Shared::new(&options.folders);
        let each = options.sites.iter().enumerate();
        let sites: Vec<SitePlan> =
            each.map(|(at, site)| builder::build(at, site, &mut shared, &mut mistakes)).collect();
        if !mistakes.list.is_empty() {
            return Err(mistakes);
        }
        let only = match sites.as_slice() {
            [SitePlan { rules, .. }] => match rules.as_slice() {
                [rule @ Rule { action: Action::Files(_), .. }] => Some(RouteMatch { site: 0, rule: *rule }),
                _ => None,
            },
            _ => None,
        };
        let Shared { header_rules, fixed, warnings, .. } = shared;
        let Options { folders, cache, .. } = options;
        Ok(Self { folders, cache, hosts, sites, header_rules, fixed, only, warnings })
    }
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

/// Converts an index of a list with a limited length.
pub(crate) fn number(at: usize) -> u32 {
    u32::try_from(at).expect("the lists of sites are limited")
}
