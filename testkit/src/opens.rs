//! Watches which files of a folder are opened, by inotify.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

/// A watch on a folder and the files in it.
#[derive(Debug)]
pub struct Opens(OwnedFd);

impl Opens {
    /// Watches a folder.
    pub fn of(folder: &Path) -> Self {
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify is available");
        add_watch(&watch, folder, WatchFlags::OPEN).expect("the folder can be watched");
        Self(watch)
    }

    /// Returns the names of the files that were opened since the last call, and an empty one for the folder.
    pub fn names(&self) -> Vec<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let name = |event: rustix::fs::inotify::Event<'_>| {
            event.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned())
        };
        // Ends with an error once there are no more events.
        std::iter::from_fn(|| reader.next().ok().map(name)).collect()
    }
}
