//! One sibling: checks whether it is current, refreshes its times, or atomically replaces it.
//!
//! A new one is written to a temporary file: hidden from servers, with a random name, and locked while it is written.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use shearwater_compress::{Coding, decode, encode};
use shearwater_io::fs::{Meta, is_coded, is_current_sibling};

use crate::limits::SAVED_PERCENT_MIN;

/// Buffer size for comparing contents in bytes.
const COMPARED_BYTES: usize = 8192;

/// Names of temporary files: this start, a random number in hexadecimal, this end. Servers hide them.
const START: &str = ".shearwater-precompress-";
const DIGITS: usize = 16;
const END: &str = ".tmp";

/// Returns the path of a file's sibling.
pub(crate) fn path(file: &Path, coding: Coding) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(coding.extension());
    PathBuf::from(name)
}

/// SiblingState of a sibling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiblingState {
    /// It doesn't exist.
    Missing,
    /// Servers send it instead of the file.
    Current,
    /// Servers don't send it: see [`is_current_sibling`].
    Unused,
    /// It doesn't begin as its coding does: an empty file, a text.
    Damaged,
}

impl SiblingState {
    /// Returns the state of the sibling of a file with this metadata.
    pub(crate) fn of(sibling: &Path, coding: Coding, file: &Meta) -> Self {
        let found = match fs::metadata(sibling) {
            Ok(found) if found.is_file() => Meta::from(&found),
            _ => return Self::Missing,
        };
        match File::open(sibling) {
            Ok(open) if is_current_sibling(coding, &open, &found, file) => Self::Current,
            Ok(open) if !is_coded(coding, &open, found.len, file.len).unwrap_or(true) => Self::Damaged,
            // The server may have the permission to read it.
            Err(_) if found.is_current_for(file) => Self::Current,
            _ => Self::Unused,
        }
    }
}

/// Returns whether a sibling has exactly the content of its file; `false` if the sibling can't be read.
///
/// # Errors
/// The file can't be read.
pub(crate) fn is_of_file(path: &Path, coding: Coding) -> io::Result<bool> {
    let file = File::open(path)?;
    File::open(self::path(path, coding)).map_or(Ok(false), |coded| is_of_content(coding, &coded, file))
}

/// Makes a current sibling with other content unused by setting its `mtime` before that of its file.
///
/// # Errors
/// Its times can't be set, or it is a symbolic link.
pub(crate) fn retire(path: &Path, coding: Coding) -> io::Result<()> {
    let sibling = self::path(path, coding);
    let failed = |why: &dyn Display| {
        io::Error::other(format!(
            "it is sent instead of its file, but has other content, and can't be updated ({why}): remove it"
        ))
    };
    if fs::symlink_metadata(&sibling)?.is_symlink() {
        return Err(failed(&"symbolic link"));
    }
    let modified = fs::metadata(path)?.modified()?;
    let before = modified.checked_sub(Duration::from_secs(1)).unwrap_or(UNIX_EPOCH);
    let set = File::open(&sibling).and_then(|coded| coded.set_times(FileTimes::new().set_modified(before)));
    set.map_err(|error| failed(&error))
}

/// Makes an unused sibling current by setting its times, if it has the content of its file. Returns `false` if it has other content,
/// states another length, or can't be changed. A dry run only compares.
///
/// # Errors
/// The file can't be read, or has changed meanwhile.
pub(crate) fn refresh(path: &Path, coding: Coding, is_dry_run: bool) -> io::Result<bool> {
    let (file, before) = open(path)?;
    let sibling = self::path(path, coding);
    // The target of a symbolic link is left alone.
    if !fs::symlink_metadata(&sibling).is_ok_and(|found| found.is_file()) {
        return Ok(false);
    }
    let Ok(coded) = File::open(&sibling) else { return Ok(false) };
    let source = Meta::from(&before);
    let refreshed = Meta { len: coded.metadata()?.len(), ..source };
    if !is_current_sibling(coding, &coded, &refreshed, &source) || !is_of_content(coding, &coded, file)? {
        return Ok(false);
    }
    if is_dry_run {
        return Ok(true);
    }
    if coded.set_times(FileTimes::new().set_modified(before.modified()?)).is_err() {
        return Ok(false);
    }
    keep_if_unchanged(path, &before, &sibling)?;
    Ok(true)
}

/// Returns whether `coded` decodes to exactly the content of `file`.
///
/// # Errors
/// The file can't be read.
fn is_of_content(coding: Coding, coded: &File, file: File) -> io::Result<bool> {
    let Ok(mut decoded) = decode(coding, BufReader::new(coded)) else { return Ok(false) };
    let (mut file, mut left) = (BufReader::new(file), [0; COMPARED_BYTES]);
    // Ends at the end of the file at the latest.
    loop {
        let right = file.fill_buf()?;
        let len = right.len().clamp(1, COMPARED_BYTES);
        match decoded.read(&mut left[..len]) {
            Ok(0) => return Ok(right.is_empty()),
            Ok(read) if right.get(..read) == Some(&left[..read]) => file.consume(read),
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(false),
        }
    }
}

