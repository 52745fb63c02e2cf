//! Reused memory for request heads: blocks of bytes, header maps and values.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::header_value_cache::HeaderValueCache;
use crate::limits::{HEAD_BLOCK_BYTES, HEAD_IN_BLOCK_BYTES_MAX, SPARE_MAP_FIELDS_MAX, SPARE_MAPS_MAX};

/// The pool of one worker.
#[derive(Debug)]
pub(crate) struct HeadPool {
    /// The block that copies are cut from. Reused once all of them are dropped.
    block: BytesMut,
    maps: Vec<HeaderMap>,
    pub(crate) values: HeaderValueCache,
}

impl HeadPool {
    pub(crate) fn new() -> Self {
        Self {
            block: BytesMut::with_capacity(HEAD_BLOCK_BYTES),
            maps: Vec::new(),
            values: HeaderValueCache::new(),
        }
    }

    /// Copies a head, so that its fields can be sliced without further copies.
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

    /// Returns an empty map with capacity for `fields`. A map that grows costs more than a new one.
    pub(crate) fn map(&mut self, fields: usize) -> HeaderMap {
        let is_fit = self.maps.last().is_some_and(|map| map.capacity() >= fields);
        let pooled = if is_fit { self.maps.pop() } else { None };
        pooled.unwrap_or_else(|| HeaderMap::with_capacity(fields))
    }

    /// Returns a map to the pool.
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
        let mut addresses = std::collections::HashSet::new();
        for _ in 0..1000 {
            let copy = pool.copy(&head);
            assert_eq!(copy, &head[..]);
            addresses.insert(copy.as_ptr());
        }
        assert!(addresses.len() <= 20, "{} addresses", addresses.len());
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
        assert_eq!(pool.maps.len(), SPARE_MAPS_MAX, "no pooled map is large enough");
        assert!(pool.map(8).is_empty());
        pool.put(HeaderMap::with_capacity(SPARE_MAP_FIELDS_MAX * 2));
        pool.put(HeaderMap::new());
        assert_eq!(pool.maps.len(), SPARE_MAPS_MAX - 1);
    }
}
