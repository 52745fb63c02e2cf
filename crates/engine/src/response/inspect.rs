//! A complete response as a step around its handler sees it.

use shearwater_io::Item;

use crate::response::Response;
use crate::response::draft::Body;
use crate::response::fields::{each_line, name_of};

/// Content of a complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// Sent by the handler piece by piece.
    Stream,
    /// A file, a prebuilt response, or several pieces.
    Other,
}

impl Response<'_> {
    /// Returns the content. For a response that isn't [deferred](Self::is_deferred).
    #[must_use]
    pub fn content(&self) -> Content<'_> {
        match &self.draft.body {
            None if self.draft.prebuilt.is_none() => Content::Bytes(&self.draft.bytes),
            Some(Body::Item(Item::Shared(block))) => Content::Bytes(block),
            Some(Body::Stream(_)) => Content::Stream,
            _ => Content::Other,
        }
    }

    /// Iterates over the values of a field, in the order in which they are sent. Those of a prebuilt response aren't among
    /// them.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let lines = each_line(self.draft.content_type.line()).chain(each_line(&self.draft.fields));
        lines.filter(move |line| name_of(line).eq_ignore_ascii_case(name.as_bytes())).map(value_of)
    }
}

/// Returns the value in an encoded field line.
fn value_of(line: &[u8]) -> &[u8] {
    line.get(name_of(line).len() + 1..).unwrap_or_default().trim_ascii()
}
