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

/// Paths whose changes cause a reload, as they were when they were set. Clones share them; a reload replaces them.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchedPaths(Arc<Mutex<Vec<(PathBuf, State)>>>);

/// State of a path: of a file its content's version, of a folder its identity. `None` if it can't be read.
type State = Option<(u64, u64, Option<(u64, Option<SystemTime>)>)>;

impl WatchedPaths {
    /// Replaces the paths.
    pub(crate) fn set(&self, paths: Vec<PathBuf>) {
        *self.lock() = paths.into_iter().map(|path| (path.clone(), state(&path))).collect();
    }

    /// Returns the paths as they are now, and whether any has changed since it was set.
    fn look(&self) -> (Vec<(PathBuf, State)>, bool) {
        let set = self.lock();
        let now: Vec<_> = set.iter().map(|(path, _)| (path.clone(), state(path))).collect();
        let has_changed = now != *set;
        (now, has_changed)
    }

    /// Takes these states as those that were set: a reload has seen them, or later ones.
    fn accept(&self, seen: &[(PathBuf, State)]) {
        for (path, state) in self.lock().iter_mut() {
            if let Some((_, seen)) = seen.iter().find(|(other, _)| other == path) {
                *state = *seen;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(PathBuf, State)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn state(path: &Path) -> State {
    let metadata = fs::metadata(path).ok()?;
    // A folder's files are looked up at each request.
    let version = (!metadata.is_dir()).then(|| (metadata.len(), metadata.modified().ok()));
    Some((metadata.dev(), metadata.ino(), version))
}

/// The paths as they were at the last look.
#[derive(Debug, Default)]
struct Watch(Vec<(PathBuf, State)>);

impl Watch {
    /// Returns the paths if they have changed, and are as they were at the last look.
    fn look(&mut self, paths: &WatchedPaths) -> Option<&[(PathBuf, State)]> {
        let (now, has_changed) = paths.look();
        let is_at_rest = now == self.0;
        self.0 = now;
        (has_changed && is_at_rest).then_some(&*self.0)
    }
}

/// Watches on a thread of its own, until the process ends.
///
/// # Errors
/// If the thread can't be started.
pub(crate) fn start(paths: WatchedPaths, operator: Operator) -> io::Result<()> {
    let mut watch = Watch::default();
    let look = move || {
        loop {
            thread::sleep(WATCH_INTERVAL);
            if let Some(changed) = watch.look(&paths) {
                // The log has its result. A configuration with errors isn't read again before its next change.
                let _ = operator.reload(RELOAD_WAIT);
                paths.accept(changed);
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

    fn watched(folder: &TestFolder, name: &str) -> WatchedPaths {
        let paths = WatchedPaths::default();
        paths.set(vec![folder.at(name)]);
        paths
    }

    #[test]
    fn reloads_once_a_change_is_at_rest() {
        let folder = TestFolder::new();
        folder.file("site.toml", "a");
        let (paths, mut watch) = (watched(&folder, "site.toml"), Watch::default());
        assert_eq!(watch.look(&paths), None);
        assert_eq!(watch.look(&paths), None);
        folder.file("site.toml", "ab");
        assert_eq!(watch.look(&paths), None, "it may still be written");
        folder.file("site.toml", "abc");
        assert_eq!(watch.look(&paths), None, "it was still being written");
        let changed = watch.look(&paths).expect("it is at rest").to_vec();
        folder.file("site.toml", "abcd");
        paths.accept(&changed);
        assert_eq!(watch.look(&paths), None);
        assert!(watch.look(&paths).is_some(), "it has changed during the reload");
    }

    #[test]
    fn sees_a_change_before_the_first_look_and_a_missing_file() {
        let folder = TestFolder::new();
        folder.file("site.toml", "a");
        let (paths, mut watch) = (watched(&folder, "site.toml"), Watch::default());
        fs::remove_file(folder.at("site.toml")).expect("it exists");
        assert_eq!(watch.look(&paths), None);
        let changed = watch.look(&paths).expect("it is gone").to_vec();
        paths.accept(&changed);
        assert_eq!(watch.look(&paths), None);
    }

    #[test]
    fn sees_another_folder_but_not_new_files_in_it() {
        let folder = TestFolder::new();
        folder.file("one/a.txt", "a");
        folder.file("two/a.txt", "b");
        symlink("one", folder.at("site")).expect("a link");
        let (paths, mut watch) = (watched(&folder, "site"), Watch::default());
        folder.file("one/b.txt", "b");
        assert_eq!(watch.look(&paths), None);
        assert_eq!(watch.look(&paths), None);
        symlink("two", folder.at("new")).expect("a link");
        fs::rename(folder.at("new"), folder.at("site")).expect("it takes its place");
        assert_eq!(watch.look(&paths), None);
        assert!(watch.look(&paths).is_some());
    }
}
