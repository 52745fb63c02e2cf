//! Outputs for the suite: bytes, shared blocks and ranges of files.

use std::fs::File;
use std::io::Write;
use std::rc::Rc;

use shearwater_io::{FileSlice, Item, Output, Shared, SharedFile};

use testkit::random;

/// Returns an output of plain bytes.
pub(crate) fn plain(bytes: &[u8]) -> Output {
    let mut output = Output::new();
    output.bytes_mut().extend_from_slice(bytes);
    output
}

/// Returns bytes in which no two nearby sections are equal.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    random::bytes(&mut random::part(seed, 0), len)
}

/// Returns an open, unlinked file with these contents.
pub(crate) fn file_of(contents: &[u8]) -> Rc<SharedFile> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("shearwater-io-{}-{number}", std::process::id()));
    let mut options = File::options();
    let mut file = options.read(true).write(true).create_new(true).open(&path).expect("a file can be made");
    std::fs::remove_file(&path).expect("and its name removed");
    file.write_all(contents).expect("and written");
    Rc::new(SharedFile::new(file))
}

/// Returns a range of a file as an item.
pub(crate) fn file_item(file: &Rc<SharedFile>, offset: u64, len: u64) -> Item {
    Item::File(FileSlice { file: Rc::clone(file), offset, len })
}

/// Returns an output of some bytes and a range of a file.
pub(crate) fn with_file(head: &[u8], file: &Rc<SharedFile>, offset: u64, len: u64) -> Output {
    let mut output = plain(head);
    output.push(file_item(file, offset, len));
    output
}

/// Returns a shared block as an item.
pub(crate) fn block_item(block: &[u8]) -> Item {
    Item::Shared(Shared::Block(Rc::new(block.into())))
}

/// Returns an output of all kinds of items, of about `pieces` times 100 KB, and its bytes.
pub(crate) fn mixed(pieces: u64) -> (Output, Vec<u8>) {
    let contents = pattern(700_000, 7);
    let file = file_of(&contents);
    let mut output = Output::new();
    let mut wanted = Vec::new();
    for piece in 0..pieces {
        let head = pattern(200 + piece as usize * 13, piece);
        output.bytes_mut().extend_from_slice(&head);
        wanted.extend_from_slice(&head);
        if piece % 3 == 1 {
            let block = pattern(90_000, piece + 1000);
            output.push(block_item(&block));
            wanted.extend_from_slice(&block);
        } else {
            let from = piece as usize * 1001 % 400_000;
            output.push(file_item(&file, from as u64, 130_000));
            wanted.extend_from_slice(&contents[from..from + 130_000]);
        }
    }
    output.bytes_mut().extend_from_slice(b"the end");
    wanted.extend_from_slice(b"the end");
    (output, wanted)
}

/// Contents of an output, to compare at its return.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Contents {
    bytes: Vec<u8>,
    items: Vec<(usize, u64)>,
}

impl Contents {
    pub(super) fn of(output: &Output) -> Self {
        let items = output.items().iter().map(|(at, item)| (*at, item.len())).collect();
        Self { bytes: output.bytes().to_vec(), items }
    }

    /// Returns the contents of both, one after the other.
    pub(super) fn then(mut self, other: &Self) -> Self {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.items.extend(other.items.iter().map(|(at, len)| (before + at, *len)));
        self
    }
}
