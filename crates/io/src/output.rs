//! Outputs of sends: bytes, interleaved with shared blocks and ranges of files.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use crate::SharedFile;

/// Immutable shared bytes: sent without a copy, freed with the last send.
#[derive(Clone)]
pub enum Shared {
    /// Bytes of the program's image.
    Static(&'static [u8]),
    /// A block held by a worker: counted without atomics; one `Arc` for all workers.
    Block(Rc<Arc<[u8]>>),
}

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Static(bytes) => bytes,
            Self::Block(block) => block,
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} bytes)", self.len())
    }
}

/// A range of an open file.
#[derive(Debug, Clone)]
pub struct FileSlice {
    /// The file, shared by the sends of one worker.
    pub file: Rc<SharedFile>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// An item between an output's bytes.
#[derive(Debug, Clone)]
pub enum Item {
    /// A whole shared block.
    Shared(Shared),
    /// A range of a file.
    File(FileSlice),
}

impl Item {
    /// Returns its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Shared(block) => block.len() as u64,
            Self::File(slice) => slice.len,
        }
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns its remainder from `offset` on.
    fn piece(&self, offset: u64) -> Piece<'_> {
        match self {
            Self::Shared(block) => Piece::Bytes(&block[offset as usize..]),
            Self::File(slice) => Piece::File(FileSlice {
                file: Rc::clone(&slice.file),
                offset: slice.offset + offset,
                len: slice.len - offset,
            }),
        }
    }
}

/// A contiguous part of an output: the next one for the kernel.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// A range of a file.
    File(FileSlice),
}

/// All output of one send, in order: `bytes`, with items between them.
///
/// Reusable: [`Output::clear`] keeps the memory.
///
/// ```
/// use shearwater_io::{Item, Output, Shared};
///
/// let mut output = Output::new();
/// output.bytes_mut().extend_from_slice(b"Content-Length: 5\r\n\r\n");
/// output.push(Item::Shared(Shared::Static(b"hello")));
/// output.bytes_mut().extend_from_slice(b"HTTP/1.1 404 Not Found\r\n\r\n");
/// assert_eq!(output.len(), 21 + 5 + 26);
/// ```
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// Items in order, each with the number of bytes before it.
    items: Vec<(usize, Item)>,
    items_len: u64,
}

impl Output {
    /// Creates an empty output without allocating.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), items: Vec::new(), items_len: 0 }
    }

    /// Returns the bytes after the last item: append here.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the bytes in memory, without the items.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the items, each with the number of bytes before it.
    #[must_use]
    pub fn items(&self) -> &[(usize, Item)] {
        &self.items
    }

    /// Appends an item after the present bytes. Skips an empty one.
    pub fn push(&mut self, item: Item) {
        if !item.is_empty() {
            self.items_len += item.len();
            self.items.push((self.bytes.len(), item));
        }
    }

    /// Appends another output.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.items.extend(other.items.into_iter().map(|(at, item)| (before + at, item)));
        self.items_len += other.items_len;
    }

    /// Returns the total length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 + self.items_len
    }

    /// Returns the number of distinct files. Compares each item with those before it.
    #[must_use]
    pub fn files(&self) -> usize {
        let file_of = |item: &(usize, Item)| match &item.1 {
            Item::File(slice) => Some(Rc::as_ptr(&slice.file)),
            Item::Shared(_) => None,
        };
        let is_first = |index: &usize| {
            let (before, rest) = self.items.split_at(*index);
            let file = rest.first().and_then(file_of);
            file.is_some() && !before.iter().any(|item| file_of(item) == file)
        };
        (0..self.items.len()).filter(is_first).count()
    }

    /// Returns whether it has a range of a file.
    pub(crate) fn has_file(&self) -> bool {
        self.items.iter().any(|(_, item)| matches!(item, Item::File(_)))
    }

    /// Returns whether another output continues one of its files.
    pub(crate) fn is_continued(&self) -> bool {
        self.items.iter().any(|(_, item)| matches!(item, Item::File(slice) if slice.file.is_continued()))
    }

    /// Returns whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory that it holds, in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.items.capacity() * size_of::<(usize, Item)>()
    }

    /// Empties it and drops its items; keeps up to `keep_bytes` of memory, including the items' capacity.
    pub fn clear(&mut self, keep_bytes: usize) {
        self.bytes.clear();
        self.items.clear();
        self.items_len = 0;
        if self.capacity() > keep_bytes {
            self.shrink_to(keep_bytes);
        }
    }

    /// Frees memory of an empty output beyond `keep_bytes`, keeping the bytes' capacity first.
    #[cold]
    fn shrink_to(&mut self, keep_bytes: usize) {
        self.bytes.shrink_to(keep_bytes);
        let left = keep_bytes.saturating_sub(self.bytes.capacity());
        self.items.shrink_to(left / size_of::<(usize, Item)>());
    }

    /// Returns the contiguous piece that starts at `offset`; `None` at the end.
    #[must_use]
    pub fn piece_at(&self, offset: u64) -> Option<Piece<'_>> {
        self.pieces(offset).next()
    }

    /// Returns all pieces from `offset` on, in order, none of them empty.
    pub fn pieces(&self, offset: u64) -> impl Iterator<Item = Piece<'_>> {
        Pieces { output: self, passed_bytes: 0, passed_items: 0, skip: offset }
    }
}

/// Iterates over an output.
struct Pieces<'a> {
    output: &'a Output,
    passed_bytes: usize,
    passed_items: usize,
    /// Bytes still to skip.
    skip: u64,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let item = self.output.items.get(self.passed_items);
            let until = item.map_or(self.output.bytes.len(), |(at, _)| *at);
            if self.passed_bytes < until {
                let bytes = &self.output.bytes[self.passed_bytes..until];
                self.passed_bytes = until;
                if let Some(from) = self.enter(bytes.len() as u64) {
                    return Some(Piece::Bytes(&bytes[from as usize..]));
                }
            }
            let (_, item) = item?;
            self.passed_items += 1;
            if let Some(from) = self.enter(item.len()) {
                return Some(item.piece(from));
            }
        }
    }
}

impl Pieces<'_> {
    /// Returns the start in a section of `len` bytes; `None` if all of it is skipped.
    fn enter(&mut self, len: u64) -> Option<u64> {
        if self.skip >= len {
            self.skip -= len;
            return None;
        }
        Some(std::mem::take(&mut self.skip))
    }
}
