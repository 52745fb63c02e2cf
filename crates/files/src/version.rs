//! One version of a file: its validators and responses.

use std::rc::Rc;

use shearwater::{FieldLines, Item, KnownField, Method, Prebuilt, Request, Response};
use shearwater_io::fs::Meta;

use crate::coding::Coding;
use crate::conditional::{self, Outcome};
use crate::partial;
use crate::range::{self, Selection};
use crate::settings::Settings;
use crate::validators::Validators;
use crate::variant::Entry;

/// A version and the headers of its responses.
pub(crate) struct Version {
    validators: Validators,
    media_type: Box<str>,
    coding: Option<Coding>,
    /// True if other clients may get another coding.
    varies: bool,
    /// `ETag`, `Last-Modified` and `Vary`, for all responses.
    common: FieldLines,
    /// `Cache-Control`, for cacheable responses: `200`, `206` and `304`.
    cache_control_lines: Option<FieldLines>,
}

impl Version {
    /// Returns the version with this metadata and the response with its content.
    pub(crate) fn new(
        meta: &Meta,
        entry: Entry<'_>,
        settings: &Settings,
        unix_seconds: u64,
        content: Item,
    ) -> (Self, Prebuilt) {
        let coding = entry.variant.coding();
        let validators = Validators::of(meta, &content, coding, unix_seconds);
        let media_type = settings.media_types.of(entry.name);
        let cache_control = settings.cache_rules.of(entry.name, media_type);
        let varies = entry.variant.varies();
        let common = common(&validators, varies).expect("valid field values");
        let whole = of_content(common.clone(), cache_control, coding).expect("options were validated");
        let prebuilt = Prebuilt::new(media_type, &whole, content).expect("options were validated");
        let cache_control_lines =
            cache_control.map(|value| cache_control_lines(value).expect("options were validated"));
        (
            Self { validators, media_type: media_type.into(), coding, varies, common, cache_control_lines },
            prebuilt,
        )
    }

    /// Sends the content, the requested part, or the result of preconditions.
    pub(crate) fn reply(&self, content: &Rc<Prebuilt>, request: &Request<'_>, response: &mut Response<'_>) {
        // Most requests have no preconditions and no range.
        if request.head().has_any(&SELECTING_FIELDS) {
            return self.reply_selected(content, request, response);
        }
        response.prebuilt(content);
    }

    /// Evaluates the preconditions and the range of a request.
    fn reply_selected(&self, content: &Rc<Prebuilt>, request: &Request<'_>, response: &mut Response<'_>) {
        match conditional::evaluate(&request.head(), &self.validators) {
            Outcome::Send if request.head().field(KnownField::Range).is_none() => {
                response.prebuilt(content);
            }
            Outcome::Send => self.reply_range(content, request, response),
            Outcome::NotModified => {
                response.status(304).lines(&self.common);
                self.add_cache_control(response);
            }
            Outcome::Failed => {
                // Validators are those of the file, not of this text (RFC 9110 section 8.8).
                let why = "The file is another version than the one asked for.\n";
                response.status(412).text(why).lines(&self.common);
            }
        }
    }

    /// Sends the content with another status, without headers about the file, which isn't the requested one.
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

    fn add_cache_control(&self, response: &mut Response<'_>) {
        if let Some(lines) = &self.cache_control_lines {
            response.lines(lines);
        }
    }

    /// Sends the parts that a `Range` selects.
    fn reply_range(&self, content: &Rc<Prebuilt>, request: &Request<'_>, response: &mut Response<'_>) {
        let body = content.body();
        match self.select(request, body.len()) {
            // `Content-Encoding` applies to a multipart body as a whole, which isn't encoded.
            Selection::Spans(spans) if spans.len() > 1 && self.coding.is_some() => {
                response.prebuilt(content);
            }
            Selection::Whole => {
                response.prebuilt(content);
            }
            Selection::Unsatisfiable => {
                response.lines(&self.common);
                partial::unsatisfiable(body.len(), response);
            }
            Selection::Spans(spans) => {
                response.lines(&self.common).field(ACCEPT_RANGES.0, ACCEPT_RANGES.1);
                self.add_cache_control(response);
                if let Some(coding) = self.coding {
                    response.field(CONTENT_ENCODING, coding.name());
                }
                partial::reply(content, &self.media_type, &spans, response);
            }
        }
    }

    /// Selects ranges: only for `GET` (RFC 9110 section 14.2), for the client's version, and with a single `Range`.
    fn select(&self, request: &Request<'_>, len: u64) -> Selection {
        let head = request.head();
        let mut values = head.all(KnownField::Range);
        match (values.next(), values.next()) {
            (Some(value), None)
                if request.method() == Method::Get
                    && conditional::if_range_holds(&head, &self.validators) =>
            {
                range::select(value, len)
            }
            _ => Selection::Whole,
        }
    }
}

/// Fields that can select something else than the whole content.
const SELECTING_FIELDS: [KnownField; 5] = [
    KnownField::IfMatch,
    KnownField::IfNoneMatch,
    KnownField::IfModifiedSince,
    KnownField::IfUnmodifiedSince,
    KnownField::Range,
];
const ACCEPT_RANGES: (&str, &str) = ("Accept-Ranges", "bytes");
const CACHE_CONTROL: &str = "Cache-Control";
const VARY: (&str, &str) = ("Vary", "Accept-Encoding");
const CONTENT_ENCODING: &str = "Content-Encoding";

fn common(validators: &Validators, varies: bool) -> Result<FieldLines, String> {
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

/// Adds the headers of a response with content.
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

fn cache_control_lines(cache_control: &str) -> Result<FieldLines, String> {
    let mut lines = FieldLines::new();
    lines.push(CACHE_CONTROL, cache_control)?;
    Ok(lines)
}
