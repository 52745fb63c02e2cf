//! Files that are sent from their descriptor: open as long as the turn in which they were asked for.

use std::rc::{Rc, Weak};

use shearwater::{FileSlice, Item, Prebuilt, SharedFile};
use shearwater_io::fs::Opened;

use crate::content::Content;
use crate::limits::{LENT_AFTER_S, OPEN_FILES_MAX};
use crate::plan::Plan;
use crate::siblings::Siblings;
use crate::variant::Entry;
use crate::version::Version;

/// The files that this turn has opened, at most `OPEN_FILES_MAX`: further ones are not kept. The engine holds their answers until the turn ends, this table doesn't:
/// so no file is open between turns but those that are being sent.
#[derive(Default)]
pub(crate) struct OpenFiles {
    files: Vec<OpenFile>,
}

struct OpenFile {
    key: Vec<u8>,
    siblings: Siblings,
    version: Rc<Version>,
    content: Weak<Prebuilt>,
}

impl OpenFiles {
    /// What siblings the file of this key has, if this turn has opened it.
    pub(crate) fn siblings(&self, key: &[u8]) -> Option<Siblings> {
        let is_open = |file: &&OpenFile| file.key == key && file.content.strong_count() > 0;
        self.files.iter().find(is_open).map(|file| file.siblings)
    }

    /// The file of this key, if this turn has opened it.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Content> {
        let file = self.files.iter().find(|file| file.key == key)?;
        let content = file.content.upgrade()?;
        Some(Content::Open(Rc::clone(&file.version), content))
    }

    /// A file that was opened just now.
    pub(crate) fn take(
        &mut self,
        opened: Opened,
        entry: Entry<'_>,
        plan: &Plan,
        unix_seconds: u64,
    ) -> Content {
        let (meta, file) = (opened.meta, shared(opened, unix_seconds));
        let slice = FileSlice { file: Rc::new(file), offset: 0, len: meta.len };
        let (version, content) = Version::new(&meta, entry, plan, unix_seconds, Item::File(slice));
        let (version, content) = (Rc::new(version), Rc::new(content));
        let (key, siblings) = (entry.key.to_vec(), entry.variant.siblings());
        self.keep(OpenFile { key, siblings, version: Rc::clone(&version), content: Rc::downgrade(&content) });
        Content::Open(version, content)
    }

    /// Keeps a file, in the place of those that nobody holds any more: whose turn is over, or whose conditions came to an answer without
    /// them.
    fn keep(&mut self, opened: OpenFile) {
        self.files.retain(|file| file.content.strong_count() > 0 && file.key != opened.key);
        if self.files.len() < OPEN_FILES_MAX {
            self.files.push(opened);
        }
    }
}

/// The file to be sent in the version that was seen, and none besides. What was changed a moment ago may be changed again: it is copied, so
/// that what was read before doesn't change on its way.
fn shared(opened: Opened, unix_seconds: u64) -> SharedFile {
    let file = SharedFile::new(opened.file).in_version(opened.meta);
    let is_left_alone = opened.meta.is_older_than(unix_seconds.saturating_sub(LENT_AFTER_S));
    if is_left_alone { file } else { file.copied() }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::rc::Rc;

    use shearwater::{Item, Shared};
    use shearwater_io::fs::{Kind, Meta, Opened, Timestamp};

    use super::{
        Entry, LENT_AFTER_S, OPEN_FILES_MAX, OpenFile, OpenFiles, Plan, Prebuilt, Siblings, Version, shared,
    };

    fn opened(name: usize) -> (OpenFile, Rc<Prebuilt>) {
        let time = Timestamp { seconds: 1, nanoseconds: 0 };
        let meta = Meta { len: 1, mtime: time, ctime: time, ino: 1, dev: 1, links: 1 };
        let (key, siblings) = (name.to_string().into(), Siblings::NONE);
        let entry = Entry::plain(b"", siblings);
        let (version, content) =
            Version::new(&meta, entry, &Plan::usual(), 2, Item::Shared(Shared::Static(b"x")));
        let (version, content) = (Rc::new(version), Rc::new(content));
        (OpenFile { key, siblings, version, content: Rc::downgrade(&content) }, content)
    }

    #[test]
    fn a_file_is_lent_when_it_has_been_left_alone_for_a_while() {
        let file = || File::open(std::env::current_exe().expect("this program")).expect("it can be read");
        let meta = Meta::of(&file()).expect("its metadata");
        let latest = meta.mtime.seconds.max(meta.ctime.seconds).unsigned_abs();
        for (seconds, is_lent) in [(0, false), (LENT_AFTER_S, false), (LENT_AFTER_S + 1, true)] {
            let opened = Opened { file: file(), kind: Kind::File, meta };
            assert_eq!(shared(opened, latest + seconds).is_lent(), is_lent, "{seconds} s");
        }
    }

    #[test]
    fn a_bounded_number_is_kept() {
        let mut files = OpenFiles::default();
        let mut turn = Vec::new();
        for name in 0..3 * OPEN_FILES_MAX {
            let (file, content) = opened(name);
            turn.push(Rc::clone(&content));
            files.keep(file);
        }
        assert_eq!(files.files.len(), OPEN_FILES_MAX);
        turn.clear();
        let (file, content) = opened(0);
        files.keep(file);
        assert_eq!(files.files.len(), 1, "those of the turn before are gone");
        assert!(files.get(b"0").is_some());
        drop(content);
        assert!(files.get(b"0").is_none() && files.siblings(b"0").is_none());
    }
}
