//! Where redirects lead who follows them, those of the site and those of its files.

use crate::limits::REDIRECTS_FOLLOWED_MAX;
use crate::plan::{Action, SitePlan};

/// Whether who follows the redirect of these paths comes back to it; `files` says where the files of a folder redirect a path.
pub(crate) fn returns(plan: &SitePlan, from: &str, files: &dyn Fn(u32, &str) -> Option<String>) -> bool {
    let mut path = match from.strip_suffix('*') {
        Some(start) => format!("{start}any"),
        None => from.to_owned(),
    };
    let Some(start) = plan.rule_of(&path).filter(|&rule| plan.redirect_of(rule).is_some()) else {
        return false;
    };
    let mut rule = start;
    for _ in 0..REDIRECTS_FOLLOWED_MAX {
        let Some(next) = next(plan, rule, &path, files) else { return false };
        path = next;
        match plan.rule_of(&path) {
            Some(next) if next == start => return true,
            Some(next) => rule = next,
            // Another host, or no path at all.
            None => return false,
        }
    }
    false
}

/// The path that this one is redirected to.
fn next(
    plan: &SitePlan,
    rule: u32,
    path: &str,
    files: &dyn Fn(u32, &str) -> Option<String>,
) -> Option<String> {
    match plan.rules[rule as usize].action {
        Action::Redirect(redirect) => {
            let mut location = String::new();
            plan.redirects[redirect as usize].locate(path, None, &mut location);
            location.truncate(location.find(['?', '#']).unwrap_or(location.len()));
            Some(location)
        }
        Action::Files(folder) => files(folder, path),
        Action::Fixed(_) | Action::Nothing => None,
    }
}
