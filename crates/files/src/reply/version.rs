//! One version of a file: its validators and responses.
//!
//! Partial responses are one range as it is, or several as `multipart/byteranges` (RFC 9110 sections 14.6 and 15.3.7).
//! Their parts refer to the whole file's body, a block in memory or an open file: nothing is read or copied.

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use shearwater::engine::{FieldLines, Item, KnownField, Pieces, Prebuilt, Request};

use shearwater::{Method, Response};
use shearwater_io::fs::Coding;

use crate::conditional::preconditions::{self, PreconditionResult, if_range_holds};
use crate::conditional::range::{self, ByteRange, Selection};
use crate::conditional::validators::Validators;

use crate::media_type::is_gzipped;
use crate::settings::FolderSettings;
use crate::siblings::Representation;

/// A version and the headers of its responses.
pub(crate) struct FileVersion {
    validators: Validators,
    media_type: Box<str>,
    coding: Option<Coding>,
    /// True if other clients may get another coding.
    varies: bool,
    /// `ETag`, `Last-Modified` and `Vary`, for all responses.
    common: FieldLines,
    /// `Cache-Control`, for cacheable responses: `200`, `206` and `304`.
    cache_control: Option<FieldLines>,
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

impl FileVersion {
    /// Returns the version with these validators and the response with its content.
    pub(crate) fn new(
        mut validators: Validators,
        entry: Representation<'_>,
        settings: &FolderSettings,
        content: Item,
    ) -> (Self, Rc<Prebuilt>) {
        let media_type = settings.media_types.of(entry.name);
        // Sent to clients without gzip as well: there is no other representation (RFC 9110 section 12.5.3).
        let own_coding = is_gzipped(entry.name, &media_type).then_some(Coding::Gzip);
        let coding = entry.coding.or(own_coding);
        let cache_control = settings.cache_rules.of(entry.name, &media_type);
        let varies = entry.varies();
        // A client that got the file as it is may get it compressed next, with the same date.
        validators.is_date_strong &= !entry.siblings.is_compressed;
        let last_modified = validators.modified.map(httpdate::fmt_http_date);
        let mut common = FieldLines::new();
        push(&mut common, "ETag", validators.etag.as_deref());
        push(&mut common, "Last-Modified", last_modified.as_deref());
        push(&mut common, VARY.0, varies.then_some(VARY.1));
        let mut whole = common.clone();
        push(&mut whole, ACCEPT_RANGES.0, Some(ACCEPT_RANGES.1));
        push(&mut whole, CACHE_CONTROL, cache_control);
        push(&mut whole, CONTENT_ENCODING, coding.map(Coding::name));
        let prebuilt = Prebuilt::new(&media_type, &whole, content).expect("options were validated");
        let cache_control = cache_control.map(|value| {
            let mut lines = FieldLines::new();
            push(&mut lines, CACHE_CONTROL, Some(value));
            lines
        });
        let media_type = media_type.into();
        (Self { validators, media_type, coding, varies, common, cache_control }, Rc::new(prebuilt))
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
        match preconditions::evaluate(&request.head(), &self.validators) {
            PreconditionResult::Send => self.reply_range(content, request, response),
            PreconditionResult::NotModified => {
                response.status(304).lines(&self.common);
                self.add_cache_control(response);
            }
            PreconditionResult::Failed => {
                // Validators are those of the file, not of this text (RFC 9110 section 8.8).
                let why = "The file is another version than the one asked for.\n";
                response.status(412).text(why).lines(&self.common);
            }
        }
    }

    /// Sends the parts that a `Range` selects.
    fn reply_range(&self, content: &Rc<Prebuilt>, request: &Request<'_>, response: &mut Response<'_>) {
        let len = content.body().len();
        match self.select(request, len) {
            // `Content-Encoding` applies to a multipart body as a whole, which isn't encoded.
            Selection::Ranges(ranges) if ranges.len() == 1 || self.coding.is_none() => {
                response.lines(&self.common).field(ACCEPT_RANGES.0, ACCEPT_RANGES.1);
                self.add_cache_control(response);
                if let Some(coding) = self.coding {
                    response.field(CONTENT_ENCODING, coding.name());
                }
                self.reply_partial(content, &ranges, response);
            }
            // RFC 9110 section 15.5.17.
            Selection::Unsatisfiable => {
                response.status(416).lines(&self.common).field("Content-Range", format!("bytes */{len}"));
                response.text("The file has none of the bytes that were asked for.\n");
            }
            Selection::Whole | Selection::Ranges(_) => {
                response.prebuilt(content);
            }
        }
    }

    /// Selects ranges: only for `GET` (RFC 9110 section 14.2), for the client's version, and with a single `Range`.
    fn select(&self, request: &Request<'_>, len: u64) -> Selection {
        let head = request.head();
        let mut values = head.all(KnownField::Range);
        match (values.next(), values.next()) {
            (Some(value), None)
                if request.method() == Method::Get && if_range_holds(&head, &self.validators) =>
            {
                range::select(value, len)
            }
            _ => Selection::Whole,
        }
    }

    /// Sends at least one range with `206`.
    fn reply_partial(&self, whole: &Rc<Prebuilt>, ranges: &[ByteRange], response: &mut Response<'_>) {
        let (content, media_type) = (whole.body(), &*self.media_type);
        let content_range =
            |range: &ByteRange| format!("bytes {}-{}/{}", range.first, range.last, content.len());
        let mut pieces = Pieces::new();
        pieces.of(whole);
        response.status(206);
        if let [range] = ranges {
            pieces.stretch(content, range.first, range.bytes());
            response.content_type(media_type).field("Content-Range", content_range(range));
        } else {
            let boundary = boundary();
            // A line end precedes the first delimiter too (RFC 2046 section 5.1.1): some clients look for it.
            for range in ranges {
                let head = format!("Content-Type: {media_type}\r\nContent-Range: {}", content_range(range));
                pieces.bytes(format!("\r\n--{boundary}\r\n{head}\r\n\r\n"));
                pieces.stretch(content, range.first, range.bytes());
            }
            pieces.bytes(format!("\r\n--{boundary}--\r\n"));
            response.content_type(&format!("multipart/byteranges; boundary={boundary}"));
        }
        response.body_pieces(pieces);
    }

    fn add_cache_control(&self, response: &mut Response<'_>) {
        if let Some(lines) = &self.cache_control {
            response.lines(lines);
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
}

/// Appends a field that is valid, if it has a value.
fn push(lines: &mut FieldLines, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        lines.push(name, value).expect("options were validated");
    }
}

/// Returns a new multipart boundary (RFC 2046 section 5.1.1) of 32 digits: 128 unpredictable bits.
///
/// A boundary that occurs in the file would end a part early. Each response generates its own with a keyed hash. Its
/// keys are chosen at random for this process, so no file can be crafted to contain it. The chance that a file contains
/// it by accident is 1 in 2^128 for each of its bytes, 1 in 2^88 for a tebibyte.
fn boundary() -> String {
    // Each `RandomState` has different keys.
    let keys = RandomState::new();
    format!("{:016x}{:016x}", keys.hash_one(0_u8), keys.hash_one(1_u8))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::boundary;

    #[test]
    fn boundaries_differ() {
        let drawn: HashSet<_> = (0..1_000).map(|_| boundary()).collect();
        assert_eq!(drawn.len(), 1_000);
        assert!(drawn.iter().all(|boundary| boundary.len() == 32));
    }
}
