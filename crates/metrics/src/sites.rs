//! Names of the sites that are counted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::counts::TAGS;
use crate::limits::SITES_COUNTED_MAX;

/// Label of all sites beyond the limit. No host is written like this.
pub(crate) const OTHER: &str = "(other)";

/// Tag of all sites beyond the limit.
const OTHER_TAG: u16 = TAGS as u16 - 1;

const _: () = assert!(TAGS <= u16::MAX as usize);

/// Names of sites in the order of their tags, from 1. A name keeps its tag until the process ends.
#[derive(Debug, Default)]
pub(crate) struct SiteNames(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    counted: Vec<String>,
    /// A site has [`OTHER_TAG`].
    has_other: bool,
}

impl SiteNames {
    /// Returns the tag of a site.
    pub(crate) fn tag(&self, name: &str) -> u16 {
        let mut names = self.lock();
        if let Some(index) = names.counted.iter().position(|known| known == name) {
            return index as u16 + 1;
        }
        if names.counted.len() >= SITES_COUNTED_MAX || name == OTHER {
            names.has_other = true;
            return OTHER_TAG;
        }
        names.counted.push(name.to_owned());
        names.counted.len() as u16
    }

    /// Returns the names with their tags, and [`OTHER`] if a site has its tag.
    pub(crate) fn tags(&self) -> Vec<(String, u16)> {
        let names = self.lock();
        let other = names.has_other.then(|| (OTHER.to_owned(), OTHER_TAG));
        names.counted.iter().cloned().zip(1..).chain(other).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{OTHER, OTHER_TAG, SiteNames};
    use crate::limits::SITES_COUNTED_MAX;

    #[test]
    fn bounds_the_number_of_sites() {
        let names = SiteNames::default();
        assert_eq!((names.tag("a"), names.tag("b"), names.tag("a")), (1, 2, 1));
        (2..SITES_COUNTED_MAX)
            .for_each(|site| assert_eq!(usize::from(names.tag(&site.to_string())), site + 1));
        assert_eq!(names.tags().len(), SITES_COUNTED_MAX, "no site is beyond the limit");
        assert_eq!((names.tag("late"), names.tag("later"), names.tag("b")), (OTHER_TAG, OTHER_TAG, 2));
        let tags = names.tags();
        assert_eq!(
            (tags.len(), tags[SITES_COUNTED_MAX].clone()),
            (SITES_COUNTED_MAX + 1, (OTHER.to_owned(), OTHER_TAG))
        );
    }

    #[test]
    fn no_name_of_a_site_is_listed_twice() {
        let names = SiteNames::default();
        for name in ["other", "default", OTHER, "(default)"] {
            names.tag(name);
        }
        for site in 0..SITES_COUNTED_MAX {
            names.tag(&site.to_string());
        }
        let mut listed: Vec<_> = names.tags().into_iter().map(|(name, _)| name).collect();
        let count = listed.len();
        listed.sort();
        listed.dedup();
        assert_eq!((listed.len(), count), (SITES_COUNTED_MAX + 1, SITES_COUNTED_MAX + 1));
    }
}
