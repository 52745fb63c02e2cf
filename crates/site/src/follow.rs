//! Where redirects lead who follows them, those of the site and those of its files.

use shearwater_files::Folder;

use crate::limits::REDIRECTS_FOLLOWED_MAX;
use crate::plan::{Action, SitePlan};

/// Whether who follows the redirect of these paths comes back to it.
pub(crate) fn returns(plan: &SitePlan, from: &str, folders: &[Folder]) -> bool {
    let mut path = match from.strip_suffix('*') {
        Some(start) => format!("{start}any"),
        None => from.to_owned(),
    };
    let Some(start) = plan.rule_of(&path).filter(|&rule| plan.redirect_of(rule).is_some()) else {
        return false;
    };
    let mut rule = start;
    for _ in 0..REDIRECTS_FOLLOWED_MAX {
        let Some(next) = next(plan, rule, &path, folders) else { return false };
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

/// The path that this one is redirected to, as far as that is certain before a file is looked at.
fn next(plan: &SitePlan, rule: u32, path: &str, folders: &[Folder]) -> Option<String> {
    match plan.rules[rule as usize].action {
        Action::Redirect(redirect) => {
            let mut location = String::new();
            plan.redirects[redirect as usize].locate(path, None, &mut location);
            location.truncate(location.find(['?', '#']).unwrap_or(location.len()));
            Some(location)
        }
        Action::Files(folder) => folders[folder as usize].leads_to(path),
        Action::Fixed(_) | Action::Nothing => None,
    }
}
