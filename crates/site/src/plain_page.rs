//! What is sent with an error that has no page: a line of text, or a small page to who asks for HTML.
//!
//! The text is what the error was answered with. A browser shows such a line in small letters in a corner, on white at night too, and without a word of
//! what to do: the page is for people, has no script and loads nothing.

use std::rc::Rc;

use shearwater::{FieldLines, Item, Known, Prebuilt, Request, Response, Shared};
use shearwater_files::accept;

const HTML: &str = "text/html; charset=utf-8";

/// Errors, with their reason phrase (RFC 9110 section 15) and what is said of them. The last one stands for all others.
const ERRORS: [(u16, &str, &str); 16] = [
    (400, "Bad Request", "The address can\u{2019}t be read. It may have been cut off or mistyped."),
    (401, "Unauthorized", "You have to log in to see this."),
    (403, "Forbidden", "This is not for everyone to see."),
    (404, "Not Found", "There is nothing at this address. It may have moved, or it never was here."),
    (405, "Method Not Allowed", "This can be looked at, but not be sent anything."),
    (406, "Not Acceptable", "This can\u{2019}t be had in the form that was asked for."),
    (410, "Gone", "What was at this address has been removed for good."),
    (412, "Precondition Failed", "This has changed since it was last loaded."),
    (416, "Range Not Satisfiable", "The part that was asked for is not there."),
    (429, "Too Many Requests", "That was too much at once. Try again in a little while."),
    (451, "Unavailable For Legal Reasons", "This may not be shown here."),
    (500, "Internal Server Error", "Something has gone wrong here. It is not your fault."),
    (501, "Not Implemented", "What was asked for can\u{2019}t be done here."),
    (502, "Bad Gateway", "A server behind this one can\u{2019}t be understood."),
    (503, "Service Unavailable", "This can\u{2019}t be shown just now. Try again in a little while."),
    (0, "Error", "This can\u{2019}t be shown."),
];

const START: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>"#;

/// Allows this style and nothing else. A test compares the hash with the style.
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

/// One worker's pages, put together at the start.
pub(crate) struct PlainPages {
    pages: Vec<(u16, Rc<Prebuilt>)>,
}

impl PlainPages {
    pub(crate) fn new() -> Self {
        Self { pages: ERRORS.iter().map(|&(status, ..)| (status, page(status))).collect() }
    }

    /// Puts the page in the place of an error's text, for who asks for HTML.
    pub(crate) fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        // Also with the text: it is what others would not get.
        response.field_once("Vary", "Accept");
        // Browsers name it when they show a page; programs that take anything are better served with a line of text.
        if !accept::names(request.head().all(Known::Accept), b"text/html") {
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

/// An error's reason phrase.
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
    fn a_page_says_what_it_is_and_loads_nothing() {
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
