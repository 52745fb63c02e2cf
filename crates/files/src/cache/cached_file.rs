//! A small file in memory: one version's bytes and headers. And the content of any file, in memory or open.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::{Item, Prebuilt, Request, Shared};

use shearwater::Response;
use shearwater_io::fs::{Meta, Opened};

use crate::cache::directories::NamesVersion;
use crate::conditional::validators::{ContentHash, Validators};
use crate::disk::{Disk, read_whole};
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
    /// Reads a file. Returns `None` if it changes meanwhile.
    ///
    /// Compares the metadata before and after, so no `write` has begun between. A `write` that was already in progress
    /// isn't noticed.
    ///
    /// # Errors
    /// If the file can't be read, or not without waiting.
    pub(crate) fn read(
        disk: &dyn Disk,
        opened: &Opened,
        entry: Representation<'_>,
        settings: &FolderSettings,
        now: Now,
    ) -> io::Result<Option<Rc<Self>>> {
        let bytes = match read_whole(disk, opened) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        };
        let is_unchanged = disk.meta(opened)? == opened.meta;
        Ok(is_unchanged.then(|| Rc::new(Self::new(opened.meta, bytes, entry, settings, now))))
    }

    /// Creates the version of a file with these bytes.
    pub(crate) fn new(
        meta: Meta,
        bytes: Vec<u8>,
        entry: Representation<'_>,
        settings: &FolderSettings,
        now: Now,
    ) -> Self {
        let hash = ContentHash::of(&bytes);
        Self::hashed(meta, bytes.into(), hash, entry, settings, now)
    }

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

    /// Returns whether an opened file is still this version with the same siblings. Updates the time of the check if
    /// so.
    pub(crate) fn is_of(&self, opened: &Opened, siblings: Siblings, now: Now) -> bool {
        let same = self.is_settled && self.meta == opened.meta && self.siblings == siblings;
        if same {
            self.checked_ms.set(now.ms);
        }
        same
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
    Rc::new(CachedFile::new(meta, vec![0; len], entry, &FolderSettings::default_for_test(), now))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;
    use std::rc::Rc;
    use std::time::Duration;

    use shearwater_io::fs::{Kind, Meta, Opened, Root};

    use super::{CachedFile, FolderSettings, Now, Representation, Siblings};

    const ENTRY: Representation<'_> = Representation::plain(b"f", Siblings::NONE);

    fn opened(path: &Path) -> Opened {
        let file = File::open(path).expect("the file opens");
        let meta = Meta::of(&file).expect("metadata");
        Opened { file: file.into(), kind: Kind::File, meta }
    }

    fn read(opened: &Opened, now: Now) -> Option<Rc<CachedFile>> {
        let root = Root::open(Path::new("/")).expect("it is there");
        let settings = FolderSettings::default_for_test();
        CachedFile::read(&root, opened, ENTRY, &settings, now).expect("a readable file")
    }

    /// Returns a time after the file's last change.
    fn after(opened: &Opened, seconds: u64) -> Now {
        Now { ms: 1, unix_seconds: opened.meta.ctime.seconds.unsigned_abs() + seconds }
    }

    #[test]
    fn recently_changed_file_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settled");
        fs::write(&path, "content").expect("written");
        for (seconds, is_settled) in [(0, false), (1, false), (3, true)] {
            let opened = opened(&path);
            let now = after(&opened, seconds);
            let cached = read(&opened, now).expect("an unchanged file");
            assert_eq!(cached.is_of(&self::opened(&path), ENTRY.siblings, now), is_settled, "{seconds} s");
        }
    }

    #[test]
    fn file_that_changes_while_it_is_read_is_not_cached() {
        for changed in ["other", "less"] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("changing");
            fs::write(&path, "first").expect("written");
            let opened = opened(&path);
            let early = opened.file.metadata().and_then(|metadata| metadata.modified()).expect("a time");
            fs::write(&path, changed).expect("written");
            let later = early + Duration::from_secs(7);
            let file = File::options().write(true).open(&path).expect("it opens");
            file.set_modified(later).expect("a time");
            assert!(read(&opened, after(&opened, 3)).is_none(), "{changed}");
        }
    }
}
