//! Files that were compressed on the fly, in a worker's cache.
//!
//! A worker looks a result up in [`compressions`](crate::compressions) once, and keeps it beside the file, as one more
//! representation: it is sent like a sibling, without a lock. The file's own checks decide which version is sent.

use std::rc::Rc;
use std::sync::Arc;

use shearwater_io::fs::{Coding, Meta};

use crate::cache::cached_file::{CachedFile, FileContent};
use crate::cache::entry::CacheEntry;
use crate::cache::store::FileStore;
use crate::compressions::Compressed;
use crate::conditional::validators::ContentHash;
use crate::now::Now;
use crate::siblings::{Representation, Siblings};

impl FileStore {
    /// Returns the file of these siblings in a coding; `None` if that isn't there yet, or isn't shorter. Restores `name`
    /// afterwards.
    pub(super) fn compressed_file(
        &self,
        coding: Coding,
        siblings: Siblings,
        name: &mut Vec<u8>,
        now: Now,
    ) -> Option<FileContent> {
        let len = name.len();
        name.push(0);
        name.extend_from_slice(coding.name().as_bytes());
        let of_file = siblings.of_file_only();
        let entry = Representation { key: name, name: &name[..len], coding: Some(coding), siblings: of_file };
        let kept = self.cached(entry.key).filter(|cached| cached.siblings == of_file);
        let cached = kept.or_else(|| self.look_up_compressed(entry, now));
        name.truncate(len);
        // An empty one says that compression is useless.
        cached.filter(|cached| cached.meta.len > 0).map(FileContent::Cached)
    }

    /// Looks up the result of compressing a file, and caches it.
    #[cold]
    fn look_up_compressed(&self, entry: Representation<'_>, now: Now) -> Option<Rc<CachedFile>> {
        let (file, root) = (entry.siblings.file, self.disk.root());
        let compressed = self.disk.folder.compressions.get(root, entry.name, &file, entry.coding?, now)?;
        let (bytes, hash) = match compressed {
            Compressed::Content(bytes, hash) => (bytes, hash),
            Compressed::Useless => (Arc::default(), ContentHash::of(b"")),
        };
        let meta = Meta { len: bytes.len() as u64, ..file };
        let cached = Rc::new(CachedFile::hashed(meta, bytes, hash, entry, &self.settings, now));
        if self.limits.takes(meta.len) {
            self.files.insert(entry.key, CacheEntry::Cached(Rc::clone(&cached)));
        }
        Some(cached)
    }
}
