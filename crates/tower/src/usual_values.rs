//! Values of request fields that come again and again: what tells of the client, it sends with each of its requests, and others like it
//! do too. Such a value is made once; to make it is to look at each of its bytes.

use http::HeaderValue;
use shearwater::Known;

use crate::limits::{USUAL_VALUE_BYTES_MAX, USUAL_VALUE_MISSES_MAX};

/// One worker's: the one that was seen lately, by the number of its name.
#[derive(Debug)]
pub(crate) struct UsualValues {
    places: Box<[Place]>,
}

#[derive(Debug, Clone, Default)]
struct Place {
    value: Option<HeaderValue>,
    /// Others that were seen since it was put here.
    misses: u8,
}

impl UsualValues {
    pub(crate) fn new() -> Self {
        Self { places: vec![Place::default(); Known::COUNT].into() }
    }

    /// The same value as the one that was sent, if it was seen lately.
    pub(crate) fn get(&mut self, name: Known, sent: &[u8]) -> Option<HeaderValue> {
        if !tells_of_client(name) {
            return None;
        }
        let place = &mut self.places[name as usize];
        match &place.value {
            Some(value) if value.as_bytes() == sent => return Some(value.clone()),
            Some(_) if place.misses < USUAL_VALUE_MISSES_MAX => place.misses += 1,
            _ => place.keep(sent),
        }
        None
    }
}

impl Place {
    /// Keeps a copy: a part of its head would keep the whole block.
    #[cold]
    fn keep(&mut self, sent: &[u8]) {
        if sent.len() <= USUAL_VALUE_BYTES_MAX {
            (self.value, self.misses) = (HeaderValue::from_bytes(sent).ok(), 0);
        }
    }
}

/// Whether a field tells of the client, and not of the request or of who makes it.
fn tells_of_client(name: Known) -> bool {
    matches!(
        name,
        Known::Accept
            | Known::AcceptCharset
            | Known::AcceptEncoding
            | Known::AcceptLanguage
            | Known::CacheControl
            | Known::Connection
            | Known::ContentType
            | Known::Dnt
            | Known::Host
            | Known::KeepAlive
            | Known::Origin
            | Known::Pragma
            | Known::Priority
            | Known::SecChUa
            | Known::SecChUaMobile
            | Known::SecChUaPlatform
            | Known::SecFetchDest
            | Known::SecFetchMode
            | Known::SecFetchSite
            | Known::SecFetchUser
            | Known::Te
            | Known::UpgradeInsecureRequests
            | Known::UserAgent
            | Known::Via
            | Known::XForwardedHost
            | Known::XForwardedProto
    )
}

#[cfg(test)]
mod tests {
    use shearwater::Known;

    use super::{USUAL_VALUE_BYTES_MAX, USUAL_VALUE_MISSES_MAX, UsualValues};

    #[test]
    fn what_was_sent_before_is_there_and_nothing_else() {
        let mut values = UsualValues::new();
        assert!(values.get(Known::Host, b"one").is_none());
        assert_eq!(values.get(Known::Host, b"one").expect("seen"), "one");
        for other in [&b"two"[..], b"", b"one ", b"on"] {
            assert!(values.get(Known::Host, other).is_none(), "{other:?}");
        }
        assert!(values.get(Known::UserAgent, b"one").is_none(), "another field");
    }

    #[test]
    fn one_that_comes_no_more_makes_room_after_so_many_others() {
        let mut values = UsualValues::new();
        assert!(values.get(Known::Accept, b"old").is_none());
        for _ in 0..=USUAL_VALUE_MISSES_MAX {
            assert!(values.get(Known::Accept, b"new").is_none());
        }
        assert_eq!(values.get(Known::Accept, b"new").expect("seen"), "new");
        assert!(values.get(Known::Accept, b"old").is_none());
    }

    #[test]
    fn a_long_one_is_not_kept() {
        let mut values = UsualValues::new();
        let longest = [b'a'; USUAL_VALUE_BYTES_MAX];
        for long in [&[b'a'; USUAL_VALUE_BYTES_MAX + 1][..], &longest] {
            assert!(values.get(Known::UserAgent, long).is_none());
        }
        assert!(values.get(Known::UserAgent, &longest).is_some());
    }

    #[test]
    fn what_tells_of_a_person_or_is_no_value_is_not_kept() {
        let mut values = UsualValues::new();
        for _ in 0..3 {
            for name in [Known::Authorization, Known::Cookie, Known::ProxyAuthorization] {
                assert!(values.get(name, b"secret").is_none());
            }
            assert!(values.get(Known::Host, b"a\0b").is_none());
        }
    }
}
