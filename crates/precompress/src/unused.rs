//! Counts siblings that exist but are not sent.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use shearwater_io::fs::Meta;

use crate::format::Format;
use crate::limits::{FOLDERS_DEEP_MAX, UNUSED_NAMES_MAX};
use crate::sibling::State;
use crate::walk::is_hidden;

/// Siblings that servers don't send, because they may have earlier content of their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// Number of these siblings.
    pub count: u64,
    /// Path of the first one found.
    pub example: Option<PathBuf>,
    /// `false` if the search stopped after [`UNUSED_NAMES_MAX`] names.
    pub is_whole: bool,
}

/// Counts unused siblings of the files that [`precompress`](crate::precompress) would process.
///
/// # Errors
/// The folder can't be read. Folders within it that can't be read are skipped.
pub fn unused(folder: &Path, formats: &[Format]) -> io::Result<Unused> {
    let mut found = Unused { count: 0, example: None, is_whole: true };
    let mut names_left = UNUSED_NAMES_MAX;
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((within, depth)) = folders.pop() {
        let entries = match fs::read_dir(&within) {
            Err(error) if depth == 0 => return Err(error),
            Err(_) => continue,
            Ok(entries) => entries,
        };
        let mut names = Vec::new();
        for entry in entries.flatten() {
            if names_left == 0 {
                found.is_whole = false;
                break;
            }
            names_left -= 1;
            match entry.file_type() {
                _ if is_hidden(&entry) => {}
                Ok(kind) if kind.is_file() => names.push(entry.file_name()),
                Ok(kind) if kind.is_dir() && depth < FOLDERS_DEEP_MAX => {
                    folders.push((entry.path(), depth + 1));
                }
                _ => {}
            }
        }
        names.sort_unstable();
        for sibling in names.iter().filter(|name| is_unused(&within, name, &names, formats)) {
            found.count += 1;
            found.example.get_or_insert_with(|| within.join(sibling));
        }
    }
    Ok(found)
}

/// Returns whether a file is an unused sibling of another of these. `names` are sorted.
fn is_unused(folder: &Path, name: &OsStr, names: &[OsString], formats: &[Format]) -> bool {
    let base_of = |format: &Format| name.as_bytes().strip_suffix(format.extension().as_bytes());
    let is_coded = |base: &[u8]| Format::ALL.iter().any(|of| base.ends_with(of.extension().as_bytes()));
    let Some(base) = formats.iter().find_map(base_of).filter(|base| !is_coded(base)) else { return false };
    let base = OsStr::from_bytes(base);
    names.binary_search_by(|other| other.as_os_str().cmp(base)).is_ok()
        && fs::metadata(folder.join(base))
            .is_ok_and(|file| State::of(&folder.join(name), &Meta::from(&file)) == State::Unused)
}
