//! Answers that are always the same.

use std::rc::Rc;

use shearwater::{FieldLines, Item, Method, Prebuilt, Request, Response, Shared};

use crate::headers::{self, Changes};
use crate::limits::FIXED_BYTES_MAX;
use crate::options::Fixed;
use crate::plain_page;

/// The methods of an answer that is no error (RFC 9110 section 10.2.1).
pub(crate) const ALLOW: &str = "GET, HEAD, OPTIONS";

/// A fixed answer, as a worker gives it.
pub(crate) struct FixedAnswer {
    status: u16,
    content: Given,
}

enum Given {
    Content(Rc<Prebuilt>),
    /// A `204` or `205` has no content, and no type of one.
    Nothing,
    /// An error that has nothing to say for itself but its name.
    Name(String),
}

impl FixedAnswer {
    /// # Panics
    /// If there is a reason why not (see [`why_not`]).
    pub(crate) fn new(fixed: &Fixed) -> Self {
        let content = match fixed.status {
            204 | 205 => Given::Nothing,
            400.. if fixed.body.is_empty() => Given::Name(format!("{}\n", plain_page::reason(fixed.status))),
            _ => Given::Content(Rc::new(content(fixed).expect("it was tried at the start"))),
        };
        Self { status: fixed.status, content }
    }

    /// Gives the answer; says whether it is one of its own, and not just the status of an error.
    pub(crate) fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) -> bool {
        match (request.method(), &self.content) {
            (_, Given::Name(name)) => {
                response.status(self.status).text(name);
                false
            }
            (method, Given::Content(content)) if self.has(method) => {
                response.status(self.status).prebuilt(content);
                true
            }
            (Method::Get | Method::Head, Given::Nothing) => {
                response.status(self.status);
                true
            }
            _ => {
                response.unhandled_method(request, ALLOW);
                false
            }
        }
    }

    /// An error is one whatever is done.
    const fn has(&self, method: Method) -> bool {
        matches!(method, Method::Get | Method::Head) || self.status >= 400
    }
}

fn content(fixed: &Fixed) -> Result<Prebuilt, String> {
    let body = Item::Shared(Shared::Block(Rc::new(fixed.body.as_slice().into())));
    Prebuilt::new(&fixed.media_type, &FieldLines::new(), body)
}

/// Why an answer can't be given with these fields: some statuses need one (RFC 9110 sections 15.5.2 and 15.5.8).
pub(crate) fn why_not_with(fixed: &Fixed, changes: &Changes) -> Option<String> {
    let needed = match fixed.status {
        401 => "WWW-Authenticate",
        407 => "Proxy-Authenticate",
        _ => return None,
    };
    let why = || format!("a {} says how to log in: set {needed} in its headers", fixed.status);
    (!headers::sets(changes, needed)).then(why)
}

/// Why an answer can't be given.
pub(crate) fn why_not(fixed: &Fixed) -> Option<String> {
    let status = fixed.status;
    let why = match status {
        200..=203 | 207..=299 | 400..=404 | 406..=425 | 427..=599 => None,
        204 | 205 if fixed.body.is_empty() => None,
        204 | 205 => Some(format!("a {status} has no body")),
        300..=399 => Some(format!("{status} needs a target: make it a redirect")),
        206 | 405 | 426 => Some(format!("a {status} needs fields that a fixed answer hasn\u{2019}t")),
        _ => Some(format!("{status} is no status of an answer: 200 to 599 are")),
    };
    let is_type =
        |text: &str| text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    if why.is_some() {
        why
    } else if fixed.body.len() > FIXED_BYTES_MAX {
        Some(format!("its body has more than {FIXED_BYTES_MAX} bytes: make it a file"))
    } else if !is_type(&fixed.media_type) {
        Some(format!("{:?} is no media type, such as text/plain", fixed.media_type))
    } else {
        content(fixed).err()
    }
}
