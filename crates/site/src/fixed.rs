//! Fixed responses: checked at the start, encoded once for each worker.

use std::rc::Rc;

use shearwater::{FieldLines, Item, Method, Prebuilt, Request, Response, Shared};

use crate::error_pages;
use crate::headers::{self, Changes};
use crate::limits::FIXED_BYTES_MAX;
use crate::mistakes::{Invalid, invalid};
use crate::options::Fixed;

/// Methods of a response that isn't an error (RFC 9110 section 10.2.1).
pub(crate) const ALLOW: &str = "GET, HEAD, OPTIONS";

/// A fixed response, encoded for one worker.
pub(crate) struct FixedResponse {
    status: u16,
    content: Body,
}

enum Body {
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
            204 | 205 => Body::Nothing,
            400.. if fixed.body.is_empty() => {
                Body::Reason(format!("{}\n", error_pages::reason(fixed.status)))
            }
            _ => Body::Content(Rc::new(content(fixed).expect("checked at the start"))),
        };
        Self { status: fixed.status, content }
    }

    /// Responds. Returns `false` for an error without a body of its own, which gets an error page.
    pub(crate) fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) -> bool {
        match (request.method(), &self.content) {
            (_, Body::Reason(reason)) => {
                response.status(self.status).text(reason);
                false
            }
            (method, Body::Content(content)) if self.has(method) => {
                response.status(self.status).prebuilt(content);
                true
            }
            (Method::Get | Method::Head, Body::Nothing) => {
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
pub(crate) fn check_headers(fixed: &Fixed, changes: &Changes) -> Result<(), Invalid> {
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
pub(crate) fn check(fixed: &Fixed) -> Result<(), (&'static str, Invalid)> {
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
            let is_type = |text: &str| {
                text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty())
            };
            match is_type(&fixed.media_type) && content(fixed).is_ok() {
                true => Ok(()),
                false => Err(("type", invalid("invalid media type", "write one such as \"text/plain\""))),
            }
        }
        _ => status("allowed: 200 to 599"),
    }
}
