//! What differs by the origin of the page that asks.

use shearwater_http1::{Head, Known};

/// Something for each origin, and for all others.
#[derive(Debug)]
pub(crate) struct ByOrigin<T> {
    origins: Vec<(Box<[u8]>, T)>,
    other: T,
}

impl<T> ByOrigin<T> {
    /// Something for each of these origins, and for all others.
    pub(crate) fn new(origins: Vec<(Box<[u8]>, T)>, other: T) -> Self {
        Self { origins, other }
    }

    /// The same for everyone.
    pub(crate) fn everyone(what: T) -> Self {
        Self { origins: Vec::new(), other: what }
    }

    /// What this request's origin gets.
    #[inline]
    pub(crate) fn get(&self, head: &Head<'_>) -> &T {
        if self.origins.is_empty() {
            return &self.other;
        }
        let sent = head.field(Known::Origin);
        let own = sent.and_then(|sent| self.origins.iter().find(|(origin, _)| **origin == *sent));
        own.map_or(&self.other, |(_, what)| what)
    }

    /// Makes something else of each.
    pub(crate) fn map<U, E>(&self, make: impl Fn(&T) -> Result<U, E>) -> Result<ByOrigin<U>, E> {
        let origins = self.origins.iter().map(|(origin, what)| Ok((origin.clone(), make(what)?)));
        Ok(ByOrigin { origins: origins.collect::<Result<_, E>>()?, other: make(&self.other)? })
    }
}
