//! Entries that aren't logged.

use crate::entry::Entry;

/// Excludes entries by path and by class of status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Beginnings of paths, as the client sends them: `/health` excludes `/health/db` and `/healthy` too.
    pub paths: Vec<String>,
    /// Classes of statuses: 2 excludes 200 to 299.
    pub classes: Vec<u16>,
}

impl Filter {
    /// Returns true if an entry is excluded. One without a response has no class.
    #[must_use]
    pub fn excludes(&self, entry: &Entry<'_>) -> bool {
        entry.status.is_some_and(|status| self.classes.contains(&(status / 100)))
            || self.paths.iter().any(|path| entry.target.starts_with(path.as_bytes()))
    }
}
