//! Temporary files: hidden from servers, with random names, and locked while they are written.

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

/// A temporary file, removed when dropped unless it was renamed.
pub(crate) struct Temporary {
    pub(crate) file: File,
    path: Option<PathBuf>,
}

impl Temporary {
    /// Creates a temporary file in the folder of a sibling. Its name is random, since process IDs repeat in containers.
    pub(crate) fn beside(sibling: &Path) -> io::Result<Self> {
        let number = RandomState::new().hash_one(0_u8);
        let path = sibling.with_file_name(format!("{START}{number:016x}{END}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        // On a file system without locks, a left-over file can't be recognized and stays.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Self { file, path: Some(path) })
    }

    pub(crate) fn rename_to(mut self, sibling: &Path) -> io::Result<()> {
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
            // The next run tries again.
            drop(fs::remove_file(path));
        }
    }
}

/// Removes a temporary file of a killed run, whose lock no process holds.
pub(crate) fn remove_left_over(path: &Path) {
    if path.file_name().is_some_and(is_temporary)
        && let Ok(file) = File::open(path)
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    {
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
    fn names_are_random_and_recognized() {
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
    fn keeps_a_file_that_is_being_written() {
        let temporary = Temporary::beside(&std::env::temp_dir().join("a.css.br")).expect("a file");
        let path = path(&temporary);
        remove_left_over(&path);
        assert!(path.exists());
        drop(temporary);
        assert!(!path.exists());
        remove_left_over(Path::new("none"));
    }
}
