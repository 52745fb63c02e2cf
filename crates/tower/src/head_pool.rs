//! Reused memory for request heads: blocks of bytes, header maps and values.

use crate::limits::{
    CACHED_VALUE_BYTES_MAX, CACHED_VALUE_MISSES_MAX, HEAD_BLOCK_BYTES, HEAD_IN_BLOCK_BYTES_MAX,
    SPARE_MAP_FIELDS_MAX, SPARE_MAPS_MAX,
};
use bytes::{Bytes, BytesMut};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};
use shearwater::engine::KnownField;

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

/// The cache of one worker: one value for each cacheable header, and an authority.
#[derive(Debug)]
pub(crate) struct HeaderValueCache {
    entries: Box<[Entry<HeaderValue>]>,
    authority: Entry<Authority>,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    value: Option<T>,
    /// Number of misses since the value was stored.
    misses: u8,
}

impl HeaderValueCache {
    pub(crate) fn new() -> Self {
        Self { entries: vec![Entry::EMPTY; KnownField::COUNT].into(), authority: Entry::EMPTY }
    }

    /// Returns the cached value if it equals the one sent.
    pub(crate) fn get(&mut self, name: KnownField, sent: &[u8]) -> Option<HeaderValue> {
        if !describes_client(name) {
            return None;
        }
        let copy = |sent: &[u8]| HeaderValue::from_bytes(sent).ok();
        self.entries[name as usize].get(sent, HeaderValue::as_bytes, copy)
    }

    /// Returns the cached authority if it equals the one sent.
    pub(crate) fn authority(&mut self, sent: &[u8]) -> Option<Authority> {
        self.authority.get(sent, |value| value.as_str().as_bytes(), |sent| Authority::try_from(sent).ok())
    }
}

impl<T: Clone> Entry<T> {
    const EMPTY: Self = Self { value: None, misses: 0 };

    /// Returns the value if its bytes are `sent`, or counts a miss. Stores a copy, because a slice would keep the head's
    /// whole block alive.
    fn get(&mut self, sent: &[u8], bytes: fn(&T) -> &[u8], copy: fn(&[u8]) -> Option<T>) -> Option<T> {
        match &self.value {
            Some(value) if bytes(value) == sent => return Some(value.clone()),
            Some(_) if self.misses < CACHED_VALUE_MISSES_MAX => self.misses += 1,
            _ if sent.len() <= CACHED_VALUE_BYTES_MAX => (self.value, self.misses) = (copy(sent), 0),
            _ => {}
        }
        None
    }
}

/// Returns true if a field describes the client, and not the request or the user.
fn describes_client(name: KnownField) -> bool {
    matches!(
        name,
        KnownField::Accept
            | KnownField::AcceptCharset
            | KnownField::AcceptEncoding
            | KnownField::AcceptLanguage
            | KnownField::CacheControl
            | KnownField::Connection
            | KnownField::ContentType
            | KnownField::Dnt
            | KnownField::Host
            | KnownField::KeepAlive
            | KnownField::Origin
            | KnownField::Pragma
            | KnownField::Priority
            | KnownField::SecChUa
            | KnownField::SecChUaMobile
            | KnownField::SecChUaPlatform
            | KnownField::SecFetchDest
            | KnownField::SecFetchMode
            | KnownField::SecFetchSite
            | KnownField::SecFetchUser
            | KnownField::Te
            | KnownField::UpgradeInsecureRequests
            | KnownField::UserAgent
            | KnownField::Via
            | KnownField::XForwardedHost
            | KnownField::XForwardedProto
    )
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};
    use shearwater::engine::KnownField;

    use super::{
        CACHED_VALUE_BYTES_MAX, CACHED_VALUE_MISSES_MAX, HEAD_BLOCK_BYTES, HEAD_IN_BLOCK_BYTES_MAX, HeadPool,
        HeaderValueCache, SPARE_MAP_FIELDS_MAX, SPARE_MAPS_MAX,
    };

    #[test]
    fn reuses_a_block_once_no_copy_refers_to_it() {
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
    fn keeps_copies_intact_while_blocks_are_reused() {
        let mut pool = HeadPool::new();
        let held: Vec<_> = (0..200u8).map(|number| pool.copy(&[number; HEAD_BLOCK_BYTES / 8])).collect();
        for (number, copy) in (0..200u8).zip(&held) {
            assert!(copy.iter().all(|byte| *byte == number));
        }
    }

    #[test]
    fn allocates_a_long_head_separately() {
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

    #[test]
    fn returns_only_the_value_sent_before() {
        let mut values = HeaderValueCache::new();
        assert!(values.get(KnownField::Host, b"one").is_none());
        assert_eq!(values.get(KnownField::Host, b"one").expect("seen"), "one");
        for other in [&b"two"[..], b"", b"one ", b"on"] {
            assert!(values.get(KnownField::Host, other).is_none(), "{other:?}");
        }
        assert!(values.get(KnownField::UserAgent, b"one").is_none(), "another field");
    }

    #[test]
    fn replaces_a_value_after_enough_misses() {
        let mut values = HeaderValueCache::new();
        assert!(values.get(KnownField::Accept, b"old").is_none());
        for _ in 0..=CACHED_VALUE_MISSES_MAX {
            assert!(values.get(KnownField::Accept, b"new").is_none());
        }
        assert_eq!(values.get(KnownField::Accept, b"new").expect("seen"), "new");
        assert!(values.get(KnownField::Accept, b"old").is_none());
    }

    #[test]
    fn caches_no_long_value() {
        let mut values = HeaderValueCache::new();
        let longest = [b'a'; CACHED_VALUE_BYTES_MAX];
        for long in [&[b'a'; CACHED_VALUE_BYTES_MAX + 1][..], &longest] {
            assert!(values.get(KnownField::UserAgent, long).is_none());
        }
        assert!(values.get(KnownField::UserAgent, &longest).is_some());
    }

    #[test]
    fn caches_neither_personal_nor_invalid_values() {
        let mut values = HeaderValueCache::new();
        for _ in 0..3 {
            for name in [KnownField::Authorization, KnownField::Cookie, KnownField::ProxyAuthorization] {
                assert!(values.get(name, b"secret").is_none());
            }
            assert!(values.get(KnownField::Host, b"a\0b").is_none());
        }
    }
}
