//! Detection of navigation requests: for a page, not for a resource of one.

use shearwater::{Head, KnownField};

use crate::accept;

/// Classification of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Navigation {
    /// Navigation: the last segment of the path has no extension.
    ByPath,
    /// Navigation: `Accept` lists `text/html`.
    ByAccept,
    /// Not a navigation: a script, an image or another resource.
    No,
}

impl Navigation {
    pub(crate) fn of(name: &[u8], head: &Head<'_>) -> Self {
        let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        if !last.contains(&b'.') {
            Self::ByPath
        } else if accept::names(head.all(KnownField::Accept), b"text/html") {
            Self::ByAccept
        } else {
            Self::No
        }
    }
}
