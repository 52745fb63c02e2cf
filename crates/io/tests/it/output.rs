//! Outputs compared with the simplest model: all bytes in a row.

use std::os::unix::fs::FileExt;
use std::rc::Rc;

use shearwater_io::{Item, Output, Piece, Shared, SharedFile};
use testkit::random::{Rng, part};

use crate::contract::world::{block_item, file_item, file_of, pattern};

const FILE_BYTES: usize = 500;

/// An output and the same bytes in a row.
#[derive(Default)]
struct Both {
    output: Output,
    model: Vec<u8>,
}

impl Both {
    fn append(&mut self, random: &mut Rng, file: &Rc<SharedFile>, contents: &[u8]) {
        let len = random.usize(..9); // none at all, often enough
        let from = random.usize(..FILE_BYTES - len);
        let bytes = &contents[from..from + len];
        match random.usize(..4) {
            0 => self.output.push(file_item(file, from as u64, len as u64)),
            1 => self.output.push(block_item(bytes)),
            _ => self.output.bytes_mut().extend_from_slice(bytes),
        }
        self.model.extend_from_slice(bytes);
    }

    fn check(&self) {
        assert_eq!(self.output.len(), self.model.len() as u64);
        assert_eq!(self.output.is_empty(), self.model.is_empty());
        for offset in 0..self.model.len() + 3 {
            let rest = self.model.get(offset..).unwrap_or(&[]);
            let first = self.output.piece_at(offset as u64).map(|piece| contents_of(&piece));
            match first {
                None => assert!(rest.is_empty(), "nothing at {offset} of {}", self.model.len()),
                Some(first) => assert!(!first.is_empty() && rest.starts_with(&first), "at {offset}"),
            }
            let all: Vec<u8> =
                self.output.pieces(offset as u64).flat_map(|piece| contents_of(&piece)).collect();
            assert_eq!(all, rest, "from {offset} on");
        }
    }
}

fn contents_of(piece: &Piece<'_>) -> Vec<u8> {
    match piece {
        Piece::Bytes(bytes) => bytes.to_vec(),
        Piece::File(slice) => {
            let mut bytes = vec![0; slice.len as usize];
            slice.file.read_exact_at(&mut bytes, slice.offset).expect("the file is that long");
            bytes
        }
    }
}

#[test]
fn every_offset_of_random_outputs() {
    let contents = pattern(FILE_BYTES, 1);
    let file = file_of(&contents);
    for seed in 0..300 {
        let mut random = part(seed, 0);
        let mut both = Both::default();
        for _ in 0..random.usize(..12) {
            both.append(&mut random, &file, &contents);
        }
        both.check();
    }
}

#[test]
fn clear_drops_items_and_keeps_bounded_memory() {
    let block: Rc<std::sync::Arc<[u8]>> = Rc::new(vec![1; 10].into());
    let mut output = Output::new();
    output.bytes_mut().extend_from_slice(&[0; 10_000]);
    output.push(Item::Shared(Shared::Block(Rc::clone(&block))));
    output.clear(4096);
    assert!(output.is_empty() && output.piece_at(0).is_none());
    assert_eq!(Rc::strong_count(&block), 1);
    assert!((4096..10_000).contains(&output.bytes_mut().capacity()));
    for _ in 0..1000 {
        output.push(Item::Shared(Shared::Static(b"item")));
    }
    output.clear(4096);
    assert!(output.capacity() <= 4096, "the room of items counts: {} bytes", output.capacity());
}

#[test]
fn leaves_out_empty_items() {
    let mut output = Output::new();
    output.push(Item::Shared(Shared::Static(b"")));
    output.push(file_item(&file_of(b""), 0, 0));
    assert!(output.is_empty() && output.items().is_empty());
}
