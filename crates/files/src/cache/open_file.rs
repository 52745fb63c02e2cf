//! Files that are sent from their descriptor, for further requests of the next moments.
//!
//! The engine owns their responses, and closes a descriptor that no send needs after some milliseconds. An entry only
//! refers to the response, so the table keeps no file open.

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use shearwater::engine::{FileSlice, Item, Prebuilt, SharedFile};
use shearwater_io::fs::Meta;

use crate::cache::cached_file::FileContent;
use crate::cache::content_hashes;
use crate::cache::entry::CacheEntry;
use crate::cache::store::FileStore;
use crate::conditional::validators::{ContentHash, Validators};
use crate::disk::load::LoadedContent;
use crate::limits::SENDFILE_AFTER_S;
use crate::now::Now;
use crate::reply::version::FileVersion;
use crate::siblings::{Representation, Siblings};

/// A file that isn't in memory.
pub(crate) struct OpenFile {
    pub(super) meta: Meta,
    pub(super) siblings: Siblings,
    /// Start of the period in which its siblings were looked for.
    pub(super) checked_ms: u64,
    /// `None` if only its siblings were sent.
    response: Option<OpenResponse>,
}

/// The response with a version of it, as long as that is open.
struct OpenResponse {
    version: Rc<FileVersion>,
    content: Weak<Prebuilt>,
    /// True if the tag isn't the final one.
    lacks_hash: bool,
    /// Time at which the metadata was last compared.
    compared_ms: Cell<u64>,
}

impl FileStore {
    /// Returns a file that was opened in the present period.
    pub(super) fn fresh_open(&self, key: &[u8], now: Now) -> Option<Rc<OpenFile>> {
        self.files.get(key, |entry| match entry {
            CacheEntry::Open(open) if now.is_fresh(open.checked_ms) => Some(Rc::clone(open)),
            _ => None,
        })
    }

    /// Returns the content of a file if it is open and unchanged as of this turn.
    ///
    /// The comparison notices every change of the file, its removal and its replacement. A change of a folder or link in
    /// its path is noticed when the period ends. A file that must not be compared here, because it might have to be waited
    /// for, counts as changed in the next turn. So does one whose hash has become known.
    pub(super) fn open_content(&self, key: &[u8], open: &OpenFile, now: Now) -> Option<FileContent> {
        let response = open.response.as_ref()?;
        let content = response.content.upgrade()?;
        if response.compared_ms.get() != now.ms {
            let Item::File(slice) = content.body() else { return None };
            if !self.disk.access().has_cached_meta() || Meta::of(&slice.file).ok()? != open.meta {
                return None;
            }
            if response.lacks_hash && self.hash(key, &open.meta, now) != ContentHash::Unknown {
                return None;
            }
            response.compared_ms.set(now.ms);
        }
        Some(FileContent::Open(Rc::clone(&response.version), content))
    }

    /// Caches the siblings of a file that isn't in memory, if one was sent instead of it.
    pub(super) fn keep_siblings(&self, name: &[u8], meta: Meta, siblings: Siblings, now: Now) {
        self.keep_open(name, meta, siblings, None, now);
    }

    /// Caches what is known about a file. If its siblings are those that were looked for before, they count from then.
    fn keep_open(
        &self,
        key: &[u8],
        meta: Meta,
        siblings: Siblings,
        response: Option<OpenResponse>,
        now: Now,
    ) {
        let known = self.fresh_open(key, now).filter(|open| open.meta == meta && open.siblings == siblings);
        let checked_ms = known.map_or_else(|| self.root_checked(now).ms, |open| open.checked_ms);
        let open = OpenFile { meta, siblings, checked_ms, response };
        self.files.insert(key, CacheEntry::Open(Rc::new(open)));
    }

    /// Caches a newly opened file. Returns its content.
    pub(super) fn open(&self, loaded: &LoadedContent, entry: Representation<'_>, now: Now) -> FileContent {
        let (meta, file) = (loaded.meta, share(loaded, now.unix_seconds));
        let file = if self.disk.root().is_remote() { file.remote() } else { file };
        let slice = FileSlice { file: Rc::new(file), offset: 0, len: meta.len };
        let hash = self.hash(entry.key, &meta, now);
        let validators = Validators::of(&meta, hash, entry.coding, now.unix_seconds);
        let (version, content) = FileVersion::new(validators, entry, &self.settings, Item::File(slice));
        let version = Rc::new(version);
        let response = OpenResponse {
            version: Rc::clone(&version),
            content: Rc::downgrade(&content),
            lacks_hash: hash == ContentHash::Unknown,
            compared_ms: Cell::new(now.ms),
        };
        self.keep_open(entry.key, meta, entry.siblings, Some(response), now);
        FileContent::Open(version, content)
    }

