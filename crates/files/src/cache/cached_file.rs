//! A small file in memory: one version's bytes and headers. And the content of any file, in memory or open.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::{Item, Prebuilt, Request, Shared};

use shearwater::Response;
use shearwater_io::fs::Meta;

use crate::cache::directories::NamesVersion;
use crate::conditional::validators::{ContentHash, Validators};
use crate::now::Now;
use crate::reply::version::FileVersion;
use crate::settings::FolderSettings;
use crate::siblings::{Representation, Siblings};

/// One version of a file, in memory.
pub(crate) struct CachedFile {
    /// Name beneath the root; for a sibling, that of its file.
    pub(crate) name: Box<[u8]>,
    /// Metadata of the file; if it was compressed, with the length of the result.
    pub(crate) meta: Meta,
    /// Siblings of the file; for a sibling or compressed file, the file that it is one of.
    pub(crate) siblings: Siblings,
    pub(crate) version: FileVersion,
    pub(crate) content: Rc<Prebuilt>,
    /// Start of the period of the last check, by the worker's clock.
    pub(crate) checked_ms: Cell<u64>,
    /// The directory's names when all that aren't siblings were last missing.
    pub(crate) names: Cell<Option<NamesVersion>>,
    /// True if the file was unchanged for a while when it was read. Otherwise it may have changed within the resolution
    /// of its times, and equal metadata proves nothing.
    pub(crate) is_settled: bool,
}

impl CachedFile {
    /// Creates the version of a file with these bytes, which have this hash.
    pub(crate) fn hashed(
        meta: Meta,
        bytes: Arc<[u8]>,
        hash: ContentHash,
        entry: Representation<'_>,
        settings: &FolderSettings,
        now: Now,
    ) -> Self {
        let validators = Validators::of(&meta, hash, entry.coding, now.unix_seconds);
        let block = Item::Shared(Shared::Block(Rc::new(bytes)));
        let (version, content) = FileVersion::new(validators, entry, settings, block);
        Self {
            name: entry.name.into(),
            meta,
            siblings: entry.siblings,
            version,
            content,
            checked_ms: Cell::new(now.ms),
            names: Cell::new(None),
            is_settled: meta.is_older_than(now.unix_seconds.saturating_sub(1)),
        }
    }

    /// Returns whether a file of this metadata is still this version with the same siblings.
    pub(crate) fn is_version(&self, meta: &Meta, siblings: Siblings) -> bool {
        self.is_settled && self.meta == *meta && self.siblings == siblings
    }
}

/// One variant of a file, ready to be sent.
pub(crate) enum FileContent {
    /// In memory.
    Cached(Rc<CachedFile>),
    /// Sent from its descriptor.
    Open(Rc<FileVersion>, Rc<Prebuilt>),
}

impl FileContent {
    /// Sends the file or the result of the request's preconditions.
    pub(crate) fn reply(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match self {
            Self::Cached(cached) => cached.version.reply(&cached.content, request, response),
            Self::Open(version, content) => version.reply(content, request, response),
        }
    }

    /// Sends the file as the page of another status.
    pub(crate) fn reply_page(&self, status: u16, response: &mut Response<'_>) {
        match self {
            Self::Cached(cached) => cached.version.reply_page(&cached.content, status, response),
            Self::Open(version, content) => version.reply_page(content, status, response),
        }
    }
}

/// Creates a cached file for tests.
#[cfg(test)]
pub(crate) fn cached_for_test(len: usize) -> Rc<CachedFile> {
    use shearwater_io::fs::Timestamp;
    let time = Timestamp { seconds: 1, nanoseconds: 0 };
    let meta = Meta { len: len as u64, mtime: time, ctime: time, ino: 1, dev: 1, links: 1 };
    let now = Now { ms: 2, unix_seconds: 2 };
    let entry = Representation::plain(b"", Siblings::NONE);
    let (bytes, settings) = (vec![0; len].into(), FolderSettings::default_for_test());
    Rc::new(CachedFile::hashed(meta, bytes, ContentHash::Unknown, entry, &settings, now))
}
