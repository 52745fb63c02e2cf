//! What the heads of a worker's requests are made of: blocks of bytes, header maps and values, used again.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::limits::{HEAD_BLOCK_BYTES, HEAD_IN_BLOCK_BYTES_MAX, SPARE_MAP_FIELDS_MAX, SPARE_MAPS_MAX};
use crate::usual_values::UsualValues;

/// One worker's.
#[derive(Debug)]
pub(crate) struct HeadPool {
    /// The block that the next copies are cut from. Once all of them are gone it begins anew.
    block: BytesMut,
    maps: Vec<HeaderMap>,
    pub(crate) values: UsualValues,
}

impl HeadPool {
    pub(crate) fn new() -> Self {
        Self {
            block: BytesMut::with_capacity(HEAD_BLOCK_BYTES),
            maps: Vec::new(),
            values: UsualValues::new(),
        }
    }

    /// A copy of a head that its fields can be cut from without further copies.
    pub(crate) fn copy(&mut self, head: &[u8]) -> Bytes {
        if head.len() > HEAD_IN_BLOCK_BYTES_MAX {
            return Bytes::copy_from_slice(head);
        }
        if self.block.capacity() < head.len() {
            self.block.reserve(HEAD_BLOCK_BYTES);
        }
        self.block.extend_from_slice(head);
        self.block.split().freeze()
    }

    /// An empty map with room for so many fields. One that grows costs more than a new one.
    pub(crate) fn map(&mut self, fields: usize) -> HeaderMap {
        let is_fit = self.maps.last().is_some_and(|map| map.capacity() >= fields);
        let spare = if is_fit { self.maps.pop() } else { None };
        spare.unwrap_or_else(|| HeaderMap::with_capacity(fields))
    }

    /// Takes a map back for a further request.
    pub(crate) fn put(&mut self, mut map: HeaderMap) {
        let is_kept =
            self.maps.len() < SPARE_MAPS_MAX && (1..=SPARE_MAP_FIELDS_MAX).contains(&map.capacity());
        if is_kept {
            map.clear();
            self.maps.push(map);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::{HEAD_BLOCK_BYTES, HEAD_IN_BLOCK_BYTES_MAX, HeadPool, SPARE_MAP_FIELDS_MAX, SPARE_MAPS_MAX};

    #[test]
    fn a_block_is_used_again_once_nobody_holds_a_part_of_it() {
        let mut pool = HeadPool::new();
        let head = [b'a'; HEAD_BLOCK_BYTES / 10];
        let mut places = std::collections::HashSet::new();
        for _ in 0..1000 {
            let copy = pool.copy(&head);
            assert_eq!(copy, &head[..]);
            places.insert(copy.as_ptr());
        }
        assert!(places.len() <= 20, "{} places", places.len());
    }

    #[test]
    fn what_is_held_stays_as_it_was_and_holds_one_block() {
        let mut pool = HeadPool::new();
        let held: Vec<_> = (0..200u8).map(|number| pool.copy(&[number; HEAD_BLOCK_BYTES / 8])).collect();
        for (number, copy) in (0..200u8).zip(&held) {
            assert!(copy.iter().all(|byte| *byte == number));
        }
    }

    #[test]
    fn a_long_head_gets_memory_of_its_own() {
        let mut pool = HeadPool::new();
        let room = pool.block.capacity();
        let long = vec![b'x'; HEAD_IN_BLOCK_BYTES_MAX + 1];
        assert_eq!(pool.copy(&long), long);
        assert_eq!(pool.block.capacity(), room);
        assert_eq!(pool.copy(&long[1..]).len(), HEAD_IN_BLOCK_BYTES_MAX);
        assert!(pool.block.capacity() < room);
    }

    #[test]
    fn keeps_a_bounded_number_of_maps_and_no_large_one() {
        let mut pool = HeadPool::new();
        for _ in 0..=SPARE_MAPS_MAX {
            let mut map = HeaderMap::with_capacity(8);
            map.insert(header::HOST, HeaderValue::from_static("x"));
            pool.put(map);
        }
        assert_eq!(pool.maps.len(), SPARE_MAPS_MAX);
        assert!(pool.map(SPARE_MAP_FIELDS_MAX).capacity() >= SPARE_MAP_FIELDS_MAX);
        assert_eq!(pool.maps.len(), SPARE_MAPS_MAX, "none of them is large enough");
        assert!(pool.map(8).is_empty());
        pool.put(HeaderMap::with_capacity(SPARE_MAP_FIELDS_MAX * 2));
        pool.put(HeaderMap::new());
        assert_eq!(pool.maps.len(), SPARE_MAPS_MAX - 1);
    }
}
