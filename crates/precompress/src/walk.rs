//! Collects the files of a folder without symbolic links and names that start with a dot, except `.well-known`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::format::Format;
use crate::limits::{FILES_MAX, FOLDERS_DEEP_MAX};
use crate::summary::Summary;
use crate::temporary::remove_left_over;

/// Served although it starts with a dot (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// Collects the files of a folder that aren't siblings, sorted by name. Adds read errors to the summary, and removes temporary files of
/// killed runs if `removes`.
///
/// # Errors
/// The folder can't be read, or has too many files.
pub(crate) fn files(folder: &Path, removes: bool, summary: &mut Summary) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((within, depth)) = folders.pop() {
        let entries = match fs::read_dir(&within) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                summary.failed(&within, &error);
                continue;
            }
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) if is_hidden(&entry) => {
                    if removes && kind.is_file() {
                        remove_left_over(&entry.path());
                    }
                }
                Ok((kind, entry)) if kind.is_dir() && depth < FOLDERS_DEEP_MAX => {
                    folders.push((entry.path(), depth + 1));
                }
                Ok((kind, entry)) if kind.is_file() => files.push(entry.path()),
                Ok((kind, entry)) if kind.is_dir() => {
                    let error =
                        io::Error::other(format!("folders are nested deeper than {FOLDERS_DEEP_MAX}"));
                    summary.failed(&entry.path(), &error);
                }
                Ok(_) => {}
                Err(error) => summary.failed(&within, &error),
            }
        }
        if files.len() > FILES_MAX {
            return Err(io::Error::other(format!("more than {FILES_MAX} files")));
        }
    }
    files.sort_unstable_by(|one, other| bytes(one).cmp(bytes(other)));
    Ok(files.iter().filter(|file| !is_sibling(file, &files)).cloned().collect())
}

/// Returns whether a file is a sibling of another one.
fn is_sibling(file: &Path, files: &[PathBuf]) -> bool {
    let name = bytes(file);
    let bases = Format::ALL.into_iter().filter_map(|format| name.strip_suffix(format.extension().as_bytes()));
    bases.into_iter().any(|base| files.binary_search_by(|other| bytes(other).cmp(base)).is_ok())
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

pub(crate) fn is_hidden(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    name != WELL_KNOWN && name.as_encoded_bytes().first() == Some(&b'.')
}
