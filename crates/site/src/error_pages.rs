//! Error pages: files of the site, and built-in pages for errors without one.
//!
//! A built-in page is a line of text, or a small HTML page without scripts for clients that accept HTML.

use std::rc::Rc;

use shearwater::{FieldLines, Item, KnownField, Prebuilt, Request, Response, Shared};
use shearwater_files::negotiation::names_media_type;
use shearwater_files::resolve::path::resolve;

use crate::mistakes::{Invalid, invalid};
use crate::options::ErrorPage;
use crate::plan::{Action, Page, SitePlan};
use crate::routes::bad_path;

/// Finds the folders of error pages. Returns the valid pages, and errors by status.
pub(crate) fn find(pages: &[ErrorPage], plan: &SitePlan) -> (Vec<Page>, Vec<(u16, Invalid)>) {
    let mut found: Vec<Page> = Vec::new();
    let mut wrong = Vec::new();
    for page in pages {
        let status = page.status;
        let is_twice = found.iter().any(|known| known.status == status);
        match locate(page, plan) {
            _ if is_twice => wrong.push((status, invalid("duplicate error page", ""))),
            Ok((folder, path)) => found.push(Page { status, folder, path }),
            Err(invalid) => wrong.push((status, invalid)),
        }
    }
    (found, wrong)
}

/// Returns the folder of a page, which is that of the route of its path, and its path in the folder.
fn locate(page: &ErrorPage, plan: &SitePlan) -> Result<(u32, Box<str>), Invalid> {
    if !(400..=599).contains(&page.status) {
        return Err(invalid("status is not an error", "allowed: 400 to 599"));
    }
    let path = &page.path;
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return Err(invalid(
            "invalid path of an error page",
            "write a path of the site, such as \"/404.html\"",
        ));
    }
    let mut name = Vec::new();
    resolve(path, &mut name).map_err(bad_path)?;
    let rule = plan.routes.find(&name);
    let is_file = !matches!(name.as_slice(), [] | [.., b'/']);
    let Some(name) = String::from_utf8(name).ok().filter(|_| is_file) else {
        return Err(invalid("path of an error page is not a file", ""));
    };
    match plan.rules[rule as usize].action {
        Action::Files(folder) => Ok((folder, format!("/{name}").into())),
        Action::Redirect(_) => Err(invalid("path of an error page is redirected", "")),
        Action::Fixed(_) | Action::Nothing => {
            Err(invalid("no files are served at the path of an error page", ""))
        }
    }
}

/// Merges the pages of a site into those of its route, which take precedence.
pub(crate) fn merge(site: &[Page], route: Vec<Page>) -> Vec<Page> {
    let is_own = |page: &&Page| route.iter().any(|own| own.status == page.status);
    let others: Vec<_> = site.iter().filter(|page| !is_own(page)).cloned().collect();
    [route, others].concat()
}

/// Returns the page of a status.
pub(crate) fn of(pages: &[Page], status: u16) -> Option<&Page> {
    pages.iter().find(|page| page.status == status)
}

const HTML: &str = "text/html; charset=utf-8";

/// Reason phrase (RFC 9110 section 15) and text for people, by status. The last one is for all others.
const ERRORS: [(u16, &str, &str); 16] = [
    (400, "Bad Request", "The address is invalid. It may be incomplete or mistyped."),
    (401, "Unauthorized", "Log in to see this page."),
    (403, "Forbidden", "You don\u{2019}t have permission to see this page."),
    (404, "Not Found", "There is no page at this address. It may have moved."),
    (405, "Method Not Allowed", "This address doesn\u{2019}t accept this kind of request."),
    (406, "Not Acceptable", "This page isn\u{2019}t available in the requested format."),
    (410, "Gone", "This page has been removed permanently."),
    (412, "Precondition Failed", "This page has changed since it was last loaded."),
    (416, "Range Not Satisfiable", "The requested part doesn\u{2019}t exist."),
    (429, "Too Many Requests", "Too many requests. Try again in a moment."),
    (451, "Unavailable For Legal Reasons", "This page is unavailable for legal reasons."),
    (500, "Internal Server Error", "Something went wrong on the server."),
    (501, "Not Implemented", "The server doesn\u{2019}t support this kind of request."),
    (502, "Bad Gateway", "The server received an invalid response from another server."),
    (503, "Service Unavailable", "The server is busy. Try again in a moment."),
    (0, "Error", "This page can\u{2019}t be shown."),
];

