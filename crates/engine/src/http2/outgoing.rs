//! Content of a response that waits for windows, for more urgent streams, or for room in the output.

use shearwater_io::{FileSlice, Item, Output, Piece};

use crate::limits::SPARE_BUFFER_BYTES_MAX;

/// The end of a response.
pub(crate) enum End {
    /// Complete, with these encoded trailer fields, or none.
    Complete { trailers: Vec<u8> },
    /// Cut off: the stream is reset after what was queued.
    Cut,
}

impl End {
    fn held_bytes(&self) -> usize {
        match self {
            Self::Complete { trailers } => trailers.capacity(),
            Self::Cut => 0,
        }
    }
}

/// Content that is to be sent.
#[derive(Default)]
pub(crate) struct Outgoing {
    content: Output,
    /// Bytes of it that were sent.
    sent: u64,
    /// No more follows.
    pub(crate) end: Option<End>,
}

impl Outgoing {
    /// The first `sent` bytes of `content` aren't to be sent.
    pub(crate) fn new(content: Output, sent: u64, end: Option<End>) -> Self {
        Self { content, sent, end }
    }

    /// Returns the bytes that are to be sent.
    pub(crate) fn len(&self) -> u64 {
        self.content.len() - self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the queue for more.
    pub(crate) fn queue(&mut self) -> &mut Vec<u8> {
        self.content.bytes_mut()
    }

    /// Appends the next `len` bytes to an output.
    pub(crate) fn append_to(&mut self, out: &mut Output, len: usize) {
        append_range(out, &self.content, self.sent, len);
        self.sent += len as u64;
        if self.is_empty() {
            self.content.clear(SPARE_BUFFER_BYTES_MAX);
            self.sent = 0;
        }
    }

    /// Returns its memory, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.content.capacity() + self.end.as_ref().map_or(0, End::held_bytes)
    }
}

/// Appends `len` bytes of content from `offset` on to an output: memory is copied, files are sent by range.
pub(crate) fn append_range(out: &mut Output, content: &Output, offset: u64, len: usize) {
    let mut left = len;
    for piece in content.pieces(offset) {
        match piece {
            _ if left == 0 => break,
            Piece::Bytes(bytes) => {
                let taken = left.min(bytes.len());
                out.bytes_mut().extend_from_slice(&bytes[..taken]);
                left -= taken;
            }
            Piece::File(slice) => {
                let taken = slice.len.min(left as u64);
                if taken < slice.len {
                    slice.file.continues();
                }
                out.push(Item::File(FileSlice { len: taken, ..slice }));
                left -= taken as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::rc::Rc;

    use shearwater_io::{FileSlice, Item, Output, Shared, SharedFile};

    use super::Outgoing;

    #[test]
    fn moves_content_in_pieces_of_any_length() {
        let file =
            SharedFile::new(File::open(std::env::current_exe().expect("this program")).expect("readable"));
        let mut content = Output::new();
        content.bytes_mut().extend_from_slice(b"head:one ");
        content.push(Item::Shared(Shared::Static(b"two ")));
        content.bytes_mut().extend_from_slice(b"three");
        content.push(Item::File(FileSlice { file: Rc::new(file), offset: 100, len: 50 }));
        for len in [1, 2, 7, 1000] {
            let copy = |outgoing: &mut Outgoing| {
                let mut out = Output::new();
                let (mut text, mut file_bytes) = (Vec::new(), 0);
                while !outgoing.is_empty() {
                    let now = len.min(outgoing.len() as usize);
                    outgoing.append_to(&mut out, now);
                    for (_, item) in out.items() {
                        let Item::File(slice) = item else { panic!("memory is copied") };
                        assert_eq!(slice.offset, 100 + file_bytes);
                        file_bytes += slice.len;
                    }
                    text.extend_from_slice(out.bytes());
                    out.clear(0);
                }
                (String::from_utf8(text).expect("text"), file_bytes)
            };
            let mut all = Output::new();
            all.bytes_mut().extend_from_slice(&content.bytes()[..9]);
            for (_, item) in content.items() {
                if all.items().len() == 1 {
                    all.bytes_mut().extend_from_slice(b"three");
                }
                all.push(item.clone());
            }
            let mut outgoing = Outgoing::new(all, 5, None);
            assert_eq!(copy(&mut outgoing), ("one two three".to_owned(), 50), "{len} at a time");
        }
    }
}
