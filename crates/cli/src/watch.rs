//! `--watch`: reloads when a file of the configuration changes, or another folder takes the place of a served one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use std::{io, thread};

use shearwater::Operator;

/// Interval of looking at the paths. A change must be at rest for one: editors and deployments take several steps.
///
/// Polling sees changes on network and container file systems, too, of which the kernel doesn't notify.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Longest wait for the result of a reload before looking again. The reload continues.
const RELOAD_WAIT: Duration = Duration::from_secs(60);

/// Paths whose changes cause a reload. Clones share them; a reload replaces them.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchedPaths(Arc<Mutex<Vec<PathBuf>>>);

/// State of a path: of a file its content's version, of a folder its identity. `None` if it can't be read.
type State = Option<(u64, u64, Option<(u64, Option<SystemTime>)>)>;

impl WatchedPaths {
    /// Replaces the paths.
    pub(crate) fn set(&self, paths: Vec<PathBuf>) {
        *self.lock() = paths;
    }

    fn states(&self) -> Vec<(PathBuf, State)> {
        self.lock().iter().map(|path| (path.clone(), state(path))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn state(path: &Path) -> State {
    let metadata = fs::metadata(path).ok()?;
    // A folder's files are looked up at each request.
    let version = (!metadata.is_dir()).then(|| (metadata.len(), metadata.modified().ok()));
    Some((metadata.dev(), metadata.ino(), version))
}

/// Decides when to reload, from one look at the paths to the next.
#[derive(Debug)]
struct Watch {
    served: Vec<(PathBuf, State)>,
    last: Vec<(PathBuf, State)>,
}

impl Watch {
    fn new(states: Vec<(PathBuf, State)>) -> Self {
        Self { served: states.clone(), last: states }
    }

    /// Returns whether the paths have changed, and then stayed as they are.
    fn has_changed(&mut self, now: Vec<(PathBuf, State)>) -> bool {
        let is_at_rest = now == self.last;
        self.last = now;
        is_at_rest && self.last != self.served
    }
}

/// Watches on a thread of its own, until the process ends.
///
/// # Errors
/// If the thread can't be started.
pub(crate) fn start(paths: WatchedPaths, operator: Operator) -> io::Result<()> {
    let mut watch = Watch::new(paths.states());
    let look = move || {
        loop {
            thread::sleep(WATCH_INTERVAL);
            if watch.has_changed(paths.states()) {
                // The log has its result. A configuration with errors isn't read again before its next change.
                let _ = operator.reload(RELOAD_WAIT);
                watch = Watch::new(paths.states());
            }
        }
    };
    thread::Builder::new().name("watch".to_owned()).spawn(look).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use testkit::TestFolder;

    use super::{Watch, WatchedPaths};

    #[test]
    fn reloads_once_a_change_is_at_rest() {
        let folder = TestFolder::new();
        folder.file("site.toml", "a");
        let paths = WatchedPaths::default();
        paths.set(vec![folder.at("site.toml")]);
        let mut watch = Watch::new(paths.states());
        assert!(!watch.has_changed(paths.states()));
        folder.file("site.toml", "ab");
        assert!(!watch.has_changed(paths.states()), "it may still be written");
        folder.file("site.toml", "abc");
        assert!(!watch.has_changed(paths.states()), "it was still being written");
        assert!(watch.has_changed(paths.states()));
        let mut watch = Watch::new(paths.states());
        assert!(!watch.has_changed(paths.states()));
        fs::remove_file(folder.at("site.toml")).expect("it exists");
        assert!(!watch.has_changed(paths.states()) && watch.has_changed(paths.states()));
    }

    #[test]
    fn sees_another_folder_but_not_new_files_in_it() {
        let folder = TestFolder::new();
        folder.file("one/a.txt", "a");
        folder.file("two/a.txt", "b");
        symlink("one", folder.at("site")).expect("a link");
        let paths = WatchedPaths::default();
        paths.set(vec![folder.at("site")]);
        let mut watch = Watch::new(paths.states());
        folder.file("one/b.txt", "b");
        assert!(!watch.has_changed(paths.states()) && !watch.has_changed(paths.states()));
        symlink("two", folder.at("new")).expect("a link");
        fs::rename(folder.at("new"), folder.at("site")).expect("it takes its place");
        assert!(!watch.has_changed(paths.states()) && watch.has_changed(paths.states()));
    }
}
