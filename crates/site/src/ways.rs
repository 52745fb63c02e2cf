//! The ways of recent requests: from host and path, as they were sent, to what answers them. What is found here needs no other look, however many sites
//! and routes there are; those never change, so a way is never out of date.

use crate::hash;
use crate::limits::{WAY_BYTES_MAX, WAYS_MAX};
use crate::plan::Rule;

/// One worker's ways, at most `WAYS_MAX`: each has one place, and takes it from the one before.
pub(crate) struct Ways {
    /// Empty until the first way is noted, then all of them.
    places: Vec<Place>,
}

/// Where a request leads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) site: u32,
    pub(crate) rule: Rule,
}

/// How long host and path are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lens(u32);

impl Lens {
    /// Those of a free place: no path is so long.
    const FREE: Self = Self(u32::MAX);

    #[inline]
    const fn of(host: &[u8], path: &[u8]) -> Self {
        Self((host.len() as u32) << 16 | path.len() as u32)
    }
}

#[derive(Clone, Copy)]
struct Place {
    lens: Lens,
    /// Host, then path.
    text: [u8; WAY_BYTES_MAX],
    way: Way,
}

impl Ways {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new() }
    }

    /// The way of this host and path, if it was noted and no other has taken its place.
    #[inline]
    pub(crate) fn get(&self, host: &[u8], path: &[u8]) -> Option<&Way> {
        let place = self.places.get(at(host, path))?;
        let (of_host, of_both) = (place.text.get(..host.len())?, place.text.get(..host.len() + path.len())?);
        let is_same = place.lens == Lens::of(host, path)
            && is_same(of_host, host)
            && is_same(&of_both[host.len()..], path);
        is_same.then_some(&place.way)
    }

    /// Notes a way, unless host and path are too long.
    pub(crate) fn note(&mut self, host: &[u8], path: &[u8], way: Way) {
        let len = host.len() + path.len();
        if len > WAY_BYTES_MAX {
            return;
        }
        let mut place = Place { lens: Lens::of(host, path), text: [0; WAY_BYTES_MAX], way };
        place.text[..host.len()].copy_from_slice(host);
        place.text[host.len()..len].copy_from_slice(path);
        if self.places.is_empty() {
            self.places.resize(WAYS_MAX, Place { lens: Lens::FREE, ..place });
        }
        self.places[at(host, path)] = place;
    }
}

/// Whether two texts of the same length are the same: those of 8 to 32 bytes, as most are, without a loop or a call.
#[inline(always)]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    match one.len() {
        8..16 => ends::<8>(one) == ends::<8>(other),
        16..=32 => ends::<16>(one) == ends::<16>(other),
        _ => one == other,
    }
}

/// The first and the last bytes of a text; they may meet.
#[inline(always)]
fn ends<const LEN: usize>(text: &[u8]) -> (Option<&[u8; LEN]>, Option<&[u8; LEN]>) {
    (text.first_chunk(), text.last_chunk())
}

/// The place of a host and path, by samples of them: that two share one does no harm but to their speed.
#[inline]
fn at(host: &[u8], path: &[u8]) -> usize {
    hash::of_samples(host, path) as usize % WAYS_MAX
}

#[cfg(test)]
mod tests {
    use super::{Way, Ways};
    use crate::limits::{WAY_BYTES_MAX, WAYS_MAX};
    use crate::plan::{Action, Rule};

    fn way(site: u32) -> Way {
        Way { site, rule: Rule { action: Action::Nothing, overlay: None, pages: 0 } }
    }

    fn site(ways: &Ways, host: &str, path: &str) -> Option<u32> {
        ways.get(host.as_bytes(), path.as_bytes()).map(|way| way.site)
    }

    #[test]
    fn a_way_is_that_of_its_host_and_path_alone() {
        let mut ways = Ways::new();
        assert_eq!(site(&ways, "a", "/b"), None);
        ways.note(b"example.org:80", b"/a/b", way(1));
        assert_eq!(site(&ways, "example.org:80", "/a/b"), Some(1));
        for (host, path) in [
            ("example.org:8", "0/a/b"),
            ("example.org:80/", "a/b"),
            ("Example.org:80", "/a/b"),
            ("example.org:80", "/A/b"),
            ("example.org:80", "/a/b/"),
            ("", ""),
            ("", "/"),
        ] {
            assert_eq!(site(&ways, host, path), None, "{host} {path}");
        }
        ways.note(b"example.org:80", b"/a/b", way(2));
        assert_eq!(site(&ways, "example.org:80", "/a/b"), Some(2));
    }

    #[test]
    fn every_byte_of_a_way_counts() {
        for len in 1..=50 {
            let text: Vec<u8> = (0..len).map(|at| b'a' + at as u8 % 26).collect();
            let mut ways = Ways::new();
            ways.note(&text, &text, way(1));
            assert!(ways.get(&text, &text).is_some(), "{len}");
            for at in 0..len {
                let mut other = text.clone();
                other[at] = b'.';
                assert!(ways.get(&other, &text).is_none() && ways.get(&text, &other).is_none(), "{len} {at}");
                assert!(!super::is_same(&text, &other));
            }
        }
    }

    #[test]
    fn a_bounded_number_is_remembered() {
        let mut ways = Ways::new();
        let path = |number: usize| format!("/{number}");
        for number in 0..10 * WAYS_MAX {
            ways.note(b"a", path(number).as_bytes(), way(number as u32));
            assert_eq!(site(&ways, "a", &path(number)), Some(number as u32));
        }
        let known = (0..10 * WAYS_MAX).filter(|&number| site(&ways, "a", &path(number)).is_some()).count();
        assert!((WAYS_MAX / 2..=WAYS_MAX).contains(&known), "{known}");
        assert_eq!(ways.places.len(), WAYS_MAX);
    }

    #[test]
    fn what_is_too_long_is_not_remembered() {
        let mut ways = Ways::new();
        let path = "/".repeat(WAY_BYTES_MAX);
        ways.note(b"", path.as_bytes(), way(1));
        ways.note(b"a", path.as_bytes(), way(2));
        assert_eq!((site(&ways, "", &path), site(&ways, "a", &path)), (Some(1), None));
    }
}
