//! Siblings that are being made: files of random names, hidden so that no server sends them, and locked while they are written.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

const START: &str = ".shearwater-precompress-";
const DIGITS: usize = 16;
const END: &str = ".tmp";

/// A file that is removed unless it takes its sibling's place.
pub(crate) struct Temporary {
    pub(crate) file: File,
    path: Option<PathBuf>,
}

impl Temporary {
    /// Creates one in the folder of the sibling. Its name is random, since two containers have the same process IDs.
    pub(crate) fn beside(sibling: &Path) -> io::Result<Self> {
        let number = RandomState::new().hash_one(0_u8);
        let path = sibling.with_file_name(format!("{START}{number:016x}{END}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        // Without locks in the file system, a left-over can't be recognised and stays.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Self { file, path: Some(path) })
    }

    pub(crate) fn take_place_of(mut self, sibling: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, sibling)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // It does no harm if it stays; the next run tries again.
            drop(fs::remove_file(path));
        }
    }
}

/// Removes a file that a killed run has left: it has such a name, and no process holds its lock.
pub(crate) fn remove_left_over(path: &Path) {
    if path.file_name().is_some_and(is_temporary)
        && let Ok(file) = File::open(path)
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    {
        // It does no harm if it stays.
        drop(fs::remove_file(path));
    }
}

fn is_temporary(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix(START)?.strip_suffix(END));
    number.is_some_and(|number| number.len() == DIGITS && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ffi::OsStr;
    use std::path::{Path, PathBuf};

    use super::{Temporary, is_temporary, remove_left_over};

    fn path(temporary: &Temporary) -> PathBuf {
        temporary.path.clone().expect("it isn't in its place")
    }

    #[test]
    fn names_are_random_and_known_again() {
        let sibling = std::env::temp_dir().join("a.css.br");
        let all: Vec<_> = (0..50).map(|_| Temporary::beside(&sibling).expect("a file")).collect();
        let names: HashSet<_> = all.iter().map(path).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.iter().all(|path| path.file_name().is_some_and(is_temporary)), "{names:?}");
        for name in [
            "shearwater-precompress-0123456789abcdef.tmp",
            ".shearwater-precompress-0123456789abcde.tmp",
            ".shearwater-precompress-0123456789abcdefg.tmp",
            ".shearwater-precompress-0123456789abcdex.tmp",
            ".shearwater-precompress-0123456789abcdef",
            ".shearwater-precompress-.tmp",
            ".tmp",
        ] {
            assert!(!is_temporary(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn one_that_is_being_written_is_not_left_over() {
        let temporary = Temporary::beside(&std::env::temp_dir().join("a.css.br")).expect("a file");
        let path = path(&temporary);
        remove_left_over(&path);
        assert!(path.exists());
        drop(temporary);
        assert!(!path.exists());
        remove_left_over(Path::new("none"));
    }
}
