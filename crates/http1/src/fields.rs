//! The fields of a head: one field line parsed, and the table that holds them all.

use crate::span::Span;
use crate::{Known, Reject, class, scan};

/// One field of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name, in the sender's spelling.
    pub name: &'a str,
    /// The value, without the whitespace around it. Bytes above 0x7F may occur (obs-text).
    pub value: &'a [u8],
    /// The name's number, if it has one.
    pub known: Option<Known>,
}

/// Where a field's parts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSpans {
    pub(crate) name: Span,
    pub(crate) value: Span,
    pub(crate) known: Option<Known>,
}

impl FieldSpans {
    const NONE: Self = Self { name: Span::EMPTY, value: Span::EMPTY, known: None };

    /// Parses the line at `line`: not empty, no control bytes other than HTAB, not its CRLF (RFC 9112 5).
    // Inlined, or the result would be stored and loaded again in pieces of other sizes, which stalls.
    #[inline(always)]
    pub(crate) fn parse(bytes: &[u8], line: Span) -> Result<Self, Reject> {
        let text = line.bytes(bytes);
        if text.first().copied().is_some_and(class::is_blank) {
            return Err(Reject::ObsFold);
        }
        let name_len = scan::colon(text).ok_or(Reject::MissingColon)?;
        let name = &text[..name_len];
        let known = Known::from_name(name);
        if known.is_none() && !class::is_token(name) {
            return Err(refuse_name(name));
        }
        let name = Span::new(line.start(), line.start() + name_len);
        Ok(Self { name, value: trim(bytes, name.end() + 1, line.end()), known })
    }

    pub(crate) fn view<'a>(&self, bytes: &'a [u8]) -> Field<'a> {
        Field { name: self.name.text(bytes), value: self.value.bytes(bytes), known: self.known }
    }
}

#[cold]
fn refuse_name(name: &[u8]) -> Reject {
    match name.last().copied().is_some_and(class::is_blank) {
        true => Reject::SpaceBeforeColon,
        false => Reject::InvalidFieldName,
    }
}

/// The span `start..end` without the OWS around it.
#[inline]
fn trim(bytes: &[u8], mut start: usize, mut end: usize) -> Span {
    while start < end && class::is_blank(bytes[start]) {
        start += 1;
    }
    while start < end && class::is_blank(bytes[end - 1]) {
        end -= 1;
    }
    Span::new(start, end)
}

/// The fields of one head, in order. Allocated once.
#[derive(Debug)]
pub(crate) struct FieldTable {
    slots: Box<[FieldSpans]>,
    len: usize,
    /// For each known name one more than the number of its first field; 0 if there is none.
    first: [u16; Known::COUNT],
    /// Bit `known`: the name occurs more than once.
    repeated: u64,
}

impl FieldTable {
    pub(crate) fn new(fields_max: usize) -> Self {
        let slots = vec![FieldSpans::NONE; fields_max].into_boxed_slice();
        Self { slots, len: 0, first: [0; Known::COUNT], repeated: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.first = [0; Known::COUNT];
        self.repeated = 0;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == self.slots.len()
    }

    /// Adds a field. Panics if the table is full.
    #[inline]
    pub(crate) fn push(&mut self, field: FieldSpans) {
        self.slots[self.len] = field;
        self.len += 1;
        if let Some(known) = field.known {
            match &mut self.first[known as usize] {
                // `HeadLimits::usable` keeps the count within 16 bits.
                first @ 0 => *first = self.len as u16,
                _ => self.repeated |= bit(known),
            }
        }
    }

    pub(crate) fn fields(&self) -> &[FieldSpans] {
        &self.slots[..self.len]
    }

    pub(crate) fn first(&self, known: Known) -> Option<&FieldSpans> {
        match self.first[known as usize] {
            0 => None,
            number => Some(&self.slots[usize::from(number) - 1]),
        }
    }

    pub(crate) fn is_repeated(&self, known: Known) -> bool {
        self.repeated & bit(known) != 0
    }

    /// All fields with this name, in order. Looks at one field only, unless the name is repeated.
    pub(crate) fn all(&self, known: Known) -> impl Iterator<Item = &FieldSpans> {
        let candidates = match self.first[known as usize] {
            0 => &[],
            number if self.is_repeated(known) => &self.slots[usize::from(number) - 1..self.len],
            number => &self.slots[usize::from(number) - 1..usize::from(number)],
        };
        candidates.iter().filter(move |field| field.known == Some(known))
    }
}

const fn bit(known: Known) -> u64 {
    1 << known as u8
}
