//! Watches on files in flight, by inotify: they distinguish writes from changes of metadata.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Result;

use crate::limits::{WATCH_EVENTS_MAX, WATCHES_MAX};

/// Bytes of one read of events, 16 each.
const READ_BYTES: usize = 4096;

/// The watches of one driver. The first creates the inotify instance.
#[derive(Debug, Default)]
pub(crate) struct Watches(Option<Arc<Inotify>>);

/// A watch on an open file. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    inotify: Arc<Inotify>,
    id: i32,
    /// Number of events of this inode before the watch.
    before: WatchEvents,
}

/// Numbers of events of one inode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WatchEvents {
    /// Writes, truncations, and changes of the modification time alone.
    pub(crate) writes: u64,
    /// Changes of both times, the mode, the owner or the number of names.
    pub(crate) attributes: u64,
}

#[derive(Debug)]
struct Inotify {
    /// Taken on drop.
    descriptor: Option<OwnedFd>,
    watched: Mutex<Vec<WatchedInode>>,
}

/// A watched inode. The kernel has one watch for it, for any number of descriptors.
#[derive(Debug)]
struct WatchedInode {
    id: i32,
    watches: usize,
    events: WatchEvents,
}

impl Watches {
    /// Watches an open file. Returns `None` if the system has no watch, or `WATCHES_MAX` other inodes are
    /// watched.
    pub(crate) fn watch(&mut self, file: &File) -> Option<Watch> {
        if self.0.is_none() {
            self.0 = Some(Arc::new(Inotify::new().ok()?));
        }
        let inotify = self.0.as_ref()?;
        let mut watched = inotify.up_to_date();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let id = add_watch(inotify.descriptor(), path, WatchFlags::MODIFY | WatchFlags::ATTRIB).ok()?;
        let at = match watched.iter().position(|watched| watched.id == id) {
            Some(at) => at,
            None if watched.len() >= WATCHES_MAX => {
                // It fails if the inode is gone, and its watch with it.
                let _ = remove_watch(inotify.descriptor(), id);
                return None;
            }
            None => {
                watched.push(WatchedInode { id, watches: 0, events: WatchEvents::default() });
                watched.len() - 1
            }
        };
        watched[at].watches += 1;
        let before = watched[at].events;
        drop(watched);
        Some(Watch { inotify: Arc::clone(inotify), id, before })
    }
}

impl Watch {
    /// Returns the events of the file since the watch began.
    pub(crate) fn events(&self) -> WatchEvents {
        let watched = self.inotify.up_to_date();
        let now = watched
            .iter()
            .find(|watched| watched.id == self.id)
            .map_or(self.before, |watched| watched.events);
        WatchEvents {
            writes: now.writes - self.before.writes,
            attributes: now.attributes - self.before.attributes,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = self.inotify.watched();
        let Some(at) = watched.iter().position(|watched| watched.id == self.id) else { return };
        watched[at].watches -= 1;
        if watched[at].watches == 0 {
            watched.swap_remove(at);
            // It fails if the inode is gone, and its watch with it.
            let _ = remove_watch(self.inotify.descriptor(), self.id);
        }
    }
}

/// Closes the instance on a separate thread: Linux waits until every core has noticed that the watches are
/// gone, 10 ms on an idle machine and up to 200 ms on a busy one, too long for a worker that ends.
impl Drop for Inotify {
    fn drop(&mut self) {
        let descriptor = self.descriptor.take();
        // If no thread starts, it is closed here.
        let _ = thread::Builder::new().name("close-inotify".to_owned()).spawn(move || drop(descriptor));
    }
}

impl Inotify {
    fn new() -> Result<Self> {
        let descriptor = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { descriptor: Some(descriptor), watched: Mutex::default() })
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_ref().expect("it is taken only on drop").as_fd()
    }

