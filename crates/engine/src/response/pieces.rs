//! Bodies assembled from bytes and from ranges of blocks and files.

use std::ops::Range;
use std::rc::Rc;

use shearwater_io::{FileSlice, Item, Output, Shared};

use crate::response::prebuilt::Prebuilt;

/// A body of several pieces, for [`Response::body_pieces`](crate::Response::body_pieces). It is sent at once,
/// and files are sent without a copy if the system supports it.
#[derive(Debug, Default)]
pub struct Pieces {
    bytes: Vec<u8>,
    /// Pairs of an offset in `bytes` and the range inserted there, in order.
    stretches: Vec<(usize, Stretch)>,
    stretches_len: u64,
    whole: Option<Rc<Prebuilt>>,
}

/// A range of an item.
#[derive(Debug)]
enum Stretch {
    Block(Shared, Range<usize>),
    File(FileSlice),
}

impl Pieces {
    /// An empty body.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a copy of `bytes`.
    pub fn bytes(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.bytes.extend_from_slice(bytes.as_ref());
        self
    }

    /// Appends `len` bytes of `item` from `offset` on. Memory is copied once, when the response is encoded.
    ///
    /// # Panics
    /// If the range exceeds the item.
    pub fn stretch(&mut self, item: &Item, offset: u64, len: u64) -> &mut Self {
        let end = offset.checked_add(len).filter(|&end| end <= item.len());
        let end = end.expect("a stretch within its item");
        let stretch = match item {
            Item::Shared(block) => Stretch::Block(block.clone(), offset as usize..end as usize),
            Item::File(slice) => {
                Stretch::File(FileSlice { offset: slice.offset + offset, len, ..slice.clone() })
            }
        };
        self.stretches.push((self.bytes.len(), stretch));
        self.stretches_len += len;
        self
    }

    /// Names the response that its ranges belong to. Other requests then find its file open for a moment, as
    /// if that response had been sent.
    pub fn of(&mut self, whole: &Rc<Prebuilt>) -> &mut Self {
        self.whole = Some(Rc::clone(whole));
        self
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 + self.stretches_len
    }

    /// Returns true if it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends all pieces to an output; returns the response that they belong to.
    pub(crate) fn append_to(self, out: &mut Output) -> Option<Rc<Prebuilt>> {
        let mut passed = 0;
        for (until, stretch) in self.stretches {
            out.bytes_mut().extend_from_slice(&self.bytes[passed..until]);
            passed = until;
            match stretch {
                Stretch::Block(block, range) => out.bytes_mut().extend_from_slice(&block[range]),
                Stretch::File(slice) => out.push(Item::File(slice)),
            }
        }
        out.bytes_mut().extend_from_slice(&self.bytes[passed..]);
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::rc::Rc;

    use shearwater_io::{FileSlice, Item, Output, Shared, SharedFile};

    use shearwater_http1::Method;

    use super::Pieces;
    use crate::limits::OPEN_FILE_MS_MAX;
    use crate::response::responder::Responder;
    use crate::{FieldLines, Prebuilt, Response};

    /// Returns the body of the response to a request with this method.
    fn body_of(
        responder: &mut Responder,
        method: Method,
        handler: impl FnOnce(&mut Response<'_>),
    ) -> Vec<u8> {
        let bytes = responder.encoded(method, handler);
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("\r\nContent-Length: 3\r\n"), "{text}");
        let head_len = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        bytes[head_len..].to_vec()
    }

    #[test]
    fn appends_pieces_in_order() {
        let file = File::open(std::env::current_exe().expect("this program")).expect("it can be read");
        let file = Rc::new(SharedFile::new(file));
        let file = Item::File(FileSlice { file, offset: 10, len: 20 });
        let block = Item::Shared(Shared::Static(b"0123456789"));
        let mut pieces = Pieces::new();
        pieces.bytes("a").stretch(&block, 2, 3).stretch(&file, 5, 15).stretch(&block, 10, 0);
        pieces.bytes("b").bytes("c").stretch(&file, 0, 1).stretch(&block, 0, 1);
        assert_eq!(pieces.len(), 3 + 3 + 15 + 1 + 1);
        assert!(!pieces.is_empty());
        let mut out = Output::new();
        assert!(pieces.append_to(&mut out).is_none());
        assert_eq!((out.bytes(), out.len()), (&b"a234bc0"[..], 23));
        let files = out.items().iter().map(|(before, item)| match item {
            Item::File(slice) => (*before, slice.offset, slice.len),
            Item::Shared(_) => panic!("a part of a block is copied"),
        });
        assert_eq!(files.collect::<Vec<_>>(), [(4, 15, 15), (6, 10, 1)]);
    }

    #[test]
    fn a_response_of_pieces_has_their_length_and_no_body_for_head() {
        let pieces = || {
            let mut pieces = Pieces::new();
            pieces.bytes("a").stretch(&Item::Shared(Shared::Static(b"0123456789")), 2, 2);
            pieces
        };
        let mut responder = Responder::new(0);
        let mut body = |method, last: Option<&'static str>| {
            body_of(&mut responder, method, |response| {
                response.body("before").body_pieces(pieces());
                last.map(|text| response.body(text));
            })
        };
        assert_eq!(body(Method::Get, None), b"a23");
        assert_eq!(body(Method::Head, None), b"");
        assert_eq!(body(Method::Get, Some("xyz")), b"xyz", "the last body holds");
    }

    #[test]
    fn keeps_the_file_of_pieces_open_for_a_moment() {
        let file = File::open(std::env::current_exe().expect("this program")).expect("it can be read");
        let item = Item::File(FileSlice { file: Rc::new(SharedFile::new(file)), offset: 0, len: 10 });
        let whole = Rc::new(Prebuilt::new("text/plain", &FieldLines::new(), item).expect("a media type"));
        let weak = Rc::downgrade(&whole);
        let mut responder = Responder::new(0);
        body_of(&mut responder, Method::Get, move |response| {
            let mut pieces = Pieces::new();
            pieces.of(&whole).stretch(whole.body(), 0, 3);
            response.body_pieces(pieces);
        });
        assert!(weak.upgrade().is_some());
        responder.open_files.end_turn(0);
        assert!(weak.upgrade().is_some());
        responder.open_files.end_turn(OPEN_FILE_MS_MAX);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    #[should_panic(expected = "within its item")]
    fn a_stretch_ends_with_its_item() {
        Pieces::new().stretch(&Item::Shared(Shared::Static(b"abc")), 2, 2);
    }
}
