//! Whether somebody navigates: asks for a page to look at, and not for a part of one.

use shearwater::{Head, Known};

use crate::accept;

/// What a request says of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Navigation {
    /// The last segment of the path has no extension.
    Surely,
    /// `Accept` names pages.
    ByAccept,
    /// It is a script, a picture or something like it.
    No,
}

impl Navigation {
    pub(crate) fn of(name: &[u8], head: &Head<'_>) -> Self {
        let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        if !last.contains(&b'.') {
            Self::Surely
        } else if accept::names(head.all(Known::Accept), b"text/html") {
            Self::ByAccept
        } else {
            Self::No
        }
    }
}
