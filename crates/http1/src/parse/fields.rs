//! Fields of a head: parsing one field line, and the table of all lines.

use crate::scan::{self, FieldSpans, HeadSpan};
use crate::{KnownField, ParseError, known_field};

/// Number of lines before the first field.
const REQUEST_LINES: usize = 1;

/// One field of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name in the sender's spelling.
    pub name: &'a str,
    /// Value without surrounding whitespace. May contain bytes above 0x7F (obs-text).
    pub value: &'a [u8],
    /// The known name, if it is one.
    pub known: Option<KnownField>,
}

impl FieldSpans {
    /// Parses a line that is not empty, has no control bytes other than HTAB, and is followed by CRLF (RFC
    /// 9112 5).
    #[inline(always)]
    fn parse(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        let (start, colon, end) = (self.name.start(), self.name.end(), self.value.end());
        let known = known_field::find_at(bytes, start, colon);
        self.known = known;
        if known.is_none() && !scan::is_token(&bytes[start..colon]) {
            return Err(refuse_line(&bytes[start..end], &bytes[start..colon]));
        }
        // Nearly all clients send one space before the value and none after it. An empty value would have its
        // CR here.
        let is_visible = |byte: Option<&u8>| byte.is_some_and(|byte| *byte > b' ');
        let is_common = is_visible(bytes.get(colon + 2))
            && bytes.get(colon..colon + 2) == Some(b": ")
            && is_visible(bytes.get(end - 1));
        self.value = if is_common { HeadSpan::new(colon + 2, end) } else { trim(bytes, colon, end)? };
        Ok(())
    }

    pub(crate) fn view<'a>(&self, bytes: &'a [u8]) -> Field<'a> {
        Field { name: self.name.text(bytes), value: self.value.bytes(bytes), known: self.known }
    }
}

/// Returns the reason to reject a line whose name is not a token, or has no colon after it.
#[cold]
fn refuse_line(line: &[u8], name: &[u8]) -> ParseError {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_blank(line.first()) {
        ParseError::ObsFold
    } else if name.len() == line.len() {
        ParseError::MissingColon
    } else if is_blank(name.last()) {
        ParseError::SpaceBeforeColon
    } else {
        ParseError::InvalidFieldName
    }
}

/// Returns the span between the colon and the end of a line, without surrounding OWS.
#[cold]
fn trim(bytes: &[u8], colon: usize, end: usize) -> Result<HeadSpan, ParseError> {
    let [b':', value @ ..] = &bytes[colon..end] else { return Err(ParseError::MissingColon) };
    let value = value.trim_ascii_start();
    let start = end - value.len();
    Ok(HeadSpan::new(start, start + value.trim_ascii_end().len()))
}

/// Lines of one head, in order: the request line, then the fields. Allocated once, unless created
/// [empty](FieldTable::empty).
#[derive(Debug)]
pub(crate) struct FieldTable {
    /// The first entry is the request line.
    lines: Box<[FieldSpans]>,
    /// Number of parsed lines.
    judged: usize,
    /// Bit `known`: the name occurs.
    present: u64,
    /// Bit `known`: the name occurs more than once.
    repeated: u64,
    /// For each known name that occurs, the number of its first line.
    first: [u16; KnownField::COUNT],
}

fn room_for(lines: usize) -> Box<[FieldSpans]> {
    vec![FieldSpans::NONE; lines].into_boxed_slice()
}

impl FieldTable {
    pub(crate) fn new(fields_max: usize) -> Self {
        Self { lines: room_for(REQUEST_LINES + fields_max), ..Self::empty() }
    }

    /// Creates a table without memory, for [`FieldTable::copy_from`].
    pub(crate) fn empty() -> Self {
        Self { lines: Box::default(), judged: 0, present: 0, repeated: 0, first: [0; KnownField::COUNT] }
    }

    /// Allocates memory for so many fields; a smaller table loses its contents.
    #[inline]
    pub(crate) fn make_room(&mut self, fields_max: usize) {
        if self.lines.len() < REQUEST_LINES + fields_max {
            *self = Self::new(fields_max);
        }
    }

