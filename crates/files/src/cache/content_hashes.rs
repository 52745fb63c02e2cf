//! Hashes of the contents of files that are sent from their descriptors, for their entity tags. All workers share them.
//!
//! A thread of its own reads one file at a time, in pieces: no piece of a folder's disk work waits for it. A file that
//! changes gets another `ctime`, and is another entry here.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::unix::fs::FileExt;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shearwater::engine::OffloadPool;
use shearwater_io::fs::{Meta, Root};
use twox_hash::XxHash3_128;

use crate::conditional::validators::{ContentHash, is_past};
use crate::limits::{HASH_BYTES_PER_S, HASH_PIECE_BYTES, HASHES_KEPT_MAX, HASHES_WAITING_MAX};
use crate::now::Now;

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);
static THREAD: LazyLock<OffloadPool> =
    LazyLock::new(|| OffloadPool::new("shearwater-hash", 1, HASHES_WAITING_MAX));

/// Hashes by metadata: device, inode, length and both times identify a content.
#[derive(Default)]
struct Table {
    known: HashMap<Meta, u128>,
    /// All known ones, the oldest first.
    order: VecDeque<Meta>,
    /// Files to be read, and the one that is read now.
    waiting: HashSet<Meta>,
}

impl Table {
    /// Adds a file to be read. Returns false if it waits already, or too many do.
    fn begin(&mut self, meta: Meta) -> bool {
        self.waiting.len() < HASHES_WAITING_MAX && self.waiting.insert(meta)
    }

    fn insert(&mut self, meta: Meta, hash: u128) {
        if self.known.insert(meta, hash).is_none() {
            self.order.push_back(meta);
        }
        if self.order.len() > HASHES_KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file in `waiting`, until this is dropped: hashed, given up, or never begun.
struct Waiting(Meta);

impl Drop for Waiting {
    fn drop(&mut self) {
        table().waiting.remove(&self.0);
    }
}

/// Returns the hash of an open file, if it is known. Otherwise has it computed for later requests.
pub(crate) fn of_file(root: &Root, name: &[u8], meta: &Meta, bytes_max: u64, now: Now) -> ContentHash {
    if meta.len > bytes_max {
        return ContentHash::TooLarge;
    }
    if meta.len == 0 {
        return ContentHash::of(b"");
    }
    let mut table = table();
    if let Some(&hash) = table.known.get(meta) {
        return ContentHash::Known(hash);
    }
    // A file that has just changed may change again and keep its times.
    if is_past(meta.ctime, now.unix_seconds) && table.begin(*meta) {
        drop(table);
        let (root, name, waiting) = (root.clone(), name.to_vec(), Waiting(*meta));
        drop(THREAD.offload(move || {
            if let Some(hash) = hash_file(&root, &name, &waiting.0) {
                self::table().insert(waiting.0, hash);
            }
        }));
    }
    ContentHash::Unknown
}

/// Reads and hashes a file. Returns `None` if it can't be read, or isn't this version until the end.
fn hash_file(root: &Root, name: &[u8], meta: &Meta) -> Option<u128> {
    // Opened only now: files that wait hold no descriptors.
    let opened = root.open_beneath(name).ok()?;
    let (mut hasher, mut piece, mut done) = (XxHash3_128::new(), vec![0; HASH_PIECE_BYTES], 0);
    while done < meta.len {
        let read = opened.file.read_at(&mut piece, done).ok().filter(|&read| read > 0)?;
        if Meta::of(&opened.file).ok()? != *meta {
            return None;
        }
        hasher.write(&piece[..read]);
        done += read as u64;
        if done < meta.len {
            std::thread::sleep(Duration::from_nanos(read as u64 * 1_000_000_000 / HASH_BYTES_PER_S));
        }
    }
    (Meta::of(&opened.file).ok()? == *meta).then(|| hasher.finish_128())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use shearwater_io::fs::{Meta, Root, Timestamp};
    use twox_hash::XxHash3_128;

    use super::{HASH_BYTES_PER_S, HASH_PIECE_BYTES, HASHES_KEPT_MAX, HASHES_WAITING_MAX, Table, hash_file};

    fn meta(ino: u64) -> Meta {
        let time = Timestamp { seconds: 1, nanoseconds: 1 };
        Meta { len: 1, mtime: time, ctime: time, ino, dev: 1, links: 1 }
    }

    #[test]
    fn bounds_known_hashes_and_waiting_files() {
        let mut table = Table::default();
        for ino in 0..2 * HASHES_KEPT_MAX as u64 {
            table.insert(meta(ino), 7);
            table.insert(meta(ino), 7);
        }
        assert_eq!((table.known.len(), table.order.len()), (HASHES_KEPT_MAX, HASHES_KEPT_MAX));
        assert!(!table.known.contains_key(&meta(0)), "the oldest is forgotten");
        assert!(table.begin(meta(0)) && !table.begin(meta(0)), "a file waits once");
        let begun = (1..1_000).filter(|&ino| table.begin(meta(ino))).count();
        assert_eq!((begun + 1, table.waiting.len()), (HASHES_WAITING_MAX, HASHES_WAITING_MAX));
    }

    #[test]
    fn hashes_one_version_in_pieces() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::open(folder.path()).expect("it is there");
        let bytes: Vec<u8> = (0..3 * HASH_PIECE_BYTES + 1).map(|at| (at / 7) as u8).collect();
        fs::write(folder.path().join("f"), &bytes).expect("written");
        let present = root.open_beneath(b"f").expect("it opens").meta;
        let begin = Instant::now();
        assert_eq!(hash_file(&root, b"f", &present), Some(XxHash3_128::oneshot(&bytes)));
        let least = 3.0 * HASH_PIECE_BYTES as f64 / HASH_BYTES_PER_S as f64;
        assert!(begin.elapsed().as_secs_f64() >= least, "it pauses after each piece");
        let other =
            Meta { ctime: Timestamp { seconds: present.ctime.seconds - 1, ..present.ctime }, ..present };
        assert_eq!(hash_file(&root, b"f", &other), None, "another version");
        assert_eq!(hash_file(&root, b"f", &Meta { len: present.len + 1, ..present }), None, "shorter");
        assert_eq!(hash_file(&root, b"none", &present), None);
    }
}
