//! One sibling: whether it is there already, and how a new one takes its place, at once or not at all.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::format::Format;
use crate::limits::SAVED_PERCENT_MIN;

/// Where a file's sibling lies.
pub(crate) fn path(file: &Path, format: Format) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(format.extension());
    PathBuf::from(name)
}

/// Whether a server would send this sibling in the file's place: it isn't older, as far as a time without the fraction of its second tells.
pub(crate) fn is_up_to_date(file: &Metadata, sibling: &Path) -> bool {
    let Ok(sibling) = fs::metadata(sibling) else { return false };
    match (file.modified(), sibling.modified()) {
        (Ok(file), Ok(made)) => sibling.is_file() && is_not_older(made, file),
        _ => false,
    }
}

fn is_not_older(sibling: SystemTime, file: SystemTime) -> bool {
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (sibling, file) = (since(sibling), since(file));
    sibling >= file || sibling.subsec_nanos() == 0 && sibling.as_secs() == file.as_secs()
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
    let sibling = self::path(path, format);
    let temporary = Temporary::beside(&sibling, job)?;
    // Before there is any content in it: who may not read the file may not read its sibling.
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
        let mut name = OsString::from(".");
        name.push(sibling.file_name().unwrap_or_default());
        name.push(format!(".{}-{job}.tmp", std::process::id()));
        let path = sibling.with_file_name(name);
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
    use std::time::{Duration, UNIX_EPOCH};

    use super::is_not_older;

    #[test]
    fn a_sibling_may_have_lost_the_fraction_of_its_second() {
        let time = |seconds, nanoseconds| UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        for (sibling, is_sent) in [
            (time(10, 500), true),
            (time(10, 501), true),
            (time(11, 0), true),
            (time(10, 0), true),
            (time(10, 499), false),
            (time(9, 999_999_999), false),
            (time(9, 0), false),
        ] {
            assert_eq!(is_not_older(sibling, time(10, 500)), is_sent, "{sibling:?}");
        }
    }
}
