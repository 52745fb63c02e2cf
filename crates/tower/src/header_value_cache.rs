//! A cache of header values that clients repeat in each request, so that they are validated and copied once.

use http::HeaderValue;
use shearwater::KnownField;

use crate::limits::{CACHED_VALUE_BYTES_MAX, CACHED_VALUE_MISSES_MAX};

/// The cache of one worker: one value for each cacheable header.
#[derive(Debug)]
pub(crate) struct HeaderValueCache {
    entries: Box<[Entry]>,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    value: Option<HeaderValue>,
    /// Number of misses since the value was stored.
    misses: u8,
}

impl HeaderValueCache {
    pub(crate) fn new() -> Self {
        Self { entries: vec![Entry::default(); KnownField::COUNT].into() }
    }

    /// Returns the cached value if it equals the one sent.
    pub(crate) fn get(&mut self, name: KnownField, sent: &[u8]) -> Option<HeaderValue> {
        if !describes_client(name) {
            return None;
        }
        let entry = &mut self.entries[name as usize];
        match &entry.value {
            Some(value) if value.as_bytes() == sent => return Some(value.clone()),
            Some(_) if entry.misses < CACHED_VALUE_MISSES_MAX => entry.misses += 1,
            _ => entry.store(sent),
        }
        None
    }
}

impl Entry {
    /// Stores a copy, because a slice would keep the head's whole block alive.
    #[cold]
    fn store(&mut self, sent: &[u8]) {
        if sent.len() <= CACHED_VALUE_BYTES_MAX {
            (self.value, self.misses) = (HeaderValue::from_bytes(sent).ok(), 0);
        }
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
    use shearwater::KnownField;

    use super::{CACHED_VALUE_BYTES_MAX, CACHED_VALUE_MISSES_MAX, HeaderValueCache};

    #[test]
    fn what_was_sent_before_is_there_and_nothing_else() {
        let mut values = HeaderValueCache::new();
        assert!(values.get(KnownField::Host, b"one").is_none());
        assert_eq!(values.get(KnownField::Host, b"one").expect("seen"), "one");
        for other in [&b"two"[..], b"", b"one ", b"on"] {
            assert!(values.get(KnownField::Host, other).is_none(), "{other:?}");
        }
        assert!(values.get(KnownField::UserAgent, b"one").is_none(), "another field");
    }

    #[test]
    fn one_that_comes_no_more_makes_room_after_so_many_others() {
        let mut values = HeaderValueCache::new();
        assert!(values.get(KnownField::Accept, b"old").is_none());
        for _ in 0..=CACHED_VALUE_MISSES_MAX {
            assert!(values.get(KnownField::Accept, b"new").is_none());
        }
        assert_eq!(values.get(KnownField::Accept, b"new").expect("seen"), "new");
        assert!(values.get(KnownField::Accept, b"old").is_none());
    }

    #[test]
    fn a_long_one_is_not_kept() {
        let mut values = HeaderValueCache::new();
        let longest = [b'a'; CACHED_VALUE_BYTES_MAX];
        for long in [&[b'a'; CACHED_VALUE_BYTES_MAX + 1][..], &longest] {
            assert!(values.get(KnownField::UserAgent, long).is_none());
        }
        assert!(values.get(KnownField::UserAgent, &longest).is_some());
    }

    #[test]
    fn what_tells_of_a_person_or_is_no_value_is_not_kept() {
        let mut values = HeaderValueCache::new();
        for _ in 0..3 {
            for name in [KnownField::Authorization, KnownField::Cookie, KnownField::ProxyAuthorization] {
                assert!(values.get(name, b"secret").is_none());
            }
            assert!(values.get(KnownField::Host, b"a\0b").is_none());
        }
    }
}