    fn watched(&self) -> MutexGuard<'_, Vec<WatchedInode>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the watched inodes after reading all events that are queued.
    fn up_to_date(&self) -> MutexGuard<'_, Vec<WatchedInode>> {
        let mut watched = self.watched();
        let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
        let mut events = Reader::new(self.descriptor(), &mut buffer);
        for _ in 0..WATCH_EVENTS_MAX {
            let Ok(event) = events.next() else { return watched };
            let (id, kind) = (event.wd(), event.events());
            // The kernel has dropped events: any file may have been written to.
            let is_lost = kind.contains(ReadFlags::QUEUE_OVERFLOW);
            for watched in watched.iter_mut().filter(|watched| is_lost || watched.id == id) {
                watched.events.writes += u64::from(is_lost || kind.contains(ReadFlags::MODIFY));
                watched.events.attributes += u64::from(kind.contains(ReadFlags::ATTRIB));
            }
        }
        watched.iter_mut().for_each(|watched| watched.events.writes += 1);
        watched
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes, Permissions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileExt, PermissionsExt};
    use std::time::SystemTime;

    use super::{WATCH_EVENTS_MAX, WATCHES_MAX, WatchEvents, Watches};

    fn file() -> File {
        let file = crate::test_file(0);
        file.write_all_at(b"content", 0).expect("written");
        file
    }

    fn write(file: &File) {
        file.write_all_at(b"c", 0).expect("written");
    }

    /// Returns the number of watches that the kernel holds.
    fn in_kernel(watches: &Watches) -> usize {
        let descriptor = watches.0.as_ref().expect("there is one").descriptor().as_raw_fd();
        let info =
            std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).expect("the slot is open");
        info.lines().filter(|line| line.starts_with("inotify ")).count()
    }

    #[test]
    fn tells_writes_from_changes_of_metadata() {
        let (mut watches, file) = (Watches::default(), file());
        let watch = watches.watch(&file).expect("the system has inotify");
        assert_eq!(watch.events(), WatchEvents::default());
        let now = SystemTime::now();
        file.set_times(FileTimes::new().set_accessed(now).set_modified(now))
            .expect("the file can be changed");
        assert_eq!(watch.events(), WatchEvents { writes: 0, attributes: 1 });
        file.set_permissions(Permissions::from_mode(0o600)).expect("the file can be changed");
        assert_eq!(watch.events(), WatchEvents { writes: 0, attributes: 2 });
        write(&file);
        assert_eq!(watch.events(), WatchEvents { writes: 1, attributes: 2 });
        file.set_len(1).expect("the file can be truncated");
        assert_eq!(watch.events().writes, 2);
    }

    #[test]
    fn watches_of_one_file_are_independent() {
        let (mut watches, file) = (Watches::default(), file());
        let other = file.try_clone().expect("another descriptor");
        let first = watches.watch(&file).expect("the system has inotify");
        write(&file);
        let second = watches.watch(&other).expect("the system has inotify");
        assert_eq!((first.events().writes, second.events().writes, in_kernel(&watches)), (1, 0, 1));
        drop(first);
        write(&file);
        assert_eq!((second.events().writes, in_kernel(&watches)), (1, 1));
        drop(second);
        assert_eq!(in_kernel(&watches), 0);
        let third = watches.watch(&file).expect("the system has inotify");
        assert_eq!(third.events().writes, 0);
    }

    #[test]
    fn watches_a_bounded_number_of_files() {
        let mut watches = Watches::default();
        let files: Vec<_> = (0..=WATCHES_MAX).map(|_| file()).collect();
        let mut held: Vec<_> = files.iter().map_while(|file| watches.watch(file)).collect();
        assert_eq!((held.len(), in_kernel(&watches)), (WATCHES_MAX, WATCHES_MAX));
        // Another watch of a watched file needs no room.
        assert!(watches.watch(&files[0]).is_some());
        assert_eq!(in_kernel(&watches), WATCHES_MAX);
        held.pop();
        assert!(watches.watch(&files[WATCHES_MAX]).is_some());
    }

    #[test]
    fn reads_a_bounded_number_of_events() {
        let mut watches = Watches::default();
        let files = [file(), file(), file()];
        let [one, other, idle] = files.each_ref().map(|file| watches.watch(file).expect("inotify"));
        // Alternate two events: the kernel merges equal ones.
        for _ in 0..=WATCH_EVENTS_MAX / 2 {
            write(&files[0]);
            write(&files[1]);
        }
        assert!(
            [one, other, idle].iter().all(|watch| watch.events().writes > 0),
            "any of them may be changed"
        );
    }
}
