//! What is sent of a file: kept in memory, or open for a moment.

use std::rc::Rc;

use shearwater::{Prebuilt, Request, Response};

use crate::held::Held;
use crate::version::Version;

/// One form of a file, found and ready to be sent.
pub(crate) enum Content {
    /// It is in memory.
    Held(Rc<Held>),
    /// It is sent from its descriptor.
    Open(Rc<Version>, Rc<Prebuilt>),
}

impl Content {
    /// Sends it, or what the request's conditions come to.
    pub(crate) fn reply(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match self {
            Self::Held(held) => held.reply(request, response),
            Self::Open(version, content) => version.reply(content, request, response),
        }
    }

    /// Sends it as the page of another status.
    pub(crate) fn reply_page(&self, status: u16, response: &mut Response<'_>) {
        match self {
            Self::Held(held) => held.reply_page(status, response),
            Self::Open(version, content) => version.reply_page(content, status, response),
        }
    }
}
