//! Responses that are encoded once and sent many times.

use shearwater_http1::{ResponseContent, ResponseFraming, encode};
use shearwater_io::Item;

use crate::content_type;
use crate::field_lines::FieldLines;
use crate::header_rules::{Names, have_name, mask_of, mask_of_lines};
use crate::response::append_field;

/// A body with all its fields encoded, for [`Response::prebuilt`](crate::Response::prebuilt). Each worker has
/// its own.
#[derive(Debug)]
pub struct Prebuilt {
    /// Fields of the content, `Content-Length` and the empty line.
    fields: Box<[u8]>,
    /// Length of `Content-Type` in `fields`.
    type_len: usize,
    /// Offset of `Content-Length` in `fields`.
    length_at: usize,
    /// Mask of the names of the further fields.
    names: u64,
    body: Item,
}

impl Prebuilt {
    /// Encodes a response from its media type, further fields and body.
    ///
    /// # Errors
    /// The reason: the media type is invalid, or the further fields include a `Content-Type`.
    pub fn new(media_type: &str, lines: &FieldLines, body: Item) -> Result<Self, String> {
        let mut fields = Vec::new();
        append_field(&mut fields, content_type::NAME, media_type.as_bytes())?;
        let type_len = fields.len();
        if lines.has(content_type::NAME) {
            return Err(format!("the fields of a response of type {media_type} have another Content-Type"));
        }
        fields.extend_from_slice(lines.as_bytes());
        let names = mask_of_lines(lines.as_bytes());
        let length_at = fields.len();
        encode::content_length(&mut fields, body.len());
        encode::end_of_head(&mut fields);
        Ok(Self { fields: fields.into_boxed_slice(), type_len, length_at, names, body })
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &Item {
        &self.body
    }

    /// Returns true if it has a field of this name besides `Content-Type` and `Content-Length`.
    #[inline]
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.names & mask_of(name) != 0 && have_name(&self.fields[self.type_len..self.length_at], name)
    }

    /// Appends the fields after the server's own, and the empty line: with the handler's `Content-Type` and
    /// fields, and without removed ones.
    #[inline]
    pub(crate) fn append_fields(&self, out: &mut Vec<u8>, others: Others<'_>, content: ResponseContent) {
        let has_length = matches!(content, ResponseContent::Whole | ResponseContent::LengthOnly);
        if others.is_empty() && has_length && !others.without.may_meet(self.names) {
            return out.extend_from_slice(&self.fields);
        }
        let (own_type, rest) = self.fields.split_at(self.type_len);
        let (lines, length) = rest.split_at(self.length_at - self.type_len);
        out.extend_from_slice(if others.content_type.is_empty() { own_type } else { others.content_type });
        others.without.append_others(out, lines);
        others.without.append_others(out, others.fields);
        match has_length {
            true => out.extend_from_slice(length),
            false => ResponseFraming::Close.append_end_of_head(out, content),
        }
    }
}

/// Fields that a handler has set beside a prebuilt response.
#[derive(Clone, Copy)]
pub(crate) struct Others<'a> {
    /// `Content-Type` line, or empty.
    pub(crate) content_type: &'a [u8],
    pub(crate) fields: &'a [u8],
    /// Fields to remove.
    pub(crate) without: &'a Names,
}

impl Others<'_> {
    #[inline]
    fn is_empty(self) -> bool {
        self.content_type.is_empty() && self.fields.is_empty()
    }
}
