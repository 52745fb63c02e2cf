//! Responses that are encoded once and sent many times. Those with a file keep it open for a moment.

use std::cell::OnceCell;
use std::rc::Rc;

use shearwater_http1::{ResponseContent, ResponseFraming, encode};
use shearwater_http2::encode_lines;
use shearwater_io::Item;

use crate::limits::{OPEN_FILE_MS_MAX, OPEN_FILES_MAX};
use crate::response::fields::{CONTENT_TYPE, append_field, have_name};
use crate::response::head::FieldLines;
use crate::response::header_rules::{Names, mask_of, mask_of_lines};

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
    /// `fields` for HTTP/2, from its first use on.
    block: OnceCell<Box<[u8]>>,
    body: Item,
}

impl Prebuilt {
    /// Encodes a response from its media type, further fields and body.
    ///
    /// # Errors
    /// The reason: the media type is invalid, or the further fields include a `Content-Type`.
    pub fn new(media_type: &str, lines: &FieldLines, body: Item) -> Result<Self, String> {
        let mut fields = Vec::new();
        append_field(&mut fields, CONTENT_TYPE, media_type.as_bytes())?;
        let type_len = fields.len();
        if lines.has(CONTENT_TYPE) {
            return Err(format!("the fields of a response of type {media_type} have another Content-Type"));
        }
        fields.extend_from_slice(lines.as_bytes());
        let names = mask_of_lines(lines.as_bytes());
        let length_at = fields.len();
        encode::content_length(&mut fields, body.len());
        encode::end_of_head(&mut fields);
        let fields = fields.into_boxed_slice();
        Ok(Self { fields, type_len, length_at, names, block: OnceCell::new(), body })
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

    /// Returns its fields as a header block of HTTP/2.
    pub(crate) fn block(&self) -> &[u8] {
        self.block.get_or_init(|| encode_lines(&self.fields))
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

/// File responses of the last moments, at most `OPEN_FILES_MAX`. Other caches hold them by `Weak`, so
/// that no deleted file stays open any longer.
#[derive(Default)]
pub(crate) struct OpenFiles {
    responses: Vec<Rc<Prebuilt>>,
    /// Time at which the current entries are dropped, if any outlast their turn.
    until_ms: Option<u64>,
}

impl OpenFiles {
    /// Caches a response if its body is a file that isn't held elsewhere, and there is room.
    #[inline]
    pub(crate) fn keep(&mut self, response: Rc<Prebuilt>) {
        let is_held = Rc::strong_count(&response) > 1;
        if matches!(response.body(), Item::File(_)) && !is_held && self.responses.len() < OPEN_FILES_MAX {
            self.responses.push(response);
        }
    }

    /// Drops files that may change at any moment; the rest after `OPEN_FILE_MS_MAX`.
    #[inline]
    pub(crate) fn end_turn(&mut self, now_ms: u64) {
        if !self.responses.is_empty() {
            self.evict(now_ms);
        }
    }

    fn evict(&mut self, now_ms: u64) {
        if self.until_ms.is_some_and(|until_ms| until_ms <= now_ms) {
            self.responses.clear();
        } else {
            self.responses.retain(|response| is_left_alone(response));
        }
        let until_ms =
            self.until_ms.filter(|until_ms| now_ms < *until_ms).unwrap_or(now_ms + OPEN_FILE_MS_MAX);
        self.until_ms = (!self.responses.is_empty()).then_some(until_ms);
    }

    /// Returns the time at which entries are to be dropped.
    #[inline]
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.until_ms
    }
}

/// Returns true if the file has not changed recently; a recently changed one is copied.
fn is_left_alone(response: &Prebuilt) -> bool {
    matches!(response.body(), Item::File(slice) if slice.file.is_lent())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::rc::Rc;

    use shearwater_io::{FileSlice, Item, Shared, SharedFile};

    use super::{OPEN_FILE_MS_MAX, OPEN_FILES_MAX, OpenFiles};
    use crate::{FieldLines, Prebuilt};

    fn response(body: Item) -> Rc<Prebuilt> {
        Rc::new(Prebuilt::new("text/plain", &FieldLines::new(), body).expect("a media type"))
    }

    fn opened() -> SharedFile {
        SharedFile::new(File::open(std::env::current_exe().expect("this program")).expect("it can be read"))
    }

    fn file_of(file: SharedFile) -> Rc<Prebuilt> {
        response(Item::File(FileSlice { file: Rc::new(file), offset: 0, len: 1 }))
    }

    fn file() -> Rc<Prebuilt> {
        file_of(opened())
    }

    #[test]
    fn caches_open_files_for_a_moment_but_no_memory() {
        let mut open_files = OpenFiles::default();
        let (file, memory) = (file(), response(Item::Shared(Shared::Static(b"x"))));
        let weak = [Rc::downgrade(&file), Rc::downgrade(&memory)];
        open_files.keep(file);
        open_files.keep(memory);
        assert!(weak[0].upgrade().is_some() && weak[1].upgrade().is_none());
        open_files.end_turn(1_000);
        assert_eq!(open_files.due_ms(), Some(1_000 + OPEN_FILE_MS_MAX));
        open_files.end_turn(1_000 + OPEN_FILE_MS_MAX - 1);
        assert!(weak[0].upgrade().is_some());
        open_files.end_turn(1_000 + OPEN_FILE_MS_MAX);
        assert!(weak[0].upgrade().is_none() && open_files.due_ms().is_none());
    }

    /// The first entry's deadline holds for later entries, however often they are used.
    #[test]
    fn the_first_entry_decides_when_all_are_dropped() {
        let mut open_files = OpenFiles::default();
        open_files.keep(file());
        open_files.end_turn(0);
        let later = file();
        let weak = Rc::downgrade(&later);
        open_files.keep(later);
        open_files.end_turn(OPEN_FILE_MS_MAX - 1);
        assert!(weak.upgrade().is_some());
        open_files.end_turn(OPEN_FILE_MS_MAX + 7);
        assert!(weak.upgrade().is_none());
        open_files.keep(file());
        open_files.end_turn(OPEN_FILE_MS_MAX + 8);
        assert_eq!(open_files.due_ms(), Some(2 * OPEN_FILE_MS_MAX + 8));
    }

    #[test]
    fn drops_a_recently_changed_file_after_its_turn() {
        let mut open_files = OpenFiles::default();
        let file = file_of(opened().copied());
        let weak = Rc::downgrade(&file);
        open_files.keep(file);
        assert!(weak.upgrade().is_some());
        open_files.end_turn(0);
        assert!(weak.upgrade().is_none() && open_files.due_ms().is_none());
    }

    #[test]
    fn caches_a_bounded_number_of_files() {
        let mut open_files = OpenFiles::default();
        let one = file();
        let found = Rc::downgrade(&one);
        open_files.keep(one);
        for _ in 0..3 {
            open_files.keep(found.upgrade().expect("it is kept"));
        }
        assert_eq!(open_files.responses.len(), 1);
        let weak: Vec<_> = (0..2 * OPEN_FILES_MAX)
            .map(|_| {
                let file = file();
                let weak = Rc::downgrade(&file);
                open_files.keep(file);
                weak
            })
            .collect();
        assert_eq!(weak.iter().filter(|weak| weak.upgrade().is_some()).count(), OPEN_FILES_MAX - 1);
    }
}