    /// Returns its allocated memory, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.judged = 0;
        self.present = 0;
        self.repeated = 0;
    }

    /// Copies the contents of `other`, and allocates memory for them if necessary.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        if self.lines.len() < other.judged {
            self.lines = room_for(other.judged);
        }
        self.lines[..other.judged].copy_from_slice(&other.lines[..other.judged]);
        (self.judged, self.present, self.repeated, self.first) =
            (other.judged, other.present, other.repeated, other.first);
    }

    /// Returns the entries for lines that are being split.
    #[inline]
    pub(crate) fn lines_mut(&mut self) -> &mut [FieldSpans] {
        &mut self.lines
    }

    /// Returns the span of the request line, if it has been found.
    #[inline]
    pub(crate) fn request_line(&self) -> HeadSpan {
        self.lines[0].line()
    }

    /// Parses the unparsed fields among the first `count` lines. A rejected field is rejected again by the
    /// next call.
    #[inline(always)]
    pub(crate) fn parse(&mut self, bytes: &[u8], count: usize) -> Result<(), ParseError> {
        let first = self.judged.max(REQUEST_LINES);
        let Some(lines) = self.lines.get_mut(first..count) else { return Ok(()) };
        for line in lines.iter_mut() {
            line.parse(bytes)?;
        }
        // `HeadLimits::usable` keeps the number within 16 bits.
        let mut number = first as u16;
        for line in lines {
            if let Some(known) = line.known {
                let earlier = self.present & bit(known);
                self.repeated |= earlier;
                self.present |= bit(known);
                if earlier == 0 {
                    self.first[known as usize] = number;
                }
            }
            number = number.wrapping_add(1);
        }
        self.judged = count;
        Ok(())
    }

    /// Appends a field that has been parsed. Ignored if the table is full.
    pub(crate) fn push(&mut self, field: FieldSpans) {
        let number = self.judged.max(REQUEST_LINES);
        let Some(line) = self.lines.get_mut(number) else { return };
        *line = field;
        self.judged = number + 1;
        if let Some(known) = field.known {
            if self.present & bit(known) == 0 {
                self.first[known as usize] = number as u16;
            } else {
                self.repeated |= bit(known);
            }
            self.present |= bit(known);
        }
    }

    pub(crate) fn fields(&self) -> &[FieldSpans] {
        &self.lines[REQUEST_LINES.min(self.judged)..self.judged]
    }

    #[inline]
    pub(crate) fn first(&self, known: KnownField) -> Option<&FieldSpans> {
        match self.present & bit(known) {
            0 => None,
            _ => Some(&self.lines[usize::from(self.first[known as usize])]),
        }
    }

    /// Replaces the value of the first field with this name, if there is one.
    #[cold]
    pub(crate) fn replace_first(&mut self, known: KnownField, value: HeadSpan) {
        if self.has_any(&[known]) {
            self.lines[usize::from(self.first[known as usize])].value = value;
        }
    }

    #[inline]
    pub(crate) fn has_any(&self, known: &[KnownField]) -> bool {
        self.present & known.iter().fold(0, |set, &known| set | bit(known)) != 0
    }

    pub(crate) fn is_repeated(&self, known: KnownField) -> bool {
        self.repeated & bit(known) != 0
    }

    /// Iterates over all fields with this name, in order. Reads only one field, unless the name is repeated.
    pub(crate) fn all(&self, known: KnownField) -> impl DoubleEndedIterator<Item = &FieldSpans> {
        let first = usize::from(self.first[known as usize]);
        let candidates = match self.present & bit(known) {
            0 => &[],
            _ if self.is_repeated(known) => &self.lines[first..self.judged],
            _ => &self.lines[first..=first],
        };
        candidates.iter().filter(move |field| field.known == Some(known))
    }
}

const fn bit(known: KnownField) -> u64 {
    1 << known as u8
}
