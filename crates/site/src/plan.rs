//! Sites as they are served: options, checked once and turned into tables that the workers share and never change.

use shearwater::Overlay;
use shearwater_files::{CacheLimits, Folder};

use crate::host;
use crate::hosts::Hosts;
use crate::limits::SITES_MAX;
use crate::mistakes::{Mistake, Mistakes, Place};
use crate::options::{Fixed, Options, Site};
use crate::redirect::Redirect;
use crate::routes::Routes;
use crate::site_plan::{self, Shared};

/// All sites of a server.
pub(crate) struct Plan {
    pub(crate) folders: Vec<Folder>,
    pub(crate) cache: CacheLimits,
    pub(crate) hosts: Hosts,
    pub(crate) sites: Vec<SitePlan>,
    /// Field changes, by number.
    pub(crate) overlays: Vec<Overlay>,
    /// Fixed answers, by number.
    pub(crate) fixed: Vec<Fixed>,
    /// What can be served, but is hardly meant.
    pub(crate) doubts: Mistakes,
}

/// One site.
pub(crate) struct SitePlan {
    pub(crate) routes: Routes,
    /// What the routes lead to, by number.
    pub(crate) rules: Vec<Rule>,
    pub(crate) redirects: Vec<Redirect>,
    /// Sets of error pages, by number.
    pub(crate) pages: Vec<Vec<Page>>,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) action: Action,
    pub(crate) overlay: Option<u32>,
    /// A set of error pages.
    pub(crate) pages: u32,
}

/// How a request is answered, each by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Files(u32),
    Fixed(u32),
    Redirect(u32),
}

/// A file that is sent with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) folder: u32,
    pub(crate) path: Box<str>,
}

impl Plan {
    /// Checks all of it.
    ///
    /// # Errors
    /// Every mistake that was found.
    pub(crate) fn new(options: Options) -> Result<Self, Mistakes> {
        let mut mistakes = Mistakes::default();
        if let Some(why) = why_not_so_many(options.sites.len()) {
            mistakes.add(Mistake { place: Place::Sites, name: "sites".to_owned(), why });
            return Err(mistakes);
        }
        let hosts = hosts(&options.sites, &mut mistakes);
        let mut shared = Shared::new(&options.folders);
        let each = options.sites.iter().enumerate();
        let sites = each.map(|(at, site)| site_plan::build(at, site, &mut shared, &mut mistakes)).collect();
        if !mistakes.told.is_empty() {
            return Err(mistakes);
        }
        let Shared { overlays, fixed, doubts, .. } = shared;
        let Options { folders, cache, .. } = options;
        Ok(Self { folders, cache, hosts, sites, overlays, fixed, doubts })
    }
}

fn why_not_so_many(sites: usize) -> Option<String> {
    match sites {
        0 => Some("there is none: nothing would be served".to_owned()),
        1..=SITES_MAX => None,
        _ => Some(format!("there are {sites}, and may be {SITES_MAX}")),
    }
}

/// How people know a site.
pub(crate) fn site_name(at: usize, site: &Site) -> String {
    match site.hosts.first() {
        Some(host) => format!("site {} ({host})", at + 1),
        None => format!("site {}", at + 1),
    }
}

/// The table of hosts. The first site without hosts is the default one, else the first of all.
fn hosts(sites: &[Site], mistakes: &mut Mistakes) -> Hosts {
    let mut hosts = Hosts::new();
    let mut default = None;
    for (at, site) in sites.iter().enumerate() {
        if site.hosts.is_empty() {
            if let Some(first) = default {
                let why = format!(
                    "it has no hosts, and neither has {}: one alone can be for all others",
                    site_name(first, &sites[first])
                );
                mistakes.add(Mistake { place: Place::Site(at), name: site_name(at, site), why });
            }
            default.get_or_insert(at);
        }
        for (index, text) in site.hosts.iter().enumerate() {
            let why = match host::pattern(text) {
                Ok(pattern) => hosts.insert(&pattern, number(at)).map(|known| {
                    let known = known as usize;
                    let whose =
                        if known == at { "this site".to_owned() } else { site_name(known, &sites[known]) };
                    format!("{whose} has it already")
                }),
                Err(why) => Some(why),
            };
            if let Some(why) = why {
                let name = format!("site {}, host {text:?}", at + 1);
                mistakes.add(Mistake { place: Place::Host { site: at, host: index }, name, why });
            }
        }
    }
    hosts.set_default(number(default.unwrap_or(0)));
    hosts
}

/// A place in a list whose length is bounded.
pub(crate) fn number(at: usize) -> u32 {
    u32::try_from(at).expect("the lists of sites are bounded")
}
