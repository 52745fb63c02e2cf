//! Files that are sent from their descriptor: open as long as the turn in which they were asked for.

use std::rc::{Rc, Weak};

use shearwater::{FileSlice, Item, Prebuilt, Request, Response, SharedFile};
use shearwater_io::fs::Opened;

use crate::limits::OPEN_FILES_MAX;
use crate::now::Now;
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
    version: Version,
    content: Weak<Prebuilt>,
}

impl OpenFiles {
    /// What siblings the file of this key has, if this turn has opened it.
    pub(crate) fn siblings(&self, key: &[u8]) -> Option<Siblings> {
        let is_open = |file: &&OpenFile| file.key == key && file.content.strong_count() > 0;
        self.files.iter().find(is_open).map(|file| file.siblings)
    }

    /// Answers with the file of this key, if this turn has opened it.
    pub(crate) fn reply(&self, key: &[u8], request: &Request<'_>, response: &mut Response<'_>) -> bool {
        let Some(file) = self.files.iter().find(|file| file.key == key) else { return false };
        let Some(content) = file.content.upgrade() else { return false };
        file.version.reply(&content, request, response);
        true
    }

    /// Answers with a file that was opened just now.
    pub(crate) fn reply_opened(
        &mut self,
        opened: Opened,
        entry: Entry<'_>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let slice =
            FileSlice { file: Rc::new(SharedFile::new(opened.file)), offset: 0, len: opened.meta.len };
        let (version, content) = Version::new(&opened.meta, entry, request.unix_seconds(), Item::File(slice));
        let content = Rc::new(content);
        version.reply(&content, request, response);
        let (key, siblings) = (entry.key.to_vec(), entry.variant.siblings());
        self.keep(OpenFile { key, siblings, version, content: Rc::downgrade(&content) });
    }

    /// Answers with a file that was opened just now, as the page of an error.
    pub(crate) fn reply_page(
        opened: Opened,
        entry: Entry<'_>,
        status: u16,
        now: Now,
        response: &mut Response<'_>,
    ) {
        let slice =
            FileSlice { file: Rc::new(SharedFile::new(opened.file)), offset: 0, len: opened.meta.len };
        let (version, content) = Version::new(&opened.meta, entry, now.unix_seconds, Item::File(slice));
        version.reply_page(&Rc::new(content), status, response);
    }

    /// Keeps a file that somebody else holds; not one whose conditions came to an answer without it.
    fn keep(&mut self, opened: OpenFile) {
        self.files.retain(|file| file.content.strong_count() > 0 && file.key != opened.key);
        // The caller holds it too, and only for a moment.
        if self.files.len() < OPEN_FILES_MAX && opened.content.strong_count() > 1 {
            self.files.push(opened);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use shearwater::{Item, Shared};
    use shearwater_io::fs::{Meta, Timestamp};

    use super::{Entry, OPEN_FILES_MAX, OpenFile, OpenFiles, Prebuilt, Siblings, Version};

    fn opened(name: usize) -> (OpenFile, Rc<Prebuilt>) {
        let time = Timestamp { seconds: 1, nanoseconds: 0 };
        let meta = Meta { len: 1, mtime: time, ctime: time, ino: 1, dev: 1 };
        let (key, siblings) = (name.to_string().into(), Siblings::NONE);
        let entry = Entry::plain(b"", siblings);
        let (version, content) = Version::new(&meta, entry, 2, Item::Shared(Shared::Static(b"x")));
        let content = Rc::new(content);
        (OpenFile { key, siblings, version, content: Rc::downgrade(&content) }, content)
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
        assert!(files.files.is_empty(), "those of the turn before are gone, and nobody holds the new one");
        drop(content);
    }
}
