//! Cache of route lookups: from host and path of recent requests to their rules. Routes never change, so entries never expire.

use crate::limits::{CACHED_ROUTE_BYTES_MAX, CACHED_ROUTES_MAX};
use crate::plan::RouteMatch;
use crate::table::hash_samples;

/// One worker's direct-mapped cache.
pub(crate) struct RouteCache {
    /// Empty until the first insertion.
    slots: Vec<CachedMatch>,
}

/// Lengths of host and path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PairLens(u32);

impl PairLens {
    /// Marks a free slot: no path is that long.
    const FREE: Self = Self(u32::MAX);

    #[inline]
    const fn of(host: &[u8], path: &[u8]) -> Self {
        Self((host.len() as u32) << 16 | path.len() as u32)
    }
}

#[derive(Clone, Copy)]
struct CachedMatch {
    lens: PairLens,
    /// Host, then path.
    text: [u8; CACHED_ROUTE_BYTES_MAX],
    found: RouteMatch,
}

impl RouteCache {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Returns the rule of a host and path, if it is cached.
    #[inline]
    pub(crate) fn get(&self, host: &[u8], path: &[u8]) -> Option<&RouteMatch> {
        let slot = self.slots.get(at(host, path))?;
        let (of_host, of_both) = (slot.text.get(..host.len())?, slot.text.get(..host.len() + path.len())?);
        let is_same = slot.lens == PairLens::of(host, path)
            && is_same(of_host, host)
            && is_same(&of_both[host.len()..], path);
        is_same.then_some(&slot.found)
    }

    /// Caches a rule, unless host and path are too long.
    pub(crate) fn insert(&mut self, host: &[u8], path: &[u8], found: RouteMatch) {
        let len = host.len() + path.len();
        if len > CACHED_ROUTE_BYTES_MAX {
            return;
        }
        let mut slot =
            CachedMatch { lens: PairLens::of(host, path), text: [0; CACHED_ROUTE_BYTES_MAX], found };
        slot.text[..host.len()].copy_from_slice(host);
        slot.text[host.len()..len].copy_from_slice(path);
        if self.slots.is_empty() {
            self.slots.resize(CACHED_ROUTES_MAX, CachedMatch { lens: PairLens::FREE, ..slot });
        }
        self.slots[at(host, path)] = slot;
    }
}

/// Compares two texts of the same length: those of 8 to 32 bytes, as most are, without a loop or a call.
#[inline(always)]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    match one.len() {
        8..16 => ends::<8>(one) == ends::<8>(other),
        16..=32 => ends::<16>(one) == ends::<16>(other),
        _ => one == other,
    }
}

/// Returns the first and the last bytes of a text; they may overlap.
#[inline(always)]
fn ends<const LEN: usize>(text: &[u8]) -> (Option<&[u8; LEN]>, Option<&[u8; LEN]>) {
    (text.first_chunk(), text.last_chunk())
}

/// Returns the slot of a host and path. Collisions only cost a lookup.
#[inline]
fn at(host: &[u8], path: &[u8]) -> usize {
    hash_samples(host, path) as usize % CACHED_ROUTES_MAX
}

#[cfg(test)]
mod tests {
    use super::{RouteCache, RouteMatch};
    use crate::limits::{CACHED_ROUTE_BYTES_MAX, CACHED_ROUTES_MAX};
    use crate::plan::{RouteAction, RouteRule};

    fn found(site: u16) -> RouteMatch {
        RouteMatch {
            site,
            tag: 0,
            rule: RouteRule { action: RouteAction::Nothing, header_rules: None, pages: 0, guards: 0 },
        }
    }

    fn site(cache: &RouteCache, host: &str, path: &str) -> Option<u16> {
        cache.get(host.as_bytes(), path.as_bytes()).map(|found| found.site)
    }

    #[test]
    fn a_match_is_that_of_its_host_and_path() {
        let mut cache = RouteCache::new();
        assert_eq!(site(&cache, "a", "/b"), None);
        cache.insert(b"example.org:80", b"/a/b", found(1));
        assert_eq!(site(&cache, "example.org:80", "/a/b"), Some(1));
        for (host, path) in [
            ("example.org:8", "0/a/b"),
            ("example.org:80/", "a/b"),
            ("Example.org:80", "/a/b"),
            ("example.org:80", "/A/b"),
            ("example.org:80", "/a/b/"),
            ("", ""),
            ("", "/"),
        ] {
            assert_eq!(site(&cache, host, path), None, "{host} {path}");
        }
        cache.insert(b"example.org:80", b"/a/b", found(2));
        assert_eq!(site(&cache, "example.org:80", "/a/b"), Some(2));
    }

    #[test]
    fn every_byte_counts() {
        for len in 1..=50 {
            let text: Vec<u8> = (0..len).map(|at| b'a' + at as u8 % 26).collect();
            let mut cache = RouteCache::new();
            cache.insert(&text, &text, found(1));
            assert!(cache.get(&text, &text).is_some(), "{len}");
            for at in 0..len {
                let mut other = text.clone();
                other[at] = b'.';
                assert!(
                    cache.get(&other, &text).is_none() && cache.get(&text, &other).is_none(),
                    "{len} {at}"
                );
                assert!(!super::is_same(&text, &other));
            }
        }
    }

    #[test]
    fn limits_the_number_of_entries() {
        let mut cache = RouteCache::new();
        let path = |number: usize| format!("/{number}");
        for number in 0..10 * CACHED_ROUTES_MAX {
            cache.insert(b"a", path(number).as_bytes(), found(number as u16));
            assert_eq!(site(&cache, "a", &path(number)), Some(number as u16));
        }
        let known =
            (0..10 * CACHED_ROUTES_MAX).filter(|&number| site(&cache, "a", &path(number)).is_some()).count();
        assert!((CACHED_ROUTES_MAX / 2..=CACHED_ROUTES_MAX).contains(&known), "{known}");
        assert_eq!(cache.slots.len(), CACHED_ROUTES_MAX);
    }

    #[test]
    fn skips_long_hosts_and_paths() {
        let mut cache = RouteCache::new();
        let path = "/".repeat(CACHED_ROUTE_BYTES_MAX);
        cache.insert(b"", path.as_bytes(), found(1));
        cache.insert(b"a", path.as_bytes(), found(2));
        assert_eq!((site(&cache, "", &path), site(&cache, "a", &path)), (Some(1), None));
    }
}
