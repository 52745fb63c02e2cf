//! Files that are sent from their descriptor and stay open for a moment for further requests.

use std::rc::{Rc, Weak};

use shearwater::engine::{FileSlice, Item, Prebuilt, SharedFile};
use shearwater_io::fs::{Meta, Opened, Root};

use crate::cache::cached_file::FileContent;
use crate::cache::content_hashes;
use crate::conditional::validators::{ContentHash, Validators};
use crate::limits::{OPEN_FILES_MAX, SENDFILE_AFTER_S};
use crate::now::Now;
use crate::reply::version::FileVersion;
use crate::settings::FolderSettings;
use crate::siblings::{Representation, Siblings};

/// Recently opened files, at most `OPEN_FILES_MAX`; further ones aren't added.
///
/// The engine owns their responses and this table only refers to them, so it keeps no file open by itself.
pub(crate) struct OpenFiles {
    /// Length of the largest file whose tag is a hash.
    hashed_bytes_max: u64,
    files: Vec<OpenFile>,
}

struct OpenFile {
    key: Vec<u8>,
    siblings: Siblings,
    version: Rc<FileVersion>,
    content: Weak<Prebuilt>,
    meta: Meta,
    /// True if the tag isn't the final one.
    lacks_hash: bool,
    /// Time of the last check.
    checked_ms: u64,
}

impl OpenFiles {
    pub(crate) const fn new(hashed_bytes_max: u64) -> Self {
        Self { hashed_bytes_max, files: Vec::new() }
    }

    /// Returns a file and its siblings if it is open and unchanged as of this turn.
    ///
    /// The check notices every change of the file, its removal and its replacement. A change of a folder or link in its
    /// path is noticed when it is opened again. A file that must not be checked here, because it might have to be waited
    /// for, counts as changed in the next turn. So does one whose hash has become known.
    pub(crate) fn get(
        &mut self,
        key: &[u8],
        now: Now,
        root: &Root,
        may_check: bool,
    ) -> Option<(Siblings, FileContent)> {
        let file = self.files.iter_mut().find(|file| file.key == key)?;
        let content = file.content.upgrade()?;
        if file.checked_ms != now.ms {
            let Item::File(slice) = content.body() else { return None };
            if !may_check || Meta::of(&slice.file).ok()? != file.meta {
                return None;
            }
            if file.lacks_hash
                && hash(root, key, &file.meta, self.hashed_bytes_max, now) != ContentHash::Unknown
            {
                return None;
            }
            file.checked_ms = now.ms;
        }
        Some((file.siblings, FileContent::Open(Rc::clone(&file.version), content)))
    }

    /// Adds a newly opened file and returns its content. Removes those that are no longer in use.
    pub(crate) fn open(
        &mut self,
        opened: Opened,
        entry: Representation<'_>,
        settings: &FolderSettings,
        now: Now,
        root: &Root,
    ) -> FileContent {
        let Now { ms: checked_ms, unix_seconds } = now;
        let (meta, file) = (opened.meta, share(opened, unix_seconds));
        let file = if root.is_remote() { file.remote() } else { file };
        let slice = FileSlice { file: Rc::new(file), offset: 0, len: meta.len };
        let hash = hash(root, entry.key, &meta, self.hashed_bytes_max, now);
        let validators = Validators::of(&meta, hash, entry.coding, unix_seconds);
        let (version, content) = FileVersion::new(validators, entry, settings, Item::File(slice));
        let version = Rc::new(version);
        self.files.retain(|file| file.content.strong_count() > 0 && file.key != entry.key);
        if self.files.len() < OPEN_FILES_MAX {
            let (key, siblings) = (entry.key.to_vec(), entry.siblings);
            let (version, content) = (Rc::clone(&version), Rc::downgrade(&content));
            let lacks_hash = hash == ContentHash::Unknown;
            self.files.push(OpenFile { key, siblings, version, content, meta, lacks_hash, checked_ms });
        }
        FileContent::Open(version, content)
    }
}

/// Returns the hash of the file with this key, which ends with a NUL for a sibling.
fn hash(root: &Root, key: &[u8], meta: &Meta, bytes_max: u64, now: Now) -> ContentHash {
    let name = key.strip_suffix(b"\0").unwrap_or(key);
    content_hashes::of_file(root, name, meta, bytes_max, now)
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

    use shearwater_io::fs::{Kind, Meta, Opened, Root};

    use super::{
        FileContent, FolderSettings, Now, OPEN_FILES_MAX, OpenFiles, Representation, SENDFILE_AFTER_S,
        Siblings, share,
    };

    const NOW: Now = Now { ms: 7, unix_seconds: 2 };

    fn open(files: &mut OpenFiles, root: &Root, key: &str) -> FileContent {
        let opened = root.open_beneath(b"file").expect("the file is there");
        files.open(
            opened,
            Representation::plain(key.as_bytes(), Siblings::NONE),
            &FolderSettings::default_for_test(),
            NOW,
            root,
        )
    }

    #[test]
    fn lends_pages_of_files_unchanged_for_ten_seconds() {
        let file = || File::open(std::env::current_exe().expect("this program")).expect("it can be read");
        let meta = Meta::of(&file()).expect("its metadata");
        let latest = meta.mtime.seconds.max(meta.ctime.seconds).unsigned_abs();
        for (seconds, is_lent) in [(0, false), (SENDFILE_AFTER_S, false), (SENDFILE_AFTER_S + 1, true)] {
            let opened = Opened { file: file().into(), kind: Kind::File, meta };
            assert_eq!(share(opened, latest + seconds).is_lent(), is_lent, "{seconds} s");
        }
    }

    #[test]
    fn bounds_the_number_of_open_files() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), "x").expect("written");
        let root = Root::open(folder.path()).expect("it is there");
        let mut files = OpenFiles::new(0);
        let in_use: Vec<_> =
            (0..3 * OPEN_FILES_MAX).map(|name| open(&mut files, &root, &name.to_string())).collect();
        assert_eq!(files.files.len(), OPEN_FILES_MAX);
        drop(in_use);
        let content = open(&mut files, &root, "0");
        assert_eq!(files.files.len(), 1, "unused files are removed");
        assert!(files.get(b"0", NOW, &root, true).is_some());
        drop(content);
        assert!(files.get(b"0", NOW, &root, true).is_none());
    }

    /// Changes show in the next turn, though the file stays open.
    #[test]
    fn checks_open_files_once_a_turn() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
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
            let mut files = OpenFiles::new(0);
            let root = Root::open(folder.path()).expect("it is there");
            let content = open(&mut files, &root, "file");
            let later = |ms| Now { ms: NOW.ms + ms, ..NOW };
            assert!(files.get(b"file", later(1), &root, true).is_some(), "unchanged, before it was {what}");
            change(&path, &other).expect("it can be done");
            assert!(files.get(b"file", later(1), &root, true).is_some(), "checked once in a turn");
            assert!(files.get(b"file", later(2), &root, true).is_none(), "{what}");
            drop(content);
        }
    }
}
