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
    /// (`400`), whose path isn't certain, none with a target in absolute form, and none whose path has a `%` or a segment that
    /// begins with a dot: `/health/../x` is a request of `/x`.
    #[must_use]
    pub fn excludes(&self, entry: &Entry<'_>) -> bool {
        entry.status.is_some_and(|status| self.classes.contains(&(status / 100)))
            || entry.status != Some(400) && self.paths.iter().any(|path| is_beneath(entry.path(), path))
    }
}

fn is_beneath(path: &[u8], folder: &str) -> bool {
    let rest = path.strip_prefix(folder.as_bytes());
    let is_another = |rest: &[u8]| rest.contains(&b'%') || rest.windows(2).any(|pair| pair == b"/.");
    rest.is_some_and(|rest| {
        (rest.is_empty() || rest.starts_with(b"/") || folder.ends_with('/')) && !is_another(rest)
    })
}
