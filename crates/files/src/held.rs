//! A small file as it is kept in memory: its bytes and all that is said of it, of one version.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

use shearwater::{Item, Prebuilt, Request, Response, Shared};
use shearwater_io::fs::{Meta, Opened};

use crate::version::Version;

/// How long a file in memory is taken for the present version without a look: half of the second within which a change
/// has to show.
const FRESH_MS: u64 = 500;

/// The time of an answer, by both clocks of its turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) ms: u64,
    pub(crate) unix_seconds: u64,
}

impl Now {
    pub(crate) fn of(request: &Request<'_>) -> Self {
        Self { ms: request.now_ms(), unix_seconds: request.unix_seconds() }
    }
}

/// One version of a file.
pub(crate) struct Held {
    meta: Meta,
    version: Version,
    content: Rc<Prebuilt>,
    /// When it was last seen to be the file's present version, by the worker's clock.
    checked_ms: Cell<u64>,
    /// The file had not been changed for a while when it was read. Otherwise it may have been changed again within the
    /// resolution of its times, and equal metadata proves nothing.
    is_settled: bool,
}

impl Held {
    /// Reads a file; `None` if it changes meanwhile.
    ///
    /// # Errors
    /// Where it can't be read.
    pub(crate) fn read(opened: &Opened, name: &[u8], now: Now) -> io::Result<Option<Rc<Self>>> {
        let bytes = read_whole(&opened.file, opened.meta.len)?;
        if bytes.len() as u64 != opened.meta.len || Meta::of(&opened.file)? != opened.meta {
            return Ok(None);
        }
        let block = Item::Shared(Shared::Block(Rc::new(bytes.into())));
        let (version, content) = Version::new(&opened.meta, name, now.unix_seconds, block);
        Ok(Some(Rc::new(Self {
            meta: opened.meta,
            version,
            content: Rc::new(content),
            checked_ms: Cell::new(now.ms),
            is_settled: opened.meta.is_older_than(now.unix_seconds.saturating_sub(1)),
        })))
    }

    /// Whether it was seen to be the present version a moment ago.
    pub(crate) fn is_fresh(&self, now: Now) -> bool {
        now.ms.saturating_sub(self.checked_ms.get()) < FRESH_MS
    }

    /// Whether the file that was opened is this version still; notes so.
    pub(crate) fn is_of(&self, opened: &Opened, now: Now) -> bool {
        let same = self.is_settled && self.meta == opened.meta;
        if same {
            self.checked_ms.set(now.ms);
        }
        same
    }

    /// Sends it, or what the request's conditions come to.
    pub(crate) fn reply(&self, request: &Request<'_>, response: &mut Response<'_>) {
        self.version.reply(&self.content, request, response);
    }

    /// Bytes that it takes.
    pub(crate) fn len(&self) -> u64 {
        self.meta.len
    }
}

/// At most one byte more than expected: a file that grows is seen to.
fn read_whole(file: &File, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 1);
    file.take(len + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The block as the workers would share it.
#[cfg(test)]
pub(crate) fn held_for_test(len: usize) -> Rc<Held> {
    use shearwater_io::fs::Timestamp;
    let time = Timestamp { seconds: 1, nanoseconds: 0 };
    let meta = Meta { len: len as u64, mtime: time, ctime: time, ino: 1, dev: 1 };
    let block = Item::Shared(Shared::Block(Rc::new(vec![0; len].into())));
    let (version, content) = Version::new(&meta, b"", 2, block);
    Rc::new(Held { meta, version, content: Rc::new(content), checked_ms: Cell::new(2), is_settled: true })
}
