//! One sibling: whether it is there already, and how a new one takes its place, at once or not at all.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use crate::format::Format;
use crate::limits::SAVED_PERCENT_MIN;
use crate::temporary_name;

/// Where a file's sibling lies.
pub(crate) fn path(file: &Path, format: Format) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(format.extension());
    PathBuf::from(name)
}

/// Whether a server would send this sibling in the file's place: it is of the file's time, as far as one without the fraction of its
/// second tells, or of a later one and made since the file is in its place. An earlier version that was put back has siblings of neither.
pub(crate) fn is_up_to_date(file: &Metadata, sibling: &Path) -> bool {
    let Ok(sibling) = fs::metadata(sibling) else { return false };
    sibling.is_file() && is_of_this_version(Times::of(&sibling), Times::of(file))
}

/// When a file was modified and changed: seconds and nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Times {
    fn of(file: &Metadata) -> Self {
        Self { modified: (file.mtime(), file.mtime_nsec()), changed: (file.ctime(), file.ctime_nsec()) }
    }
}

fn is_of_this_version(sibling: Times, file: Times) -> bool {
    let (made, modified) = (sibling.modified, file.modified);
    let is_of_its_time = made == modified || made == (modified.0, 0);
    is_of_its_time || made > modified && sibling.changed >= file.changed
}

/// What became of a sibling.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// It is there, with so many bytes.
    Bytes(u64),
    /// It would not be smaller enough.
    NotSmaller,
}

/// Makes a sibling: with the file's time, so that it is known to be of this content, and the file's permissions.
///
/// # Errors
/// As the system gives them, and where the file has changed meanwhile. What was there before is still there then.
pub(crate) fn make(path: &Path, format: Format, level: u32, job: usize) -> io::Result<Made> {
    let mut file = File::open(path)?;
    let before = file.metadata()?;
    // Not what a link that has taken its place since leads to.
    let named = fs::symlink_metadata(path)?;
    if (named.dev(), named.ino()) != (before.dev(), before.ino()) {
        return Err(io::Error::other("it is another file than it was: run it again"));
    }
    let sibling = self::path(path, format);
    let temporary = Temporary::beside(&sibling, job)?;
    // Before there is any content in it: who may not read the file may not read its sibling.
    // Its owner is the file's too, for whom that may be done.
    drop(fchown(&temporary.file, Some(before.uid()), Some(before.gid())));
    temporary.file.set_permissions(before.permissions())?;
    let mut sink = BufWriter::new(&temporary.file);
    let mut source = (&mut file).take(before.len());
    format.encode(level, &mut source, before.len(), &mut sink)?;
    sink.flush()?;
    drop(sink);
    let coded = temporary.file.metadata()?.len();
    if coded.saturating_mul(100) > before.len().saturating_mul(100 - SAVED_PERCENT_MIN) {
        return Ok(Made::NotSmaller);
    }
    let after = fs::metadata(path)?;
    if after.len() != before.len() || after.modified()? != before.modified()? {
        return Err(io::Error::other("it has changed meanwhile: run it again"));
    }
    temporary.file.set_times(FileTimes::new().set_modified(before.modified()?))?;
    // A machine that fails right after must not leave an empty sibling with a good name.
    temporary.file.sync_data()?;
    temporary.take_place_of(&sibling)?;
    Ok(Made::Bytes(coded))
}

/// A file without a name of its own yet; removed unless it gets one.
struct Temporary {
    file: File,
    path: Option<PathBuf>,
}

impl Temporary {
    /// Beside the place that it is for, under a name that no server serves and no other job has.
    fn beside(sibling: &Path, job: usize) -> io::Result<Self> {
        let path = sibling.with_file_name(temporary_name::of(sibling, std::process::id(), job));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self { file, path: Some(path) })
    }

    fn take_place_of(mut self, sibling: &Path) -> io::Result<()> {
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
            // What keeps it from being removed kept it from being made, and was told then.
            drop(fs::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Times, is_of_this_version};

    #[test]
    fn a_sibling_is_of_the_files_time_or_was_made_later() {
        let file = Times { modified: (10, 500), changed: (20, 0) };
        for (modified, changed, is_sent) in [
            ((10, 500), (19, 0), true),
            ((10, 501), (20, 0), true),
            ((11, 0), (21, 0), true),
            ((11, 0), (19, 0), false),
            ((10, 0), (19, 0), true),
            ((10, 499), (21, 0), false),
            ((9, 999_999_999), (21, 0), false),
            ((9, 0), (21, 0), false),
        ] {
            let sibling = Times { modified, changed };
            assert_eq!(is_of_this_version(sibling, file), is_sent, "{sibling:?}");
        }
    }
}
