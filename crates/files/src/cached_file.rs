//! A small file in memory: one version's bytes and headers.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use shearwater::{Item, Prebuilt, Request, Response, Shared};
use shearwater_io::fs::{Meta, Opened};

use crate::clock_cache::Evictable;
use crate::now::Now;
use crate::settings::Settings;
use crate::siblings::Siblings;
use crate::variant::{Entry, Variant};
use crate::version::Version;

/// One version of a file, in memory.
pub(crate) struct CachedFile {
    /// Name beneath the root; for a sibling, that of its file.
    name: Box<[u8]>,
    meta: Meta,
    variant: Variant,
    version: Version,
    content: Rc<Prebuilt>,
    /// Time of the last check, by the worker's clock.
    checked_ms: Cell<u64>,
    /// True if the file was unchanged for a while when it was read. Otherwise it may have changed within the resolution
    /// of its times, and equal metadata proves nothing.
    is_settled: bool,
    was_used: Cell<bool>,
}

impl CachedFile {
    /// Reads a file. Returns `None` if it changes meanwhile.
    ///
    /// Compares the metadata before and after, so no `write` has begun between. A `write` that was already in progress
    /// isn't noticed.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(crate) fn read(
        opened: &Opened,
        entry: Entry<'_>,
        settings: &Settings,
        now: Now,
    ) -> io::Result<Option<Rc<Self>>> {
        let bytes = read_whole(&opened.file, opened.meta.len)?;
        if bytes.len() as u64 != opened.meta.len || Meta::of(&opened.file)? != opened.meta {
            return Ok(None);
        }
        let block = Item::Shared(Shared::Block(Rc::new(bytes.into())));
        let (version, content) = Version::new(&opened.meta, entry, settings, now.unix_seconds, block);
        Ok(Some(Rc::new(Self {
            name: entry.name.into(),
            meta: opened.meta,
            variant: entry.variant,
            version,
            content: Rc::new(content),
            checked_ms: Cell::new(now.ms),
            is_settled: opened.meta.is_older_than(now.unix_seconds.saturating_sub(1)),
            was_used: Cell::new(false),
        })))
    }

    /// Returns whether the last check still counts.
    pub(crate) fn is_fresh(&self, now: Now) -> bool {
        now.is_fresh(self.checked_ms.get())
    }

    /// Returns whether it may be sent without a check if no descriptor is free.
    pub(crate) fn is_recent(&self, now: Now) -> bool {
        now.is_recent(self.checked_ms.get())
    }

    /// Returns whether an opened file is still this version with the same siblings. Updates the time of the check if
    /// so.
    pub(crate) fn is_of(&self, opened: &Opened, variant: Variant, now: Now) -> bool {
        let same = self.is_settled && self.meta == opened.meta && self.variant == variant;
        if same {
            self.checked_ms.set(now.ms);
        }
        same
    }

    /// Sends the file or the result of the request's preconditions.
    pub(crate) fn reply(&self, request: &Request<'_>, response: &mut Response<'_>) {
        self.version.reply(&self.content, request, response);
    }

    /// Sends the file as the page of another status.
    pub(crate) fn reply_page(&self, status: u16, response: &mut Response<'_>) {
        self.version.reply_page(&self.content, status, response);
    }

    /// Marks the entry as used without a look-up in its table.
    pub(crate) fn mark_used(&self) {
        self.was_used.set(true);
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the siblings of a plain file.
    pub(crate) fn siblings(&self) -> Siblings {
        self.variant.siblings()
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Evictable for Rc<CachedFile> {
    fn bytes(&self) -> u64 {
        self.meta.len
    }

    fn was_used(&self) -> &Cell<bool> {
        &self.was_used
    }
}

/// Reads the file's first `len` bytes, or as many as it has.
fn read_whole(file: &File, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

/// Creates a cached file for tests.
#[cfg(test)]
pub(crate) fn cached_for_test(len: usize) -> Rc<CachedFile> {
    use shearwater_io::fs::Timestamp;
    let time = Timestamp { seconds: 1, nanoseconds: 0 };
    let meta = Meta { len: len as u64, mtime: time, ctime: time, ino: 1, dev: 1, links: 1 };
    let block = Item::Shared(Shared::Block(Rc::new(vec![0; len].into())));
    let entry = Entry::plain(b"", Siblings::NONE);
    let (version, content) = Version::new(&meta, entry, &Settings::default_for_test(), 2, block);
    let (content, variant) = (Rc::new(content), entry.variant);
    let (name, was_used) = (entry.name.into(), Cell::new(false));
    Rc::new(CachedFile {
        name,
        meta,
        variant,
        version,
        content,
        checked_ms: Cell::new(2),
        is_settled: true,
        was_used,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;

    use shearwater_io::fs::{Kind, Meta, Opened};

    use super::{CachedFile, Entry, Now, Settings, Siblings};

    /// A file that is removed when the test is over.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, content: &str) -> Self {
            let path = std::env::temp_dir().join(format!("shearwater-cached-{}-{name}", std::process::id()));
            fs::write(&path, content).expect("a temporary file");
            Self(path)
        }

        fn open(&self) -> Opened {
            let file = File::open(&self.0).expect("the file opens");
            let meta = Meta::of(&file).expect("metadata");
            Opened { file, kind: Kind::File, meta }
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// Returns a time after the file's last change.
    fn after(opened: &Opened, seconds: u64) -> Now {
        Now { ms: 1, unix_seconds: opened.meta.ctime.seconds.unsigned_abs() + seconds }
    }

    #[test]
    fn a_file_changed_a_moment_ago_is_never_taken_for_settled() {
        let file = Temporary::new("settled", "content");
        for (seconds, is_settled) in [(0, false), (1, false), (3, true)] {
            let opened = file.open();
            let now = after(&opened, seconds);
            let entry = Entry::plain(b"f", Siblings::NONE);
            let cached = CachedFile::read(&opened, entry, &Settings::default_for_test(), now)
                .expect("a readable file")
                .expect("an unchanged file");
            assert_eq!(cached.is_of(&file.open(), entry.variant, now), is_settled, "{seconds} s");
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_not_kept() {
        let file = Temporary::new("changing", "first");
        let opened = file.open();
        let early = fs::metadata(&file.0).expect("metadata").modified().expect("a time");
        fs::write(&file.0, "other").expect("written");
        let later = early + std::time::Duration::from_secs(7);
        File::options().write(true).open(&file.0).and_then(|file| file.set_modified(later)).expect("a time");
        let entry = Entry::plain(b"f", Siblings::NONE);
        let read = CachedFile::read(&opened, entry, &Settings::default_for_test(), after(&opened, 3));
        assert!(read.expect("a readable file").is_none());
    }
}
