//! Responses that are encoded at the start, once for each worker: fixed ones, and built-in pages of errors.
//!
//! A built-in page is a line of text, or a small HTML page without scripts for clients that accept HTML.

use std::rc::Rc;

use shearwater::engine::{FieldLines, Item, KnownField, Prebuilt, Request, Shared};

use shearwater::engine::media_type::is_media_type;
use shearwater::{Method, Response};
use shearwater_files::negotiation::names_media_type;

use crate::headers::{self, Changes};
use crate::limits::FIXED_BYTES_MAX;
use crate::options::{Fixed, InvalidValue, invalid};

/// Methods of a response that isn't an error (RFC 9110 section 10.2.1).
pub(crate) const ALLOW: &str = "GET, HEAD, OPTIONS";

/// A fixed response, encoded for one worker.
pub(crate) struct FixedResponse {
    status: u16,
    content: FixedBody,
}

enum FixedBody {
    Content(Rc<Prebuilt>),
    /// A `204` or `205` without content and media type.
    Nothing,
    /// The reason phrase of an error without a body.
    Reason(String),
}

impl FixedResponse {
    /// # Panics
    /// If [`check`] returns an error.
    pub(crate) fn new(fixed: &Fixed) -> Self {
        let content = match fixed.status {
            204 | 205 => FixedBody::Nothing,
            400.. if fixed.body.is_empty() => FixedBody::Reason(format!("{}\n", reason(fixed.status))),
            _ => FixedBody::Content(Rc::new(content(fixed).expect("checked at the start"))),
        };
        Self { status: fixed.status, content }
    }

    /// Responds. Returns `false` for an error without a body of its own, which gets an error page.
    pub(crate) fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) -> bool {
        match (request.method(), &self.content) {
            (_, FixedBody::Reason(reason)) => {
                response.status(self.status).text(reason);
                false
            }
            (method, FixedBody::Content(content)) if self.has(method) => {
                response.status(self.status).prebuilt(content);
                true
            }
            (Method::Get | Method::Head, FixedBody::Nothing) => {
                response.status(self.status);
                true
            }
            _ => {
                response.unhandled_method(request, ALLOW);
                false
            }
        }
    }

    /// Returns whether a method has the content: an error has it for every method.
    const fn has(&self, method: Method) -> bool {
        matches!(method, Method::Get | Method::Head) || self.status >= 400
    }
}

/// Encodes the content.
fn content(fixed: &Fixed) -> Result<Prebuilt, String> {
    let body = Item::Shared(Shared::Block(Rc::new(fixed.body.as_slice().into())));
    Prebuilt::new(&fixed.media_type, &FieldLines::new(), body)
}

/// Checks the headers that some statuses require (RFC 9110 sections 15.5.2 and 15.5.8).
pub(crate) fn check_headers(fixed: &Fixed, changes: &Changes) -> Result<(), InvalidValue> {
    let required = match fixed.status {
        401 => "WWW-Authenticate",
        407 => "Proxy-Authenticate",
        _ => return Ok(()),
    };
    match headers::sets(changes, required) {
        true => Ok(()),
        false => {
            let message = format!("status {} requires the header {required}", fixed.status);
            Err(invalid(message, format!("add it to `headers`: {{ set = {{ {required} = \"…\" }} }}")))
        }
    }
}

/// Checks a fixed response. An error comes with the key it belongs to.
pub(crate) fn check(fixed: &Fixed) -> Result<(), (&'static str, InvalidValue)> {
    let status = |help: &str| Err(("status", invalid("status can't be used for a fixed response", help)));
    match fixed.status {
        204 | 205 if !fixed.body.is_empty() => {
            status("a response with this status has no body: remove `body`")
        }
        206 | 405 | 426 => status("it requires headers that a fixed response doesn't have"),
        300..=399 => status("write it as a redirect"),
        200..=599 => {
            if fixed.body.len() > FIXED_BYTES_MAX {
                let message = format!("body is larger than {FIXED_BYTES_MAX} bytes");
                return Err(("body", invalid(message, "serve it as a file")));
            }
            match is_media_type(&fixed.media_type) {
                true => Ok(()),
                false => Err(("type", invalid("invalid media type", "write one such as \"text/plain\""))),
            }
        }
        _ => status("allowed: 200 to 599"),
    }
}

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

/// The icon is empty, so that browsers don't request one.
const START: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>"#;

/// Allows the style and the empty icon only. A test compares the hash with the style.
const POLICY: &str = "default-src 'none'; style-src 'sha256-w0PfV5jt7jay60bcFWiH9SXLgZt9uzBTCTj4mFuO0a0='; img-src data:; base-uri 'none'; form-action 'none'";

const STYLE: &str = r#"
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6876; --paper: #f7f8fa; --mark: #0b6e8f }
@media (prefers-color-scheme: dark) { :root { --ink: #e8edf2; --soft: #9aa7b4; --paper: #14191f; --mark: #5cc3e6 } }
html { background: var(--paper); color: var(--ink); font: 1.0625rem/1.5 system-ui, sans-serif }
body { margin: 0; min-height: 100vh; display: grid; place-items: center }
main { box-sizing: border-box; width: 100%; max-width: 34rem; padding: 2rem 1.5rem 18vh }
strong { display: block; color: var(--mark); font-size: clamp(4rem, 18vw, 7rem); line-height: 1; letter-spacing: -.03em }
h1 { margin: .75rem 0 .25rem; font-size: 1.5rem; line-height: 1.25 }
p { margin: 0; color: var(--soft) }
a { display: inline-block; margin-top: 1.25rem; color: var(--mark) }
a:focus-visible { outline: 2px solid; outline-offset: 4px; border-radius: 2px }
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
    Rc::new(Prebuilt::new("text/html; charset=utf-8", &lines, body).expect("a media type can be sent"))
}

fn html(status: u16) -> String {
    let (reason, sentence) = words(status);
    // After other errors the same address may work again, or the home page fails as well.
    let home = if matches!(status, 403 | 404 | 410) { "<a href=\"/\">Go to the home page</a>\n" } else { "" };
    format!(
        "{START}{status} {reason}</title>\n<style>{STYLE}</style>\n<main>\n<strong>{status}</strong>\n<h1>{reason}</h1>\n<p>{sentence}</p>\n{home}</main>\n</html>\n"
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
            for loaded in ["<script", "src=", "url(", "@import"] {
                assert!(!page.contains(loaded), "{page}");
            }
            let has_home = page.contains("<a href=\"/\">");
            assert_eq!(has_home, [403, 404, 410].contains(&status), "{page}");
            assert!(page.contains("<link rel=\"icon\" href=\"data:,\">"), "{page}");
            assert_eq!(page.matches("href=").count(), 1 + usize::from(has_home), "{page}");
        }
        assert_eq!((reason(404), reason(418)), ("Not Found", "Error"));
        assert!(html(418).contains("<title>418 Error</title>"));
    }
}
