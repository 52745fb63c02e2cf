//! Answers that are encoded once and sent many times.

use shearwater_http1::{ResponseContent, encode};
use shearwater_io::Item;

use crate::content_type;
use crate::field_lines::FieldLines;
use crate::overlay::{Names, have_name, mask_of, mask_of_lines};
use crate::respond::append_end_of_head;
use crate::response::append_field;

/// A body with all its fields encoded, for [`Response::prebuilt`](crate::Response::prebuilt). Each worker has its own.
#[derive(Debug)]
pub struct Prebuilt {
    /// The fields of the content, `Content-Length` and the empty line.
    fields: Box<[u8]>,
    /// How much of `fields` is `Content-Type`.
    type_len: usize,
    /// How much of `fields` stands before `Content-Length`.
    length_at: usize,
    /// Tells which names the further fields may have.
    names: u64,
    body: Item,
}

impl Prebuilt {
    /// Encodes an answer: its `Content-Type`, further fields, and its body.
    ///
    /// # Errors
    /// Where the media type can't be sent as a field, or the further fields have one of their own: what is wrong.
    pub fn new(media_type: &str, lines: &FieldLines, body: Item) -> Result<Self, String> {
        let mut fields = Vec::new();
        append_field(&mut fields, content_type::NAME, media_type.as_bytes())?;
        let type_len = fields.len();
        if lines.has(content_type::NAME) {
            return Err(format!("the fields of an answer of type {media_type} have another type"));
        }
        fields.extend_from_slice(lines.as_bytes());
        let names = mask_of_lines(lines.as_bytes());
        let length_at = fields.len();
        encode::content_length(&mut fields, body.len());
        encode::end_of_head(&mut fields);
        Ok(Self { fields: fields.into_boxed_slice(), type_len, length_at, names, body })
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Item {
        &self.body
    }

    /// Returns whether it has a field of this name besides `Content-Type` and `Content-Length`.
    #[inline]
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.names & mask_of(name) != 0 && have_name(&self.fields[self.type_len..self.length_at], name)
    }

    /// Appends what stands behind the server's own fields, the empty line included: with another `Content-Type` than its own and
    /// further fields, if there are any, and without some.
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
            false => append_end_of_head(out, content.declared_length(None)),
        }
    }
}

/// What a handler has set beside an answer that was encoded before.
#[derive(Clone, Copy)]
pub(crate) struct Others<'a> {
    /// The line of a `Content-Type`, or nothing.
    pub(crate) content_type: &'a [u8],
    pub(crate) fields: &'a [u8],
    /// Fields that are left out.
    pub(crate) without: &'a Names,
}

impl Others<'_> {
    #[inline]
    fn is_empty(self) -> bool {
        self.content_type.is_empty() && self.fields.is_empty()
    }
}