const START: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>"#;

/// Allows the style only. A test compares the hash with the style.
const POLICY: &str = "default-src 'none'; style-src 'sha256-CRnvWpSEeOl+xf7MFNYQdxAPE3hv/xhigeUU9ttvzKw='; base-uri 'none'; form-action 'none'";

const STYLE: &str = r#"
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6876; --paper: #f7f8fa; --mark: #0b6e8f }
@media (prefers-color-scheme: dark) { :root { --ink: #e8edf2; --soft: #9aa7b4; --paper: #14191f; --mark: #5cc3e6 } }
html { background: var(--paper); color: var(--ink); font: 1.0625rem/1.5 system-ui, sans-serif }
body { margin: 0; min-height: 100vh; display: grid; place-items: center }
main { box-sizing: border-box; width: 100%; max-width: 34rem; padding: 2rem 1.5rem 18vh }
strong { display: block; color: var(--mark); font-size: clamp(4rem, 18vw, 7rem); line-height: 1; letter-spacing: -.03em }
h1 { margin: .75rem 0 .25rem; font-size: 1.5rem; line-height: 1.25 }
p { margin: 0; color: var(--soft) }
"#;

/// One worker's built-in pages, encoded at the start.
pub(crate) struct BuiltInPages {
    pages: Vec<(u16, Rc<Prebuilt>)>,
}

impl BuiltInPages {
    pub(crate) fn new() -> Self {
        Self { pages: ERRORS.iter().map(|&(status, ..)| (status, page(status))).collect() }
    }

    /// Replaces the text of an error with a page for clients that accept HTML.
    pub(crate) fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        // The text depends on Accept as well.
        response.field_once("Vary", "Accept");
        // Browsers list text/html when they show a page; other programs get a line of text.
        if !names_media_type(request.head().all(KnownField::Accept), b"text/html") {
            return;
        }
        let status = response.status_code();
        let known = self.pages.iter().find(|(known, _)| *known == status);
        match known {
            Some((_, page)) => response.prebuilt(page),
            None => response.prebuilt(&page(status)),
        };
    }
}

/// Returns the reason phrase of an error.
pub(crate) fn reason(status: u16) -> &'static str {
    words(status).0
}

fn words(status: u16) -> (&'static str, &'static str) {
    let known = ERRORS.iter().find(|(known, ..)| *known == status);
    let (_, reason, sentence) = known.unwrap_or(&ERRORS[ERRORS.len() - 1]);
    (reason, sentence)
}

fn page(status: u16) -> Rc<Prebuilt> {
    let body = Item::Shared(Shared::Block(Rc::new(html(status).into_bytes().into())));
    let mut lines = FieldLines::new();
    lines.push("Content-Security-Policy", POLICY).expect("a policy can be sent");
    Rc::new(Prebuilt::new(HTML, &lines, body).expect("a media type can be sent"))
}

fn html(status: u16) -> String {
    let (reason, sentence) = words(status);
    format!(
        "{START}{status} {reason}</title>\n<style>{STYLE}</style>\n<main>\n<strong>{status}</strong>\n<h1>{reason}</h1>\n<p>{sentence}</p>\n</main>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine};
    use sha2::{Digest, Sha256};

    use super::{ERRORS, POLICY, STYLE, html, reason};

    #[test]
    fn the_policy_allows_the_style_and_nothing_else() {
        let hash = format!("style-src 'sha256-{}';", BASE64_STANDARD.encode(Sha256::digest(STYLE)));
        assert!(POLICY.contains(&hash), "{POLICY} has another hash than {hash}");
        let page = html(404);
        assert!(page.contains(&format!("<style>{STYLE}</style>")) && page.matches("<style").count() == 1);
        assert!(!page.contains("style=") && POLICY.starts_with("default-src 'none';"));
    }

    #[test]
    fn a_page_has_title_and_text_and_loads_nothing() {
        for (status, reason, sentence) in ERRORS {
            let page = html(status);
            assert!(page.contains(&format!("<title>{status} {reason}</title>")), "{page}");
            assert!(page.contains(sentence) && page.len() < 2048, "{page}");
            for loaded in ["<script", "src=", "href=", "url(", "@import"] {
                assert!(!page.contains(loaded), "{page}");
            }
        }
        assert_eq!((reason(404), reason(418)), ("Not Found", "Error"));
        assert!(html(418).contains("<title>418 Error</title>"));
    }
}
