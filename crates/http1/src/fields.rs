//! The fields of a head: one field line parsed, and the table that holds them all.

use crate::span::Span;
use crate::{Known, Reject, class, name_hash};

/// The lines before the first field.
const REQUEST_LINES: usize = 1;

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
    pub(crate) const NONE: Self = Self { name: Span::EMPTY, value: Span::EMPTY, known: None };

    /// Makes it the line `start..end` that nobody has looked at. `colon` is the place of its first colon, or the line's end.
    #[inline(always)]
    pub(crate) fn cut(&mut self, start: usize, colon: usize, end: usize) {
        self.name = Span::new(start, colon);
        self.value.set_end(end);
    }

    /// What [`FieldSpans::cut`] was given.
    #[cfg(test)]
    pub(crate) fn as_cut(&self) -> (usize, usize, usize) {
        (self.name.start(), self.name.end(), self.value.end())
    }

    /// The line as a whole, as long as nobody has looked at it.
    fn line(&self) -> Span {
        Span::new(self.name.start(), self.value.end())
    }

    /// Looks at a line that is not empty and has no control bytes other than HTAB (RFC 9112 5). Its CRLF stands behind it.
    #[inline(always)]
    fn judge(&mut self, bytes: &[u8]) -> Result<(), Reject> {
        let (start, colon, end) = (self.name.start(), self.name.end(), self.value.end());
        let known = name_hash::find_at(bytes, start, colon);
        self.known = known;
        if known.is_none() && !class::is_token(&bytes[start..colon]) {
            return Err(refuse_line(&bytes[start..end], &bytes[start..colon]));
        }
        // Nearly everyone sends one space before the value, and none behind. In an empty one the CR would stand there.
        let is_visible = |byte: Option<&u8>| byte.is_some_and(|byte| *byte > b' ');
        let is_usual = is_visible(bytes.get(colon + 2))
            && bytes.get(colon..colon + 2) == Some(b": ")
            && is_visible(bytes.get(end - 1));
        self.value = if is_usual { Span::new(colon + 2, end) } else { trim(bytes, colon, end)? };
        Ok(())
    }

    pub(crate) fn view<'a>(&self, bytes: &'a [u8]) -> Field<'a> {
        Field { name: self.name.text(bytes), value: self.value.bytes(bytes), known: self.known }
    }
}

/// Why a line is refused whose name is not a token, or that has no colon behind it.
#[cold]
fn refuse_line(line: &[u8], name: &[u8]) -> Reject {
    let is_blank = |byte: Option<&u8>| byte.copied().is_some_and(class::is_blank);
    if is_blank(line.first()) {
        Reject::ObsFold
    } else if name.len() == line.len() {
        Reject::MissingColon
    } else if is_blank(name.last()) {
        Reject::SpaceBeforeColon
    } else {
        Reject::InvalidFieldName
    }
}

/// What stands between the colon and the end of a line, without the OWS around it.
#[cold]
fn trim(bytes: &[u8], colon: usize, mut end: usize) -> Result<Span, Reject> {
    let [b':', rest @ ..] = &bytes[colon..end] else { return Err(Reject::MissingColon) };
    let mut value = rest;
    while let [first, rest @ ..] = value
        && class::is_blank(*first)
    {
        value = rest;
    }
    while let [rest @ .., last] = value
        && class::is_blank(*last)
    {
        value = rest;
        end -= 1;
    }
    Ok(Span::new(end - value.len(), end))
}

/// The lines of one head, in order: the request line, then the fields. Allocated once, unless it is made [empty](FieldTable::empty).
#[derive(Debug)]
pub(crate) struct FieldTable {
    /// The first one is the request line's.
    lines: Box<[FieldSpans]>,
    /// How many lines have been judged.
    judged: usize,
    /// Bit `known`: the name occurs.
    present: u64,
    /// Bit `known`: the name occurs more than once.
    repeated: u64,
    /// For each known name that occurs, the number of its first line.
    first: [u16; Known::COUNT],
}

fn room_for(lines: usize) -> Box<[FieldSpans]> {
    vec![FieldSpans::NONE; lines].into_boxed_slice()
}

impl FieldTable {
    pub(crate) fn new(fields_max: usize) -> Self {
        Self { lines: room_for(REQUEST_LINES + fields_max), ..Self::empty() }
    }

    /// One without room: it can be given what another one says.
    pub(crate) fn empty() -> Self {
        Self { lines: Box::default(), judged: 0, present: 0, repeated: 0, first: [0; Known::COUNT] }
    }

    /// Gives it the room that one has which was made for so many fields; what it says is forgotten where it had less.
    #[inline]
    pub(crate) fn make_room(&mut self, fields_max: usize) {
        if self.lines.len() < REQUEST_LINES + fields_max {
            *self = Self::new(fields_max);
        }
    }

    /// Memory that it holds beside itself, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.judged = 0;
        self.present = 0;
        self.repeated = 0;
    }

    /// Makes it say what `other` says; makes as much room as that needs.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        if self.lines.len() < other.judged {
            self.lines = room_for(other.judged);
        }
        self.lines[..other.judged].copy_from_slice(&other.lines[..other.judged]);
        (self.judged, self.present, self.repeated, self.first) =
            (other.judged, other.present, other.repeated, other.first);
    }

    /// Room for the lines that are cut.
    #[inline]
    pub(crate) fn lines_mut(&mut self) -> &mut [FieldSpans] {
        &mut self.lines
    }

    /// The request line, if it has been cut.
    #[inline]
    pub(crate) fn request_line(&self) -> Span {
        self.lines[0].line()
    }

    /// Judges the fields among the first `count` lines that have not been judged. A field that is refused will be refused again.
    #[inline(always)]
    pub(crate) fn judge(&mut self, bytes: &[u8], count: usize) -> Result<(), Reject> {
        let first = self.judged.max(REQUEST_LINES);
        let Some(lines) = self.lines.get_mut(first..count) else { return Ok(()) };
        for line in lines.iter_mut() {
            line.judge(bytes)?;
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

    pub(crate) fn fields(&self) -> &[FieldSpans] {
        &self.lines[REQUEST_LINES.min(self.judged)..self.judged]
    }

    #[inline]
    pub(crate) fn first(&self, known: Known) -> Option<&FieldSpans> {
        match self.present & bit(known) {
            0 => None,
            _ => Some(&self.lines[usize::from(self.first[known as usize])]),
        }
    }

    /// Replaces the value of the first field with this name, if there is one.
    #[cold]
    pub(crate) fn replace_first(&mut self, known: Known, value: Span) {
        if self.has_any(&[known]) {
            self.lines[usize::from(self.first[known as usize])].value = value;
        }
    }

    #[inline]
    pub(crate) fn has_any(&self, known: &[Known]) -> bool {
        self.present & known.iter().fold(0, |set, &known| set | bit(known)) != 0
    }

    pub(crate) fn is_repeated(&self, known: Known) -> bool {
        self.repeated & bit(known) != 0
    }

    /// All fields with this name, in order. Looks at one field only, unless the name is repeated.
    pub(crate) fn all(&self, known: Known) -> impl Iterator<Item = &FieldSpans> {
        let first = usize::from(self.first[known as usize]);
        let candidates = match self.present & bit(known) {
            0 => &[],
            _ if self.is_repeated(known) => &self.lines[first..self.judged],
            _ => &self.lines[first..=first],
        };
        candidates.iter().filter(move |field| field.known == Some(known))
    }
}

const fn bit(known: Known) -> u64 {
    1 << known as u8
}
