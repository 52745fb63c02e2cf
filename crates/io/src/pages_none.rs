//! Replaces page mappings on systems without a call that grows a mapping in place.

use std::io;

/// Never constructed.
#[derive(Debug)]
pub(crate) enum Pages {}

impl Pages {
    pub(crate) fn new(_: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn resize(&mut self, _: usize) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match *self {}
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        match *self {}
    }
}
