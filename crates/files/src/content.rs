//! A file's content, in memory or open.

use std::rc::Rc;

use shearwater::{Prebuilt, Request, Response};

use crate::cached_file::CachedFile;
use crate::version::Version;

/// One variant of a file, ready to be sent.
pub(crate) enum Content {
    /// In memory.
    Cached(Rc<CachedFile>),
    /// Sent from its descriptor.
    Open(Rc<Version>, Rc<Prebuilt>),
}

impl Content {
    /// Sends the file or the result of the request's preconditions.
    pub(crate) fn reply(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match self {
            Self::Cached(cached) => cached.reply(request, response),
            Self::Open(version, content) => version.reply(content, request, response),
        }
    }

    /// Sends the file as the page of another status.
    pub(crate) fn reply_page(&self, status: u16, response: &mut Response<'_>) {
        match self {
            Self::Cached(cached) => cached.reply_page(status, response),
            Self::Open(version, content) => version.reply_page(content, status, response),
        }
    }
}
