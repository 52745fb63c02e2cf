//! What is sent: bytes, with shared blocks and pieces of files between them.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use crate::SharedFile;

/// Bytes that never change and belong to nobody: sent without a copy, freed when the last send is over.
#[derive(Clone)]
pub enum Shared {
    /// Bytes of the program itself.
    Static(&'static [u8]),
    /// A block that a worker holds: counted without atomics; one `Arc` for the workers together.
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

/// A piece of an open file.
#[derive(Debug, Clone)]
pub struct FileSlice {
    /// The file, shared by the sends of one worker.
    pub file: Rc<SharedFile>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// What stands between an output's bytes.
#[derive(Debug, Clone)]
pub enum Item {
    /// A shared block, whole.
    Shared(Shared),
    /// A piece of a file.
    File(FileSlice),
}

impl Item {
    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Shared(block) => block.len() as u64,
            Self::File(slice) => slice.len,
        }
    }

    /// Whether it adds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is left of it from `offset` on.
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

/// A piece of an output from a given offset on: what a driver hands to the kernel next.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// A piece of a file.
    File(FileSlice),
}

/// All that is sent to one connection at once, in order: `bytes`, with items between them.
///
/// Made to be kept and used again: [`Output::clear`] keeps the memory.
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
    /// (how many of `bytes` go before the item, the item), in order.
    items: Vec<(usize, Item)>,
    items_len: u64,
}

impl Output {
    /// An empty output that has allocated nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), items: Vec::new(), items_len: 0 }
    }

    /// The bytes behind the last item: append here.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes in memory, without the items.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The items, each with the number of bytes that go before it.
    #[must_use]
    pub fn items(&self) -> &[(usize, Item)] {
        &self.items
    }

    /// Appends an item behind the bytes so far. An empty one is left out.
    pub fn push(&mut self, item: Item) {
        if !item.is_empty() {
            self.items_len += item.len();
            self.items.push((self.bytes.len(), item));
        }
    }

    /// Length of all of it in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 + self.items_len
    }

    /// How many different files it has pieces of. Looks at each item, and at those before it.
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

    /// Whether a part of it is a piece of a file.
    pub(crate) fn has_file(&self) -> bool {
        self.items.iter().any(|(_, item)| matches!(item, Item::File(_)))
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that keeping it costs, in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.items.capacity() * size_of::<(usize, Item)>()
    }

    /// Empties it and lets go of its items; keeps the memory up to `keep_bytes`, items' room included.
    pub fn clear(&mut self, keep_bytes: usize) {
        self.bytes.clear();
        self.items.clear();
        self.items_len = 0;
        if self.capacity() > keep_bytes {
            self.shrink_to(keep_bytes);
        }
    }

    /// Frees what an empty one holds beyond `keep_bytes`: the bytes' room is kept first.
    #[cold]
    fn shrink_to(&mut self, keep_bytes: usize) {
        self.bytes.shrink_to(keep_bytes);
        let left = keep_bytes.saturating_sub(self.bytes.capacity());
        self.items.shrink_to(left / size_of::<(usize, Item)>());
    }

    /// The contiguous piece that starts at `offset`; `None` at the end.
    #[must_use]
    pub fn piece_at(&self, offset: u64) -> Option<Piece<'_>> {
        self.pieces(offset).next()
    }

    /// All pieces from `offset` on, in order, none of them empty.
    pub fn pieces(&self, offset: u64) -> impl Iterator<Item = Piece<'_>> {
        Pieces { output: self, passed_bytes: 0, passed_items: 0, skip: offset }
    }
}

/// Walks over an output.
struct Pieces<'a> {
    output: &'a Output,
    passed_bytes: usize,
    passed_items: usize,
    /// What is still to be left out.
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
    /// Where to begin in a stretch of `len` bytes; `None` where all of it is left out.
    fn enter(&mut self, len: u64) -> Option<u64> {
        if self.skip >= len {
            self.skip -= len;
            return None;
        }
        Some(std::mem::take(&mut self.skip))
    }
}
