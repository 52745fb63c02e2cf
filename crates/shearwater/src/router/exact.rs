//! A hash table of exact paths, built once at startup and read by every request.
//!
//! A slot holds enough of the path to identify most: a lookup reads one cache line, and for paths over sixteen bytes
//! the key. The table is immutable and clients can't add to it, so collisions are fixed when it is built, and a lookup
//! that fails compares with those at most.

use super::node::Node;

const WORD_BYTES: usize = size_of::<u64>();
/// The longest path that the outer words cover, in bytes.
const OUTER_BYTES: usize = 2 * WORD_BYTES;

/// Minimum number of slots per path: most probes hit the right slot or an empty one.
const SLOTS_PER_PATH: usize = 4;

/// Odd multipliers: the first 64 fractional bits of the golden ratio and of the square root of two.
const FACTORS: (u64, u64) = (0x9E37_79B9_7F4A_7C15, 0x6A09_E667_F3BC_C909);

/// Marks an empty slot.
const NONE: u32 = u32::MAX;

/// The first and last eight bytes of a path. A shorter path is in `first` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Words {
    first: u64,
    last: u64,
}

/// A table slot; two fill a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Slot {
    words: Words,
    len: u32,
    /// The path's index, or `NONE`.
    number: u32,
}

/// A table from paths to nodes.
#[derive(Debug)]
pub(super) struct Exact {
    /// The number of slots is a power of two.
    slots: Box<[Slot]>,
    nodes: Box<[Node]>,
    paths: Box<[Box<[u8]>]>,
}

impl Exact {
    /// Builds a table of paths, each of which occurs once.
    pub(super) fn of(nodes: impl IntoIterator<Item = (Box<[u8]>, Node)>) -> Self {
        let (paths, nodes): (Vec<Box<[u8]>>, Vec<Node>) = nodes.into_iter().unzip();
        let empty = Slot { words: Words { first: 0, last: 0 }, len: 0, number: NONE };
        let mut slots = vec![empty; (paths.len() * SLOTS_PER_PATH).next_power_of_two()].into_boxed_slice();
        for (number, path) in (0..).zip(&paths) {
            let words = words(path);
            let mut index = slot_index(path, words, slots.len());
            while slots[index].number != NONE {
                index = (index + 1) % slots.len();
            }
            let len = u32::try_from(path.len()).expect("a path is shorter than 4 GiB");
            slots[index] = Slot { words, len, number };
        }
        Self { slots, nodes: nodes.into_boxed_slice(), paths: paths.into_boxed_slice() }
    }

    /// Returns the node of a path.
    #[inline(always)]
    pub(super) fn get(&self, path: &[u8]) -> Option<&Node> {
        if self.nodes.is_empty() {
            return None;
        }
        let words = words(path);
        let mut index = slot_index(path, words, self.slots.len());
        loop {
            let slot = self.slots.get(index)?;
            if slot.words == words && slot.len as usize == path.len() && self.matches_inner(slot.number, path)
            {
                return self.nodes.get(slot.number as usize);
            }
            if slot.number == NONE {
                return None;
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
    }

    /// Returns true if the bytes between the outer words match too.
    #[inline(always)]
    fn matches_inner(&self, number: u32, path: &[u8]) -> bool {
        path.len() <= OUTER_BYTES || self.paths.get(number as usize).is_some_and(|known| **known == *path)
    }
}

/// Returns the outer words of a path.
#[inline(always)]
fn words(path: &[u8]) -> Words {
    match (path.first_chunk(), path.last_chunk()) {
        (Some(first), Some(last)) => {
            Words { first: u64::from_le_bytes(*first), last: u64::from_le_bytes(*last) }
        }
        _ => words_of_short(path),
    }
}

#[inline(never)]
fn words_of_short(path: &[u8]) -> Words {
    let mut first = [0; WORD_BYTES];
    first[..path.len()].copy_from_slice(path);
    Words { first: u64::from_le_bytes(first), last: 0 }
}

/// Returns the first slot to probe for a path in a table of `slots` slots.
#[inline(always)]
fn slot_index(path: &[u8], words: Words, slots: usize) -> usize {
    let mut mixed = mix(words.first, words.last);
    if path.len() > OUTER_BYTES {
        mixed = mix_inner(mixed, path);
    }
    (mixed as usize).wrapping_add(path.len()) & (slots - 1)
}

/// Mixes in the bytes between the outer words, because many paths begin and end alike.
#[inline(never)]
fn mix_inner(mixed: u64, path: &[u8]) -> u64 {
    let inner = &path[WORD_BYTES..path.len() - WORD_BYTES];
    inner.chunks(WORD_BYTES).fold(mixed, |mixed, chunk| mix(mixed, words_of_short(chunk).first))
}

/// Folds the halves of a 128-bit product.
#[inline(always)]
fn mix(one: u64, other: u64) -> u64 {
    let product = u128::from(one ^ FACTORS.0) * u128::from(other ^ FACTORS.1);
    product as u64 ^ (product >> u64::BITS) as u64
}

#[cfg(test)]
mod tests {
    use super::super::method::RouteMethod;
    use super::super::node::{Node, NodeBuilder};
    use super::{Exact, NONE};
    use crate::middleware::PathSteps;

    /// Builds a table. The `Allow` of each node begins with its path, to tell them apart.
    fn table(paths: &[String]) -> Exact {
        let node = |path: &String| {
            let others = [RouteMethod::from(path.as_str())];
            (path.as_bytes().into(), NodeBuilder::default().into_node(&others, PathSteps::default(), false))
        };
        Exact::of(paths.iter().map(node))
    }

    /// Returns the largest number of probes for any path.
    fn longest(table: &Exact) -> usize {
        let taken = table.slots.iter().chain(&*table.slots).map(|slot| slot.number != NONE);
        let (longest, _) = taken.fold((0, 0), |(longest, run), is_taken| {
            let run = if is_taken { run + 1 } else { 0 };
            (longest.max(run), run)
        });
        longest
    }

    #[test]
    fn finds_each_path_and_no_other() {
        let bytes = "/abcdefghijklmnopqrstuvwxyz/0123456789/";
        for until in 0..bytes.len() {
            // All prefixes of a path, and copies of it with one byte changed.
            let mut paths: Vec<String> = (0..until).map(|len| bytes[..len].to_owned()).collect();
            for place in 0..until {
                let mut other = bytes[..until].to_owned();
                other.replace_range(place..=place, "~");
                paths.push(other);
            }
            let table = table(&paths);
            for path in &paths {
                let found = table.get(path.as_bytes()).map(Node::allow);
                assert_eq!(found, Some(format!("{path}, OPTIONS").as_str()));
            }
            assert!(table.get(&bytes.as_bytes()[..until]).is_none());
            assert!(table.get(b"\0").is_none() && table.get(b"/a\0").is_none());
        }
    }

    /// Typical paths, which differ in a few bytes at the front, in the middle or at the end.
    #[test]
    fn spreads_similar_paths() {
        for (before, behind) in
            [("/", ""), ("/api/v1/item/", ""), ("/api/v1/item/", "/description"), ("", "")]
        {
            for step in [1, 7, 1000] {
                let paths: Vec<_> =
                    (0..1000).map(|number| format!("{before}{:05}{behind}", number * step)).collect();
                let longest = longest(&table(&paths));
                assert!(longest <= 16, "{longest} for {before}N{behind} by {step}");
            }
        }
    }
}
