//! Sites as workers share them: options, checked once and compiled into immutable tables.

use std::sync::OnceLock;

use shearwater::engine::HeaderRules;
use shearwater::engine::Request;
use shearwater_files::resolve::path::resolve;
use shearwater_files::{CacheLimits, CacheStatistics, Folder};

use crate::guards::PlannedGuards;
use crate::hosts::Hosts;
use crate::https::{Challenges, ClearRules, is_challenge};
use crate::limits::{REDIRECTS_FOLLOWED_MAX, SITES_MAX};
use crate::options::{Fixed, Mistakes};
use crate::redirect::RedirectTarget;
use crate::routes::RouteTable;

/// All sites of a server. Numbers are indices in its lists.
pub(crate) struct SitesPlan {
    pub(crate) folders: Vec<Folder>,
    pub(crate) cache: CacheLimits,
    pub(crate) statistics: CacheStatistics,
    pub(crate) hosts: Hosts,
    pub(crate) sites: Vec<SitePlan>,
    pub(crate) header_rules: Vec<HeaderRules>,
    /// For each of the header rules, the number of those without HSTS.
    pub(crate) rules_in_clear: Vec<Option<u32>>,
    /// A site has rules for requests in clear, or there are challenges.
    pub(crate) has_clear_rules: bool,
    /// A site has guards.
    pub(crate) has_guards: bool,
    /// One of the two.
    pub(crate) has_checks: bool,
    /// Port that requests in clear are redirected to.
    pub(crate) https_port: OnceLock<u16>,
    pub(crate) challenges: Challenges,
    pub(crate) fixed: Vec<Fixed>,
    /// The match of every request, if there is only one site and it has files and no routes.
    pub(crate) only: Option<RouteMatch>,
    pub(crate) warnings: Mistakes,
}

impl SitesPlan {
    /// Returns the guards of a match.
    pub(crate) fn guards(&self, found: &RouteMatch) -> Option<&PlannedGuards> {
        let number = (found.rule.guards as usize).checked_sub(1)?;
        Some(&self.sites[found.site as usize].guards[number])
    }

    /// Returns the header rules of a request: those of its origin, and in clear those without HSTS.
    pub(crate) fn header_rules(
        &self,
        found: &RouteMatch,
        request: &Request<'_>,
        is_clear: bool,
    ) -> Option<u32> {
        let of_origin = self.guards(found).and_then(|guards| guards.header_rules(request));
        let rules = of_origin.or(found.rule.header_rules)?;
        let clear = self.sites[found.site as usize].clear.as_ref();
        if is_clear && clear.is_some_and(|clear| clear.has_hsts) {
            self.rules_in_clear[rules as usize]
        } else {
            Some(rules)
        }
    }

    /// Returns the rules that redirect a request in clear to `https`, if any do.
    pub(crate) fn redirect_to_https(&self, found: &RouteMatch, request: &Request<'_>) -> Option<&ClearRules> {
        let rules = self.sites[found.site as usize].clear.as_ref().filter(|rules| rules.are_redirected)?;
        // The target of OPTIONS may be a star.
        (!is_challenge(request) && request.path() != "*").then_some(rules)
    }
}

/// One site.
pub(crate) struct SitePlan {
    /// Its first host, or `default`.
    pub(crate) name: Box<str>,
    /// Its number for listeners of finished exchanges.
    pub(crate) tag: u16,
    /// Rules for requests in clear; `None`: they are served as others.
    pub(crate) clear: Option<ClearRules>,
    pub(crate) routes: RouteTable,
    /// Rules of the routes.
    pub(crate) rules: Vec<RouteRule>,
    pub(crate) redirects: Vec<RedirectTarget>,
    /// Guards of routes. Redirects have those of the site.
    pub(crate) guards: Vec<PlannedGuards>,
    /// Sets of error pages.
    pub(crate) pages: Vec<Vec<PlannedPage>>,
}

/// How requests of a route are handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteRule {
    pub(crate) action: RouteAction,
    pub(crate) header_rules: Option<u32>,
    /// A set of error pages.
    pub(crate) pages: u32,
    /// Guards of the site, from 1; 0 without any.
    pub(crate) guards: u32,
}