/// Makes a sibling with the `mtime` of the file, which shows that it is current, and its permissions. Returns its length,
/// or `None` if it would save too little.
///
/// # Errors
/// Errors of the system, and a file that has changed meanwhile. An existing sibling is kept then.
pub(crate) fn make(path: &Path, coding: Coding, level: u32) -> io::Result<Option<u64>> {
    let (mut file, before) = open(path)?;
    let sibling = self::path(path, coding);
    let temporary = TemporarySibling::beside(&sibling)?;
    // Before any content is written: the sibling must not be readable by more users than the file.
    // Setting the owner may be forbidden.
    drop(fchown(&temporary.file, Some(before.uid()), Some(before.gid())));
    temporary.file.set_permissions(before.permissions())?;
    let mut sink = BufWriter::new(&temporary.file);
    let mut source = (&mut file).take(before.len());
    encode(coding, level, &mut source, before.len(), &mut sink)?;
    sink.flush()?;
    drop(sink);
    let coded = temporary.file.metadata()?.len();
    if coded.saturating_mul(100) > before.len().saturating_mul(100 - SAVED_PERCENT_MIN) {
        return Ok(None);
    }
    is_unchanged(path, &before)?;
    temporary.file.set_times(FileTimes::new().set_modified(before.modified()?))?;
    // A crash must not leave an empty sibling.
    temporary.file.sync_data()?;
    temporary.rename_to(&sibling)?;
    keep_if_unchanged(path, &before, &sibling)?;
    Ok(Some(coded))
}

/// Opens a file and reads its metadata. Fails if it was replaced by a symbolic link.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let named = fs::symlink_metadata(path)?;
    let is_same = (named.dev(), named.ino()) == (metadata.dev(), metadata.ino());
    if is_same { Ok((file, metadata)) } else { Err(changed()) }
}

/// Fails if a file has changed or was replaced.
fn is_unchanged(path: &Path, before: &Metadata) -> io::Result<()> {
    let after = fs::symlink_metadata(path)?;
    if Meta::from(&after) == Meta::from(before) { Ok(()) } else { Err(changed()) }
}

/// Removes a sibling that has just become current if its file has changed meanwhile.
fn keep_if_unchanged(path: &Path, before: &Metadata, sibling: &Path) -> io::Result<()> {
    is_unchanged(path, before).inspect_err(|_| drop(fs::remove_file(sibling)))
}

fn changed() -> io::Error {
    io::Error::other("the file changed while it was compressed: run the command again")
}

/// A temporary file, removed when dropped unless it was renamed.
pub(crate) struct TemporarySibling {
    pub(crate) file: File,
    path: Option<PathBuf>,
}

impl TemporarySibling {
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

impl Drop for TemporarySibling {
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
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{TemporarySibling, is_temporary, keep_if_unchanged, open, remove_left_over};

    #[test]
    fn removes_a_sibling_whose_file_has_changed_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, sibling, new] = ["a", "a.gz", "new"].map(|name| folder.path().join(name));
        for is_replaced in [false, true] {
            fs::write(&path, "one").expect("a file");
            fs::write(&sibling, "coded").expect("a file");
            let (_file, before) = open(&path).expect("it is there");
            if is_replaced {
                // With the same length and time.
                fs::write(&new, "two").expect("a file");
                let times = fs::FileTimes::new().set_modified(before.modified().expect("a time"));
                fs::File::open(&new).and_then(|file| file.set_times(times)).expect("a time");
                fs::rename(&new, &path).expect("replaced");
            }
            assert_eq!(keep_if_unchanged(&path, &before, &sibling).is_err(), is_replaced);
            assert_eq!(sibling.exists(), !is_replaced);
        }
    }

    fn path(temporary: &TemporarySibling) -> PathBuf {
        temporary.path.clone().expect("it isn't in its place")
    }

    #[test]
    fn temporary_names_are_random_and_recognized() {
        let folder = tempfile::tempdir().expect("a folder");
        let sibling = folder.path().join("a.css.br");
        let all: Vec<_> = (0..50).map(|_| TemporarySibling::beside(&sibling).expect("a file")).collect();
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
        let folder = tempfile::tempdir().expect("a folder");
        let temporary = TemporarySibling::beside(&folder.path().join("a.css.br")).expect("a file");
        let path = path(&temporary);
        remove_left_over(&path);
        assert!(path.exists());
        drop(temporary);
        assert!(!path.exists());
        remove_left_over(Path::new("none"));
    }
}
