//! Files that are sent from their descriptor and stay open for a moment for further requests.

use std::rc::{Rc, Weak};

use shearwater::{FileSlice, Item, Prebuilt, SharedFile};
use shearwater_io::fs::{Meta, Opened};

use crate::content::Content;
use crate::limits::{OPEN_FILES_MAX, SENDFILE_AFTER_S};
use crate::now::Now;
use crate::settings::Settings;
use crate::siblings::Siblings;
use crate::variant::Entry;
use crate::version::Version;

/// Recently opened files, at most `OPEN_FILES_MAX`; further ones aren't added.
///
/// The engine owns their responses and this table only refers to them, so it keeps no file open by itself.
#[derive(Default)]
pub(crate) struct OpenFiles {
    files: Vec<OpenFile>,
}

struct OpenFile {
    key: Vec<u8>,
    siblings: Siblings,
    version: Rc<Version>,
    content: Weak<Prebuilt>,
    meta: Meta,
    /// Time of the last check.
    checked_ms: u64,
}

impl OpenFile {
    /// Returns the content if the file is open and unchanged as of this turn.
    ///
    /// The check notices every change of the file, its removal and its replacement. A change of a folder or link in its
    /// path is noticed when it is opened again.
    fn revalidate(&mut self, now: Now) -> Option<Rc<Prebuilt>> {
        let content = self.content.upgrade()?;
        if self.checked_ms != now.ms {
            let Item::File(slice) = content.body() else { return None };
            if Meta::of(&slice.file).ok()? != self.meta {
                return None;
            }
            self.checked_ms = now.ms;
        }
        Some(content)
    }
}

impl OpenFiles {
    /// Returns the siblings of a file, if it is open.
    pub(crate) fn siblings(&mut self, key: &[u8], now: Now) -> Option<Siblings> {
        let file = self.files.iter_mut().find(|file| file.key == key)?;
        file.revalidate(now).map(|_| file.siblings)
    }

    /// Returns a file, if it is open.
    pub(crate) fn get(&mut self, key: &[u8], now: Now) -> Option<Content> {
        let file = self.files.iter_mut().find(|file| file.key == key)?;
        let content = file.revalidate(now)?;
        Some(Content::Open(Rc::clone(&file.version), content))
    }

    /// Adds a newly opened file and returns its content.
    pub(crate) fn open(
        &mut self,
        opened: Opened,
        entry: Entry<'_>,
        settings: &Settings,
        now: Now,
    ) -> Content {
        let Now { ms: checked_ms, unix_seconds } = now;
        let (meta, file) = (opened.meta, share(opened, unix_seconds));
        let slice = FileSlice { file: Rc::new(file), offset: 0, len: meta.len };
        let (version, content) = Version::new(&meta, entry, settings, unix_seconds, Item::File(slice));
        let (version, content) = (Rc::new(version), Rc::new(content));
        let (key, siblings) = (entry.key.to_vec(), entry.variant.siblings());
        let (kept, weak) = (Rc::clone(&version), Rc::downgrade(&content));
        self.keep(OpenFile { key, siblings, version: kept, content: weak, meta, checked_ms });
        Content::Open(version, content)
    }

    /// Adds a file. Removes those that are no longer in use.
    fn keep(&mut self, opened: OpenFile) {
        self.files.retain(|file| file.content.strong_count() > 0 && file.key != opened.key);
        if self.files.len() < OPEN_FILES_MAX {
            self.files.push(opened);
        }
    }
}

/// Shares a file, to be sent in this version only. A recently changed file may change again, so it is copied.
fn share(opened: Opened, unix_seconds: u64) -> SharedFile {
    let file = SharedFile::new(opened.file).in_version(opened.meta);
    let is_left_alone = opened.meta.is_older_than(unix_seconds.saturating_sub(SENDFILE_AFTER_S));
    if is_left_alone { file } else { file.copied() }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::rc::Rc;

    use shearwater::{Item, Shared};
    use shearwater_io::fs::{Kind, Meta, Opened, Root, Timestamp};

    use super::{
        Entry, Now, OPEN_FILES_MAX, OpenFile, OpenFiles, Prebuilt, SENDFILE_AFTER_S, Settings, Siblings,
        Version, share,
    };

    const NOW: Now = Now { ms: 7, unix_seconds: 2 };

    fn opened(name: usize) -> (OpenFile, Rc<Prebuilt>) {
        let time = Timestamp { seconds: 1, nanoseconds: 0 };
        let meta = Meta { len: 1, mtime: time, ctime: time, ino: 1, dev: 1, links: 1 };
        let (key, siblings) = (name.to_string().into(), Siblings::NONE);
        let entry = Entry::plain(b"", siblings);
        let (version, content) =
            Version::new(&meta, entry, &Settings::default_for_test(), 2, Item::Shared(Shared::Static(b"x")));
        let (version, content) = (Rc::new(version), Rc::new(content));
        let (weak, checked_ms) = (Rc::downgrade(&content), NOW.ms);
        (OpenFile { key, siblings, version, content: weak, meta, checked_ms }, content)
    }

    #[test]
    fn a_file_is_lent_when_it_has_been_left_alone_for_a_while() {
        let file = || File::open(std::env::current_exe().expect("this program")).expect("it can be read");
        let meta = Meta::of(&file()).expect("its metadata");
        let latest = meta.mtime.seconds.max(meta.ctime.seconds).unsigned_abs();
        for (seconds, is_lent) in [(0, false), (SENDFILE_AFTER_S, false), (SENDFILE_AFTER_S + 1, true)] {
            let opened = Opened { file: file(), kind: Kind::File, meta };
            assert_eq!(share(opened, latest + seconds).is_lent(), is_lent, "{seconds} s");
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
        assert_eq!(files.files.len(), 1, "unused files are removed");
        assert!(files.get(b"0", NOW).is_some());
        drop(content);
        assert!(files.get(b"0", NOW).is_none() && files.siblings(b"0", NOW).is_none());
    }

    /// Changes show in the next turn, though the file stays open.
    #[test]
    fn an_open_file_is_looked_at_in_each_turn() {
        let folder = std::env::temp_dir().join(format!("shearwater-open-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (path, other) = (folder.join("file"), folder.join("other"));
        type Change = fn(&Path, &Path) -> std::io::Result<()>;
        let changes: [(&str, Change); 5] = [
            ("written into", |path, _| fs::write(path, "y")),
            ("replaced", |path, other| fs::rename(other, path)),
            ("removed", |path, _| fs::remove_file(path)),
            ("moved away", |path, other| fs::rename(path, other)),
            ("made private", |path, _| fs::set_permissions(path, fs::Permissions::from_mode(0o600))),
        ];
        for (what, change) in changes {
            fs::write(&path, "x").expect("it can be written");
            fs::write(&other, "z").expect("it can be written");
            let root = Root::open(&folder).expect("it is there");
            let opened = root.open_beneath(b"file").expect("it is there");
            let mut files = OpenFiles::default();
            let content =
                files.open(opened, Entry::plain(b"file", Siblings::NONE), &Settings::default_for_test(), NOW);
            let later = |ms| Now { ms: NOW.ms + ms, ..NOW };
            assert!(files.get(b"file", later(1)).is_some(), "unchanged, before it was {what}");
            change(&path, &other).expect("it can be done");
            assert!(files.get(b"file", later(1)).is_some(), "checked once in a turn");
            assert!(files.siblings(b"file", later(2)).is_none(), "{what}");
            assert!(files.get(b"file", later(2)).is_none(), "{what}");
            drop(content);
        }
        fs::remove_dir_all(&folder).expect("it was made here");
    }
}