/// Source of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteAction {
    Nothing,
    Files(u32),
    /// A folder whose names begin after so many segments of the path.
    FilesBelow {
        folder: u32,
        segments: u8,
    },
    Fixed(u32),
    Redirect(u32),
}

/// An error page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedPage {
    pub(crate) status: u16,
    pub(crate) folder: u32,
    pub(crate) path: Box<str>,
}

/// The site and rule of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteMatch {
    pub(crate) site: u16,
    /// The site's number for listeners.
    pub(crate) tag: u16,
    pub(crate) rule: RouteRule,
}

impl SitePlan {
    /// Returns the redirect of a rule.
    pub(crate) fn redirect_of(&self, rule: u32) -> Option<u32> {
        match self.rules[rule as usize].action {
            RouteAction::Redirect(redirect) => Some(redirect),
            _ => None,
        }
    }

    /// Returns whether the redirect of a path leads back to itself. `files` returns where a folder redirects a path.
    pub(crate) fn returns(&self, from: &str, files: &dyn Fn(u32, &str) -> Option<String>) -> bool {
        let mut path = match from.strip_suffix('*') {
            Some(start) => format!("{start}any"),
            None => from.to_owned(),
        };
        let Some(start) = self.rule_of(&path).filter(|&rule| self.redirect_of(rule).is_some()) else {
            return false;
        };
        let mut rule = start;
        for _ in 0..REDIRECTS_FOLLOWED_MAX {
            let next = match self.rules[rule as usize].action {
                RouteAction::Redirect(redirect) => {
                    let mut location = String::new();
                    self.redirects[redirect as usize].locate(&path, None, &mut location);
                    location.truncate(location.find(['?', '#']).unwrap_or(location.len()));
                    Some(location)
                }
                RouteAction::Files(folder) => files(folder, &path),
                RouteAction::FilesBelow { folder, segments } => {
                    let (prefix, rest) = path.split_at(prefix_len(&path, segments));
                    files(folder, rest).map(|next| format!("{prefix}{next}"))
                }
                RouteAction::Fixed(_) | RouteAction::Nothing => None,
            };
            let Some(next) = next else { return false };
            path = next;
            match self.rule_of(&path) {
                Some(next) if next == start => return true,
                Some(next) => rule = next,
                // Another host, or an invalid path.
                None => return false,
            }
        }
        false
    }

    /// Returns the rule of a request's path, if the path is valid.
    fn rule_of(&self, path: &str) -> Option<u32> {
        let mut name = Vec::new();
        resolve(path, &mut name).ok()?;
        Some(self.routes.find(&name))
    }
}

/// Returns the length of a path's first segments, with the slashes before each.
pub(crate) fn prefix_len(path: &str, segments: u8) -> usize {
    let path = path.as_bytes();
    let mut end = 0;
    for _ in 0..segments {
        end += path[end..].iter().take_while(|&&byte| byte == b'/').count();
        end += path[end..].iter().take_while(|&&byte| byte != b'/').count();
    }
    end
}

const _: () = assert!(SITES_MAX <= u16::MAX as usize + 1, "a match has 16 bits for its site");

/// Converts an index of a list with a limited length.
pub(crate) fn number(at: usize) -> u32 {
    u32::try_from(at).expect("the lists of sites are limited")
}

#[cfg(test)]
mod tests {
    use super::{RouteMatch, prefix_len};

    #[test]
    fn finds_the_end_of_the_first_segments() {
        for (path, segments, prefix) in [
            ("/a/b", 0, ""),
            ("/a/b", 1, "/a"),
            ("/a", 1, "/a"),
            ("//%61//b/c", 1, "//%61"),
            ("//%61//b/c", 2, "//%61//b"),
            ("/a/", 1, "/a"),
            ("/a", 2, "/a"),
        ] {
            assert_eq!(&path[..prefix_len(path, segments)], prefix, "{path} {segments}");
        }
    }

    #[test]
    fn a_match_stays_small() {
        assert_eq!(size_of::<RouteMatch>(), 28, "workers cache hundreds");
    }
}
