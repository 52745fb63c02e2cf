//! Which files are sent with errors.

use shearwater_files::resolve::resolve;

use crate::options::ErrorPage;
use crate::plan::{Action, Page, SitePlan};

/// The pages with the folders that they lie in, and what is wrong with others: (status, why).
pub(crate) fn find(pages: &[ErrorPage], plan: &SitePlan) -> (Vec<Page>, Vec<(u16, String)>) {
    let mut found: Vec<Page> = Vec::new();
    let mut wrong = Vec::new();
    for page in pages {
        let status = page.status;
        let is_twice = found.iter().any(|known| known.status == status);
        match place(page, plan) {
            _ if is_twice => wrong.push((status, "it is named twice".to_owned())),
            Ok((folder, path)) => found.push(Page { status, folder, path }),
            Err(why) => wrong.push((status, why)),
        }
    }
    (found, wrong)
}

/// The folder that a page lies in, which is that of the route that its path has, and its name there, behind a slash.
fn place(page: &ErrorPage, plan: &SitePlan) -> Result<(u32, Box<str>), String> {
    if !(400..=599).contains(&page.status) {
        return Err(format!("{} is no error: 400 to 599 are", page.status));
    }
    let path = &page.path;
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return Err(format!("{path:?} is no path of the site: it begins with a slash, and has no query"));
    }
    let mut name = Vec::new();
    let rule = resolve(path, &mut name).map(|_| plan.routes.find(&name));
    let rule = rule.ok().filter(|_| !matches!(name.as_slice(), [] | [.., b'/']));
    let (Some(rule), Ok(name)) = (rule, String::from_utf8(name)) else {
        return Err(format!("{path} names no file"));
    };
    match plan.rules[rule as usize].action {
        Action::Files(folder) => Ok((folder, format!("/{name}").into())),
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
