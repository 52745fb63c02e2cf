//! One version of a file: what tells it from others, and the answers that it gives.

use std::rc::Rc;

use shearwater::{FieldLines, Item, Known, Method, Prebuilt, Request, Response};
use shearwater_io::fs::Meta;

use crate::coding::Coding;
use crate::conditional::{self, Outcome};
use crate::partial;
use crate::plan::Plan;
use crate::range::{self, Selection};
use crate::validators::Validators;
use crate::variant::Entry;

/// A version, with what is said of it in every answer.
pub(crate) struct Version {
    validators: Validators,
    media_type: Box<str>,
    coding: Option<Coding>,
    /// Whether other clients may be sent it in another coding.
    varies: bool,
    /// `ETag`, `Last-Modified` and `Vary`, for every answer.
    about: FieldLines,
    /// `Cache-Control`, for the answers that may be kept: the content, a part of it, and that the client has it.
    lasting: Option<FieldLines>,
}

impl Version {
    /// The version that `meta` speaks of, and the answer with its content.
    pub(crate) fn new(
        meta: &Meta,
        entry: Entry<'_>,
        plan: &Plan,
        unix_seconds: u64,
        content: Item,
    ) -> (Self, Prebuilt) {
        let coding = entry.variant.coding();
        let validators = Validators::of(meta, &content, coding, unix_seconds);
        let media_type = plan.media_types.of(entry.name);
        let cache_control = plan.cache_rules.of(entry.name, media_type);
        let varies = entry.variant.varies();
        let about = about(&validators, varies).expect("digits, dates and words can be sent");
        let whole = of_content(about.clone(), cache_control, coding).expect("they were checked");
        let answer = Prebuilt::new(media_type, &whole, content).expect("it was checked");
        let lasting = cache_control.map(|value| lasting(value).expect("it was checked"));
        (Self { validators, media_type: media_type.into(), coding, varies, about, lasting }, answer)
    }

    /// Sends the content, the part of it that is asked for, or what the request's conditions come to.
    pub(crate) fn reply(&self, content: &Rc<Prebuilt>, request: &Request<'_>, response: &mut Response<'_>) {
        // Most requests ask for nothing but the content.
        if request.head().has_any(&SELECTIVE) {
            return self.reply_as_asked(content, request, response);
        }
        response.prebuilt(content);
    }

    /// Sends what the conditions and the range of a request leave.
    fn reply_as_asked(&self, content: &Rc<Prebuilt>, request: &Request<'_>, response: &mut Response<'_>) {
        match conditional::evaluate(&request.head(), &self.validators) {
            Outcome::Send if request.head().field(Known::Range).is_none() => {
                response.prebuilt(content);
            }
            Outcome::Send => self.reply_range(content, request, response),
            Outcome::NotModified => {
                response.status(304).lines(&self.about);
                self.say_lasting(response);
            }
            Outcome::Failed => {
                // Validators speak of the file, and not of these words (RFC 9110 section 8.8).
                let why = "The file is another version than the one asked for.\n";
                response.status(412).text(why).lines(&self.about);
            }
        }
    }

    /// Sends the content with another status than it has by itself: nothing is said of the file, which isn't what was asked for.
    pub(crate) fn reply_page(&self, content: &Rc<Prebuilt>, status: u16, response: &mut Response<'_>) {
        response.status(status).content_type(&self.media_type);
        if self.varies {
            response.field(VARY.0, VARY.1);
        }
        if let Some(coding) = self.coding {
            response.field(CONTENT_ENCODING, coding.name());
        }
        match content.body() {
            Item::Shared(block) => response.body_shared(block.clone()),
            Item::File(slice) => response.body_file(slice.clone()),
        };
    }

    fn say_lasting(&self, response: &mut Response<'_>) {
        if let Some(lines) = &self.lasting {
            response.lines(lines);
        }
    }

    /// Sends what a request with a `Range` asks for.
    fn reply_range(&self, content: &Rc<Prebuilt>, request: &Request<'_>, response: &mut Response<'_>) {
        let body = content.body();
        match self.select(request, body.len()) {
            // Several parts together would be in no coding, and the field speaks of them together.
            Selection::Spans(spans) if spans.len() > 1 && self.coding.is_some() => {
                response.prebuilt(content);
            }
            Selection::Whole => {
                response.prebuilt(content);
            }
            Selection::Unsatisfiable => {
                response.lines(&self.about);
                partial::unsatisfiable(body.len(), response);
            }
            Selection::Spans(spans) => {
                response.lines(&self.about).field(ACCEPT_RANGES.0, ACCEPT_RANGES.1);
                self.say_lasting(response);
                if let Some(coding) = self.coding {
                    response.field(CONTENT_ENCODING, coding.name());
                }
                partial::reply(content, &self.media_type, &spans, response);
            }
        }
    }

    /// Only `GET` has ranges (RFC 9110 section 14.2), only of the version that the client knows, and only one field of them.
    fn select(&self, request: &Request<'_>, len: u64) -> Selection {
        let head = request.head();
        let mut values = head.all(Known::Range);
        match (values.next(), values.next()) {
            (Some(value), None)
                if request.method() == Method::Get && conditional::range_holds(&head, &self.validators) =>
            {
                range::select(value, len)
            }
            _ => Selection::Whole,
        }
    }
}

/// The fields without which all of the content is asked for.
const SELECTIVE: [Known; 5] =
    [Known::IfMatch, Known::IfNoneMatch, Known::IfModifiedSince, Known::IfUnmodifiedSince, Known::Range];
const ACCEPT_RANGES: (&str, &str) = ("Accept-Ranges", "bytes");
const CACHE_CONTROL: &str = "Cache-Control";
const VARY: (&str, &str) = ("Vary", "Accept-Encoding");
const CONTENT_ENCODING: &str = "Content-Encoding";

fn about(validators: &Validators, varies: bool) -> Result<FieldLines, String> {
    let mut lines = FieldLines::new();
    if let Some(etag) = validators.etag() {
        lines.push("ETag", etag)?;
    }
    if let Some(date) = validators.last_modified() {
        lines.push("Last-Modified", date)?;
    }
    if varies {
        lines.push(VARY.0, VARY.1)?;
    }
    Ok(lines)
}

/// What is said where the content follows.
fn of_content(
    mut lines: FieldLines,
    cache_control: Option<&str>,
    coding: Option<Coding>,
) -> Result<FieldLines, String> {
    lines.push(ACCEPT_RANGES.0, ACCEPT_RANGES.1)?;
    if let Some(value) = cache_control {
        lines.push(CACHE_CONTROL, value)?;
    }
    if let Some(coding) = coding {
        lines.push(CONTENT_ENCODING, coding.name())?;
    }
    Ok(lines)
}

fn lasting(cache_control: &str) -> Result<FieldLines, String> {
    let mut lines = FieldLines::new();
    lines.push(CACHE_CONTROL, cache_control)?;
    Ok(lines)
}
