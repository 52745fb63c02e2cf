//! A small file as it is kept in memory: its bytes and all that is said of it, of one version.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use shearwater::{Item, Prebuilt, Request, Response, Shared};
use shearwater_io::fs::{Meta, Opened};

use crate::clock_cache::Kept;
use crate::now::Now;
use crate::plan::Plan;
use crate::siblings::Siblings;
use crate::variant::{Entry, Variant};
use crate::version::Version;

/// One version of a file.
pub(crate) struct Held {
    /// Its name beneath the root; for a sibling that of the file that it is in the place of.
    name: Box<[u8]>,
    meta: Meta,
    variant: Variant,
    version: Version,
    content: Rc<Prebuilt>,
    /// When it was last seen to be the file's present version, by the worker's clock.
    checked_ms: Cell<u64>,
    /// The file had not been changed for a while when it was read. Otherwise it may have been changed again within the
    /// resolution of its times, and equal metadata proves nothing.
    is_settled: bool,
    was_used: Cell<bool>,
}

impl Held {
    /// Reads a file; `None` if it changes meanwhile. What is read lies between two equal looks: no `write` has begun
    /// meanwhile. One that was going on already, or has left the file half written, can't be seen.
    ///
    /// # Errors
    /// Where it can't be read.
    pub(crate) fn read(
        opened: &Opened,
        entry: Entry<'_>,
        plan: &Plan,
        now: Now,
    ) -> io::Result<Option<Rc<Self>>> {
        let bytes = read_whole(&opened.file, opened.meta.len)?;
        if bytes.len() as u64 != opened.meta.len || Meta::of(&opened.file)? != opened.meta {
            return Ok(None);
        }
        let block = Item::Shared(Shared::Block(Rc::new(bytes.into())));
        let (version, content) = Version::new(&opened.meta, entry, plan, now.unix_seconds, block);
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

    /// Whether it was seen to be the present version a moment ago.
    pub(crate) fn is_fresh(&self, now: Now) -> bool {
        now.is_just_after(self.checked_ms.get())
    }

    /// Whether it may be sent where no descriptor is left to look at the file with.
    pub(crate) fn was_seen_lately(&self, now: Now) -> bool {
        now.is_soon_after(self.checked_ms.get())
    }

    /// Whether the file that was opened is this version still, and has the siblings that it had; notes so.
    pub(crate) fn is_of(&self, opened: &Opened, variant: Variant, now: Now) -> bool {
        let same = self.is_settled && self.meta == opened.meta && self.variant == variant;
        if same {
            self.checked_ms.set(now.ms);
        }
        same
    }

    /// Sends it, or what the request's conditions come to.
    pub(crate) fn reply(&self, request: &Request<'_>, response: &mut Response<'_>) {
        self.version.reply(&self.content, request, response);
    }

    /// Sends it as the page of another status.
    pub(crate) fn reply_page(&self, status: u16, response: &mut Response<'_>) {
        self.version.reply_page(&self.content, status, response);
    }

    /// Notes that it was sent, without a look into the table that it is kept in.
    pub(crate) fn mark_used(&self) {
        self.was_used.set(true);
    }

    /// Of which name it is.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// What else it could be sent as.
    pub(crate) fn siblings(&self) -> Siblings {
        self.variant.siblings()
    }

    /// Of which file it is.
    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Kept for Rc<Held> {
    fn bytes(&self) -> u64 {
        self.meta.len
    }

    fn was_used(&self) -> &Cell<bool> {
        &self.was_used
    }
}

/// The file's first `len` bytes, or as many as it has.
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

/// The block as the workers would share it.
#[cfg(test)]
pub(crate) fn held_for_test(len: usize) -> Rc<Held> {
    use shearwater_io::fs::Timestamp;
    let time = Timestamp { seconds: 1, nanoseconds: 0 };
    let meta = Meta { len: len as u64, mtime: time, ctime: time, ino: 1, dev: 1, links: 1 };
    let block = Item::Shared(Shared::Block(Rc::new(vec![0; len].into())));
    let entry = Entry::plain(b"", Siblings::NONE);
    let (version, content) = Version::new(&meta, entry, &Plan::usual(), 2, block);
    let (content, variant) = (Rc::new(content), entry.variant);
    let (name, was_used) = (entry.name.into(), Cell::new(false));
    Rc::new(Held {
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

    use super::{Entry, Held, Now, Plan, Siblings};

    /// A file that is removed when the test is over.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, content: &str) -> Self {
            let path = std::env::temp_dir().join(format!("shearwater-held-{}-{name}", std::process::id()));
            fs::write(&path, content).expect("a temporary file");
            Self(path)
        }

        fn open(&self) -> Opened {
            let file = File::open(&self.0).expect("it was made");
            let meta = Meta::of(&file).expect("it has metadata");
            Opened { file, kind: Kind::File, meta }
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// So many seconds after the file's last change.
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
            let held = Held::read(&opened, entry, &Plan::usual(), now)
                .expect("it can be read")
                .expect("it stays as it is");
            assert_eq!(held.is_of(&file.open(), entry.variant, now), is_settled, "{seconds} s");
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_not_kept() {
        let file = Temporary::new("changing", "first");
        let opened = file.open();
        let early = fs::metadata(&file.0).expect("it is there").modified().expect("a time");
        fs::write(&file.0, "other").expect("written");
        let later = early + std::time::Duration::from_secs(7);
        File::options().write(true).open(&file.0).and_then(|file| file.set_modified(later)).expect("a time");
        let entry = Entry::plain(b"f", Siblings::NONE);
        let read = Held::read(&opened, entry, &Plan::usual(), after(&opened, 3));
        assert!(read.expect("it can be read").is_none());
    }
}
