//! Entries that aren't logged.

use crate::entry::Entry;

/// Excludes entries by path and by class of status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Paths, as clients send them, with all that is beneath: `/health` excludes `/health/db`, and not `/healthy`.
    pub paths: Vec<String>,
    /// Classes of statuses: 2 excludes 200 to 299.
    pub classes: Vec<u16>,
}

impl Filter {
    /// Returns true if an entry is excluded. One without a response has no class. A path excludes no malformed request
    /// (`400`), whose path isn't certain, and none that may lead elsewhere: with dot segments, escapes or backslashes.
    #[inline]
    #[must_use]
    pub fn excludes(&self, entry: &Entry<'_>) -> bool {
        !self.is_empty() && self.finds(entry)
    }

    fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.classes.is_empty()
    }

    fn finds(&self, entry: &Entry<'_>) -> bool {
        entry.status.is_some_and(|status| self.classes.contains(&(status / 100)))
            || entry.status != Some(400) && self.paths.iter().any(|path| is_beneath(entry.path(), path))
    }
}

fn is_beneath(path: &[u8], folder: &str) -> bool {
    let Some(rest) = path.strip_prefix(folder.as_bytes()) else { return false };
    let is_inside = rest.is_empty() || rest.starts_with(b"/") || folder.ends_with('/');
    is_inside && !leads_elsewhere(rest)
}

/// Returns true if a path may name something that isn't beneath its beginning.
fn leads_elsewhere(path: &[u8]) -> bool {
    let is_dots = |segment: &[u8]| matches!(segment, b"." | b"..");
    path.iter().any(|byte| matches!(byte, b'%' | b'\\')) || path.split(|byte| *byte == b'/').any(is_dots)
}
