//! Values by the origin of the requesting page.

use shearwater_http1::{Head, KnownField};

/// A value for each origin, and one for all others.
#[derive(Debug)]
pub(crate) struct ByOrigin<T> {
    origins: Vec<(Box<[u8]>, T)>,
    other: T,
}

impl<T> ByOrigin<T> {
    /// Creates a table with a value for each origin, and one for all others.
    pub(crate) fn new(origins: Vec<(Box<[u8]>, T)>, other: T) -> Self {
        Self { origins, other }
    }

    /// Creates a table with the same value for all origins.
    pub(crate) fn uniform(value: T) -> Self {
        Self { origins: Vec::new(), other: value }
    }

    /// Returns the value for a request's origin.
    #[inline]
    pub(crate) fn get(&self, head: &Head<'_>) -> &T {
        if self.origins.is_empty() {
            return &self.other;
        }
        let sent = head.field(KnownField::Origin);
        let own = sent.and_then(|sent| self.origins.iter().find(|(origin, _)| **origin == *sent));
        own.map_or(&self.other, |(_, value)| value)
    }

    /// Converts each value.
    pub(crate) fn map<U, E>(&self, make: impl Fn(&T) -> Result<U, E>) -> Result<ByOrigin<U>, E> {
        let origins = self.origins.iter().map(|(origin, value)| Ok((origin.clone(), make(value)?)));
        Ok(ByOrigin { origins: origins.collect::<Result<_, E>>()?, other: make(&self.other)? })
    }
}