    /// Returns the hash of the file with this key, which ends with a NUL for a sibling.
    fn hash(&self, key: &[u8], meta: &Meta, now: Now) -> ContentHash {
        let name = key.strip_suffix(b"\0").unwrap_or(key);
        content_hashes::of_file(self.disk.root(), name, meta, self.limits.hashed_bytes_max, now)
    }
}

/// Shares a file, to be sent in this version only. A recently changed file may change again, so it is copied.
fn share(loaded: &LoadedContent, unix_seconds: u64) -> SharedFile {
    let file = SharedFile::new(Arc::clone(&loaded.file)).in_version(loaded.meta);
    if is_left_alone(&loaded.meta, unix_seconds) { file } else { file.copied() }
}

fn is_left_alone(meta: &Meta, unix_seconds: u64) -> bool {
    meta.is_older_than(unix_seconds.saturating_sub(SENDFILE_AFTER_S))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use shearwater_io::fs::Meta;

    use super::{FileContent, LoadedContent, Representation, SENDFILE_AFTER_S, Siblings, share};
    use crate::cache::tests::TestStore;
    use crate::limits::FRESH_MS_MAX;

    const ENTRY: Representation<'_> = Representation::plain(b"d/f", Siblings::NONE);

    #[test]
    fn lends_pages_of_files_unchanged_for_ten_seconds() {
        let file = || File::open(std::env::current_exe().expect("this program")).expect("it can be read");
        let meta = Meta::of(&file()).expect("its metadata");
        let latest = meta.mtime.seconds.max(meta.ctime.seconds).unsigned_abs();
        for (seconds, is_lent) in [(0, false), (SENDFILE_AFTER_S, false), (SENDFILE_AFTER_S + 1, true)] {
            let loaded = LoadedContent { file: file().into(), meta, bytes: None };
            assert_eq!(share(&loaded, latest + seconds).is_lent(), is_lent, "{seconds} s");
        }
    }

    /// Opens `d/f` as a file that is too large for the memory.
    fn open(test: &TestStore) -> FileContent {
        let opened = test.store.disk.root().open_beneath(b"d/f").expect("the file is there");
        let loaded = LoadedContent { file: opened.file.into(), meta: opened.meta, bytes: None };
        test.store.open(&loaded, ENTRY, test.now)
    }

    /// Returns the content of `d/f` if it is open and unchanged.
    fn found(test: &TestStore) -> Option<FileContent> {
        let open = test.store.fresh_open(b"d/f", test.now)?;
        test.store.open_content(b"d/f", &open, test.now)
    }

    #[test]
    fn an_open_file_is_found_until_its_period_ends() {
        let mut test = TestStore::new(&[]);
        let content = open(&test);
        test.pass(FRESH_MS_MAX - 1);
        assert!(found(&test).is_some());
        test.pass(1);
        assert!(found(&test).is_none(), "its path may lead elsewhere");
        let again = open(&test);
        assert!(found(&test).is_some());
        drop((content, again));
        assert!(found(&test).is_none(), "nothing keeps it open");
    }

    /// Changes show in the next turn, though the file stays open.
    #[test]
    fn compares_open_files_once_a_turn() {
        type Change = fn(&Path, &Path) -> std::io::Result<()>;
        let changes: [(&str, Change); 5] = [
            ("written into", |path, _| fs::write(path, "y")),
            ("replaced", |path, other| fs::rename(other, path)),
            ("removed", |path, _| fs::remove_file(path)),
            ("moved away", |path, other| fs::rename(path, other)),
            ("made private", |path, _| fs::set_permissions(path, fs::Permissions::from_mode(0o600))),
        ];
        for (what, change) in changes {
            let mut test = TestStore::new(&["other"]);
            let content = open(&test);
            test.pass(1);
            assert!(found(&test).is_some(), "unchanged, before it was {what}");
            change(&test.folder.at("root/d/f"), &test.folder.at("root/other")).expect("it can be done");
            assert!(found(&test).is_some(), "compared once in a turn");
            test.pass(1);
            assert!(found(&test).is_none(), "{what}");
            drop(content);
        }
    }
}
