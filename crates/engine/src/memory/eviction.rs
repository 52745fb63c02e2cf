//! Eviction: when the buffers are full, the largest connection makes room for a smaller one.

use crate::memory::NONE;

/// The way in which an evicted connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// `503`, then a lingering close; without a body in response to a `HEAD`.
    Refused { is_head: bool },
    /// A close in the middle of its response.
    CutOff,
    /// A reset: an earlier response is still being sent, so none can follow, or the PROXY header is incomplete.
    Reset,
}

/// Number of size classes, four to each doubling: sizes in one class differ by at most a quarter.
const CLASSES: usize = 128;
/// Steps within a doubling, in bits.
const STEP_BITS: u32 = 2;

/// Class of a holder that is in no list.
const NO_CLASS: u8 = u8::MAX;

/// A size class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class(u8);

impl Class {
    /// Returns the class of a size in bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        let bytes = bytes.max(1 << STEP_BITS);
        let doublings = bytes.ilog2() - STEP_BITS;
        let step = (bytes >> doublings) & ((1 << STEP_BITS) - 1);
        Self(((doublings << STEP_BITS) as usize + step).min(CLASSES - 1) as u8)
    }
}

/// A holder's links in the list of its class.
#[derive(Debug, Clone, Copy)]
struct Links {
    prev: u32,
    next: u32,
    class: u8,
}

impl Links {
    const UNLINKED: Self = Self { prev: NONE, next: NONE, class: NO_CLASS };
}

/// Holders by number, one list for each class.
#[derive(Debug)]
pub(crate) struct Holders {
    links: Vec<Links>,
    /// First holder of each class.
    heads: [u32; CLASSES],
    /// Bit set of the classes whose list isn't empty.
    occupied: u128,
}

impl Default for Holders {
    fn default() -> Self {
        Self { links: Vec::new(), heads: [NONE; CLASSES], occupied: 0 }
    }
}

impl Holders {
    /// Moves a holder to the list of a class, or to none.
    pub(crate) fn set(&mut self, number: u32, class: Option<Class>) {
        if self.links.len() <= number as usize {
            self.links.resize(number as usize + 1, Links::UNLINKED);
        }
        self.unlink(number);
        if let Some(Class(class)) = class {
            self.link(number, class);
        }
    }

    /// Returns the first holder of the largest class.
    pub(crate) fn largest(&self) -> Option<(u32, Class)> {
        let class = (u128::BITS - 1).checked_sub(self.occupied.leading_zeros())?;
        Some((self.heads[class as usize], Class(class as u8)))
    }

    /// Removes all holders and frees the lists.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn link(&mut self, number: u32, class: u8) {
        let head = std::mem::replace(&mut self.heads[usize::from(class)], number);
        self.links[number as usize] = Links { prev: NONE, next: head, class };
        if head != NONE {
            self.links[head as usize].prev = number;
        }
        self.occupied |= 1 << class;
    }

    fn unlink(&mut self, number: u32) {
        let Links { prev, next, class } =
            std::mem::replace(&mut self.links[number as usize], Links::UNLINKED);
        if class == NO_CLASS {
            return;
        }
        if next != NONE {
            self.links[next as usize].prev = prev;
        }
        if prev != NONE {
            self.links[prev as usize].next = next;
            return;
        }
        self.heads[usize::from(class)] = next;
        if next == NONE {
            self.occupied &= !(1 << class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, Class, Holders};

    #[test]
    fn size_classes_differ_by_a_quarter_at_most() {
        let mut sizes = (4..400).chain((9..50).map(|bits| 1 << bits)).chain([usize::MAX]);
        let mut before = (4, Class::of(0));
        assert_eq!(Class::of(3), before.1);
        for size in &mut sizes {
            let class = Class::of(size);
            assert!(class >= before.1, "{size}");
            assert!(
                class > before.1 || size <= before.0 + before.0 / 4 || class.0 == CLASSES as u8 - 1,
                "{size}"
            );
            if class > before.1 {
                before = (size, class);
            }
        }
        assert!(Class::of(60_000) > Class::of(48_000));
        assert_eq!(Class::of(usize::MAX).0, CLASSES as u8 - 1);
    }

    /// Compares with a plain list of all sizes.
    #[test]
    fn finds_the_largest_holder() {
        let mut holders = Holders::default();
        let mut sizes = vec![None; 50];
        let mut seed = 1_u32;
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (number, bytes) = (seed as usize >> 8 & 0xFF, 1_usize << (seed >> 27));
            let number = number % sizes.len();
            sizes[number] = (seed >> 16 & 3 != 0).then_some(bytes);
            holders.set(number as u32, sizes[number].map(Class::of));
            let most = sizes.iter().flatten().max().map(|bytes| Class::of(*bytes));
            let found = holders.largest();
            assert_eq!(found.map(|(_, class)| class), most);
            if let Some((number, class)) = found {
                assert_eq!(sizes[number as usize].map(Class::of), Some(class));
            }
        }
        holders.clear();
        assert!(holders.largest().is_none());
    }
}
