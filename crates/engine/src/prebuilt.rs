//! Answers that are encoded once and sent many times.

use shearwater_http1::encode;
use shearwater_io::Item;

use crate::field_lines::FieldLines;
use crate::response::append_field;

/// A body with all its fields encoded, for [`Response::prebuilt`](crate::Response::prebuilt). Each worker has its own.
#[derive(Debug)]
pub struct Prebuilt {
    /// The fields of the content, `Content-Length` and the empty line.
    fields: Box<[u8]>,
    /// How much of `fields` stands before `Content-Length`.
    length_at: usize,
    body: Item,
}

impl Prebuilt {
    /// Encodes an answer: its `Content-Type`, further fields, and its body.
    ///
    /// # Errors
    /// Where the media type can't be sent as a field, what is wrong with it.
    pub fn new(media_type: &str, lines: &FieldLines, body: Item) -> Result<Self, String> {
        let mut fields = Vec::new();
        append_field(&mut fields, "Content-Type", media_type.as_bytes())?;
        fields.extend_from_slice(lines.as_bytes());
        let length_at = fields.len();
        encode::content_length(&mut fields, body.len());
        encode::end_of_head(&mut fields);
        Ok(Self { fields: fields.into_boxed_slice(), length_at, body })
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Item {
        &self.body
    }

    /// Appends what stands behind the server's own fields, the empty line included.
    #[inline]
    pub(crate) fn append_fields(&self, out: &mut Vec<u8>, has_length: bool) {
        if has_length {
            return out.extend_from_slice(&self.fields);
        }
        out.extend_from_slice(&self.fields[..self.length_at]);
        encode::end_of_head(out);
    }
}
