//! Which files are sent with errors.

use crate::options::ErrorPage;
use crate::plan::{Action, Page, SitePlan};

/// The pages with the folders that they lie in, and what is wrong with others: (status, why).
pub(crate) fn find(pages: &[ErrorPage], plan: &SitePlan) -> (Vec<Page>, Vec<(u16, String)>) {
    let mut found: Vec<Page> = Vec::new();
    let mut wrong = Vec::new();
    for page in pages {
        let status = page.status;
        let is_twice = found.iter().any(|known| known.status == status);
        match folder(page, plan) {
            _ if is_twice => wrong.push((status, "it is named twice".to_owned())),
            Ok(folder) => found.push(Page { status, folder, path: page.path.as_str().into() }),
            Err(why) => wrong.push((status, why)),
        }
    }
    (found, wrong)
}

/// The folder that a page lies in: that of the route that its path has.
fn folder(page: &ErrorPage, plan: &SitePlan) -> Result<u32, String> {
    if !(400..=599).contains(&page.status) {
        return Err(format!("{} is no error: 400 to 599 are", page.status));
    }
    let path = &page.path;
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return Err(format!("{path:?} is no path of the site: it begins with a slash, and has no query"));
    }
    let rule = plan.rule_of(path).ok_or_else(|| format!("{path} names no file"))?;
    match plan.rules[rule as usize].action {
        Action::Files(folder) => Ok(folder),
        Action::Redirect(_) => Err(format!("{path} is redirected: a page is a file")),
        Action::Fixed(_) | Action::Nothing => Err(format!("no files are served at {path}")),
    }
}

/// A route's pages, and those of its site for other statuses.
pub(crate) fn merge(site: &[Page], route: Vec<Page>) -> Vec<Page> {
    let is_own = |page: &&Page| route.iter().any(|own| own.status == page.status);
    let others: Vec<_> = site.iter().filter(|page| !is_own(page)).cloned().collect();
    [route, others].concat()
}

/// The page of a status.
pub(crate) fn of(pages: &[Page], status: u16) -> Option<&Page> {
    pages.iter().find(|page| page.status == status)
}
